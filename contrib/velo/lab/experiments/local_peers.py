"""Thesis, section 7.2: alltoall when a part of the destinations is reached without credits, by LiMIC."""

from .. import building
from ..experiment import FITTED, Experiment, Panel
from ..judging import because, common, mean, tolerance, too_noisy, verdict

_SHARES = (2, 4, 8, 16)  # nodes: one out of so many destinations is local


def _nodes(context):
    per_node = max(2, context.ranks // _SHARES[-1])
    return per_node, [nodes for nodes in _SHARES if per_node * nodes <= context.ranks]


def _name(nodes):
    return f"{100 / nodes:g} % local"


def _plan(context):
    context.plugin.require("limic", "ranks_per_node")
    chosen, skipped = building.chosen_policies(context, ("static", "dynamic"))
    slots = building.chosen_slots(context, (8, 12, 16, 24, 32, 40, 48, 57), (8, 16, 32))
    per_node, all_nodes = _nodes(context)
    fixed = (*building.thesis_format(context, piggyback=False), ("limic", 1), ("ranks_per_node", per_node))
    points_of = {}
    for nodes in all_nodes:
        ranks = per_node * nodes
        workload = building.alltoall(context, name=_name(nodes), ranks=ranks)
        points_of[workload] = [building.reference(context, fixed)] + [
            building.point(context, policy, count, fixed, ranks=ranks) for policy in chosen for count in slots]
    panels = [Panel(f"{w.name}: {w.ranks} ranks, {per_node} a node", w.name, "overhead_percent", "overhead %",
                    overhead_scale=True) for w in points_of]
    return building.plan(points_of, panels, skipped)


def _judge(results, context):
    _, all_nodes = _nodes(context)
    many, few = [], []
    for nodes in all_nodes:
        static, dynamic = common(results.curve(_name(nodes), "static"), results.curve(_name(nodes), "dynamic"))
        if static:
            entry = (_name(nodes), mean(static), mean(dynamic), tolerance(results, _name(nodes)))
            (many if nodes <= 4 else few).append(entry)
    lower = all(dynamic < static for _, static, dynamic, _ in many) if many else None
    similar = (all(abs(dynamic - static) <= max(noise, 0.25 * abs(static)) for _, static, dynamic, noise in few)
               if few else None)
    noisy = too_noisy(results, *(_name(nodes) for nodes in all_nodes))
    if noisy:
        lower = similar = None
    return [verdict("With 25 % or more of the destinations local, the dynamic one has a lower overhead (figure 7.3).", lower,
                    because(_text(many), noisy, "" if lower else context.crowded())),
            verdict("With 12.5 % and 6.25 % both are similar (figure 7.3).", similar,
                    because(_text(few), noisy, "" if similar else context.crowded()), FITTED)]


def _text(entries):
    return "mean overhead: " + ", ".join(f"{name}: static {s:.1f} %, dynamic {d:.1f} %" for name, s, d, _ in entries) \
        if entries else "not measured"


EXPERIMENT = Experiment(
    "7.2", "Local destinations that take no credits (LiMIC)", "thesis, section 7.2, figure 7.3",
    "Slots that local peers do not use go to the remote ones under the dynamic flow control: it is ahead where 25 % or more "
    "of the destinations are local, and the same as the static one below that.",
    _plan, _judge)
