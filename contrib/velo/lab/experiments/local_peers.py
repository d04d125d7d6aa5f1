"""Thesis, section 7.2: alltoall when a part of the destinations is reached without credits, by LiMIC."""

from .. import building
from ..experiment import FITTED, Experiment, Panel
from ..judging import because, common, mean, verdict

_RANKS = 16
_SHARES = (2, 4, 8)  # nodes: one out of so many destinations is local
_DELAYED = "delayed_of_pattern_percent"
# What counts as less.
_APART_PERCENT = 3.0


def _nodes():
    """Ranks on each node, by the number of nodes."""
    return {nodes: _RANKS // nodes for nodes in _SHARES if _RANKS // nodes >= 2}


def _name(nodes):
    return f"{100 / nodes:g} % local"


def _plan(context):
    context.plugin.require("limic", "ranks_per_node")
    chosen, skipped = building.chosen_policies(context, ("static", "dynamic"))
    slots = building.chosen_slots(context, (16, 32, 40, 48, 54), (16, 40, 54))
    points_of = {}
    for nodes, per_node in _nodes().items():
        fixed = (*building.thesis_format(context, piggyback=False), ("limic", 1), ("ranks_per_node", per_node))
        workload = building.counted(context, _name(nodes), _RANKS)
        points_of[workload] = [building.point(context, policy, count, fixed, ranks=_RANKS) for policy in chosen for count in slots]
    panels = [Panel(f"{w.name}: {w.ranks} ranks, {_nodes()[nodes]} a node", w.name, _DELAYED, "% of messages")
              for w, nodes in zip(points_of, _nodes())]
    return building.plan(points_of, panels, skipped)


def _judge(results, _context):
    many, few = [], []
    for nodes in _nodes():
        static, dynamic = common(results.curve(_name(nodes), "static", _DELAYED), results.curve(_name(nodes), "dynamic", _DELAYED))
        if static:
            (many if nodes <= 4 else few).append((_name(nodes), mean(static), mean(dynamic)))
    lower = all(dynamic < static - _APART_PERCENT for _, static, dynamic in many) if many else None
    similar = all(abs(dynamic - static) <= _APART_PERCENT for _, static, dynamic in few) if few else None
    return [verdict("With 25 % or more of the destinations local fewer messages are delayed under the dynamic one (figure 7.3).", lower,
                    because(_text(many), "" if lower else "Velo gives processes of the same node no slots of the mailbox with credits, "
                            "so that the static one has none to waste; velo-sim experiment fig7.3 divides it among all, as the thesis")),
            verdict("With 12.5 % both are similar (figure 7.3).", similar, because(_text(few)), FITTED)]


def _text(entries):
    return "delayed, mean over the sizes: " + ", ".join(f"{name}: static {s:.1f} %, dynamic {d:.1f} %" for name, s, d in entries) \
        if entries else "not measured"


EXPERIMENT = Experiment(
    "7.2", "Local destinations that take no credits (LiMIC)", "thesis, section 7.2, figure 7.3",
    "Slots that local peers do not use go to the remote ones under the dynamic flow control: it is ahead where 25 % or more "
    "of the destinations are local, and the same as the static one below that.",
    _plan, _judge)
