"""Liu & Panda, section 6.3: the NAS Parallel Benchmarks that the user has, by counts."""

import os
from pathlib import Path

from ... import policies
from ...plugin import Unavailable
from .. import building
from ..experiment import FITTED, Experiment
from ..judging import because, verdict
from ..measurement import PROGRAM, Point, Workload

# Of each code: the ranks, and tables 1 and 2: explicit credit messages and all messages of a process, buffers of a connection.
_PAPER = {"IS": (8, 0, 383, 4), "FT": (8, 0, 193, 4), "LU": (8, 9002, 48805, 63), "CG": (8, 0, 4202, 3), "MG": (8, 1, 1595, 6),
          "BT": (16, 0, 28913, 7), "SP": (16, 0, 14531, 7)}
_CLASS = "A"
_BUFFERS, _FEW_BUFFERS = 100, 1
_STATIC, _DYNAMIC = "mvapich_static", "mvapich_dynamic"
# The paper's 18 %, rounded as it is; "almost no" explicit messages with the other codes; its most buffers of these. It grows "linearly".
_LU_PERCENT, _LU_TOLERANCE, _ALMOST_NONE_PERCENT, _OTHERS_BUFFERS, _GROWTH = 18.0, 2.0, 1.0, 7, ("growth_buffers", 1)
_WHERE = ("NPB 3.3 or 3.4 from https://www.nas.nasa.gov/software/npb.html, in NPB3.4-MPI: make lu CLASS=A, and so on for is, ft, cg, mg, bt, sp; "
          "then --npb or $NPB_BIN names its directory bin")


def _programs(context):
    """By code; of the paper's class before others. NPB 3.3 has the number of ranks in the name, 3.4 an x."""
    given = context.npb or os.environ.get("NPB_BIN")
    if not given:
        raise Unavailable(f"no NAS Parallel Benchmarks were named: {_WHERE}")
    found = {}
    for code, (ranks, *_) in _PAPER.items():
        paths = [path for path in Path(given).glob(f"{code.lower()}.*.*") if path.suffix in (f".{ranks}", ".x") and os.access(path, os.X_OK)]
        if paths:
            found[code] = min(paths, key=lambda path: (_class_of(path) != _CLASS, path.name)).absolute()
    if not found:
        raise Unavailable(f"{given} has no program such as lu.{_CLASS}.8 or lu.{_CLASS}.x: {_WHERE}")
    return found


def _class_of(path):
    return path.name.split(".")[1]


def _plan(context):
    chosen, skipped = building.chosen_policies(context, (_STATIC, _DYNAMIC))
    found = _programs(context)
    missing = [code for code in _PAPER if code not in found]
    if missing:
        skipped.append(f"{', '.join(missing)}: no such programs there; {_WHERE}")
    points_of = {}
    for code, path in found.items():
        ranks = _PAPER[code][0]
        points_of[Workload(f"{code}, class {_class_of(path)}", PROGRAM, (str(path),), ranks, once=True, patience=10)] = [
            Point(policy, policy, buffers, policies.mca((*policies.with_buffers(policy, buffers, ranks), _GROWTH, ("by_reference", "always"))))
            for policy, buffers in ((_STATIC, _BUFFERS), (_DYNAMIC, _FEW_BUFFERS)) if policy in chosen]
    return building.plan(points_of, [], skipped)


def _measured(results, policy):
    """The line of each code, and whether it is of the paper's class."""
    return {line.workload.split(",")[0]: (line, line.workload.endswith(f" {_CLASS}")) for line in results.lines
            if line.series == policy and line.counters}


def _judge(results, context):
    return [*_judge_messages(_measured(results, _STATIC)), *_judge_buffers(_measured(results, _DYNAMIC))]


def _messages(line):
    """Explicit credit messages, and all, of a process."""
    counters = line.counters
    explicit, sent = counters["credit_packets"] / line.ranks, counters["messages_sent"] / line.ranks
    return explicit, sent + explicit


def _judge_messages(found):
    counts = {code: _messages(line) for code, (line, _) in found.items()}
    shares = {code: 100.0 * explicit / total for code, (explicit, total) in counts.items()}
    text = because("explicit credit messages of all, of a process: " + _beside(
        found, lambda code: "{:.0f} of {:.0f}".format(*counts[code]), lambda code: "{} of {}".format(*_PAPER[code][1:3])))
    others = [share for code, share in shares.items() if code != "LU"]
    shown = abs(shares["LU"] - _LU_PERCENT) <= _LU_TOLERANCE if "LU" in shares and found["LU"][1] else None
    return [verdict(f"LU: {_LU_PERCENT:g} % of the messages are explicit credit messages under the user-level static scheme with {_BUFFERS} buffers "
                    "(table 1).", shown, text),
            verdict(f"Almost none, {_ALMOST_NONE_PERCENT:g} % at most, are with the other codes (table 1).",
                    max(others) <= _ALMOST_NONE_PERCENT if others else None, text, FITTED)]


def _judge_buffers(found):
    buffers = {code: line.counters["largest_share"] for code, (line, _) in found.items()}
    text = because("most buffers of a connection: " + _beside(found, lambda code: f"{buffers[code]:.0f}", lambda code: str(_PAPER[code][3])))
    others = [count for code, count in buffers.items() if code != "LU"]
    most = buffers["LU"] > max(others) if others and "LU" in buffers and found["LU"][1] else None
    return [verdict(f"No code but LU needs more than {_OTHERS_BUFFERS} buffers under the user-level dynamic scheme (table 2).",
                    max(others) <= _OTHERS_BUFFERS if others else None, text),
            verdict("LU needs most of all (table 2).", most, text)]


def _beside(found, here, there):
    """What was counted, and in brackets what the paper has."""
    return ", ".join(f"{code} {here(code)} (paper {there(code)})" + ("" if of_paper else f", not of class {_CLASS}")
                     for code, (_, of_paper) in found.items()) or "not measured"


def _draw(_context):
    def share(explicit, total):
        return 100.0 * explicit / total

    return [("table 1: explicit credit messages, user-level static, 100 buffers",
             _bars(_STATIC, lambda line: share(*_messages(line)), lambda code: share(*_PAPER[code][1:3]), "% of messages")),
            ("table 2: most buffers of a connection, user-level dynamic",
             _bars(_DYNAMIC, lambda line: line.counters["largest_share"], lambda code: _PAPER[code][3], "buffers"))]


def _bars(policy, here, there, y_label):
    def draw(panel, results):
        found = _measured(results, policy)
        for shift, label, values in ((-0.2, "here", [here(line) for line, _ in found.values()]), (0.2, "paper", [there(code) for code in found])):
            panel.bar([place + shift for place in range(len(found))], values, 0.4, label=label)
        panel.set_xticks(range(len(found)), list(found))
        panel.set_ylabel(y_label, fontsize=8)
    return draw


EXPERIMENT = Experiment(
    "nas", "NAS Parallel Benchmarks", "Liu & Panda, section 6.3, tables 1 and 2",
    "With 100 buffers only LU has explicit credit messages, 18 % of all; and only LU needs more than 7 buffers where the user-level dynamic "
    "scheme gives them. Each message is one packet here (`by_reference always`), as it is one buffer there.",
    _plan, _judge, _draw, compared="counts of messages and buffers")
