"""Beyond the papers: everyone sends to one."""

from .. import building
from ..experiment import Experiment, Panel
from ..judging import because, verdict
from ..measurement import MEASURE, Workload
from ..runner import POINTS

_WINDOW = 16


def _plan(context):
    chosen, skipped = building.chosen_policies(context, tuple(context.plugin.policies))
    slots = building.chosen_slots(context, (8, 16, 32, 64), (8, 64))
    words = (POINTS, "Incast", "--window", str(_WINDOW), "--seconds", f"{context.seconds:g}")
    workload = Workload("incast", MEASURE, words, context.ranks)
    points = [building.reference(context, slots=max(context.reference_slots, 1024))] + [
        building.point(context, policy, count) for policy in chosen for count in slots]
    return building.plan({workload: points}, [
        Panel("overhead", "incast", "overhead_percent", "overhead %", overhead_scale=True),
        Panel("fullest mailbox", "incast", "mailbox_high_water", "packets (sampled)"),
        Panel("mailbox", "incast", "mailbox_bytes_per_rank", "bytes for each rank"),
    ], skipped)


def _judge(results, context):
    lines = [line for line in results.lines if not line.is_reference]
    failed = [f"{line.series} with {line.x:g} slots" for line in lines if line.time_usec is None]
    over = [line for line in lines if (_share(line) or 0) > 100]
    unknown = [line for line in lines if _share(line) is None]
    within = None if not lines or unknown else True
    return [
        verdict("Every policy ends, with any mailbox, and delivers the right data.", not failed if lines else None,
                because("failed: " + ", ".join(failed) if failed else f"{len(lines)} setups of {context.ranks} ranks ended")),
        verdict("No mailbox ever holds more than its slots.", False if over else within,
                because("over: " + _names(over) if over else "", "not measured: " + _names(unknown) if unknown else "",
                        "fullest, in % of the slots: " + (", ".join(_fill(line) for line in lines if _fill(line)) or "none"))),
    ]


def _share(line):
    water, size = line.counters.get("mailbox_high_water"), line.counters.get("mailbox_bytes_per_rank")
    return None if water is None or not size else 100.0 * 64 * water / size


def _names(lines):
    return ", ".join(f"{line.series} {line.x:g}" for line in lines)


def _fill(line):
    return "" if _share(line) is None else f"{line.series} {line.x:g}: {_share(line):.0f}"


EXPERIMENT = Experiment(
    "incast", "Everyone sends to one", "beyond the papers",
    f"All other ranks send {_WINDOW} messages of 2 KB at once to rank 0: nothing hangs, and the memory of the receiver stays what "
    "it was at the start.",
    _plan, _judge)
