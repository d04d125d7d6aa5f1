"""What the comparison amounts to, in three lines for each message size, or two where there is one way by reference."""

import statistics

from .report import against

# What a user reads about a value of btl_velo_by_reference.
MEANING = {
    "never": "all data in packets",
    "auto": "short of credits one packet says where the data is",
    "always": "one packet for each message",
}


def text(averages, chosen, reference, noise):
    """`noise`: how far the reference times of each case lie apart, in %; empty where nobody knows."""
    sizes = dict.fromkeys(average.size_bytes for average in averages)
    return "\n\n".join(_of_size([a for a in averages if a.size_bytes == size], size, chosen, reference,
                                {case.benchmark: percent for case, percent in noise.items() if case.size_bytes == size}) for size in sizes)


def _of_size(averages, size_bytes, chosen, reference, noise):
    few = min(chosen.slots)
    lines = [f"What you see with {few} slots per peer: overhead against {against(reference, size_bytes)} "
             "(in brackets the worst benchmark)"]
    of_few = [a for a in averages if a.setup.slots == few and a.overhead_percent is not None]
    width = max(map(len, chosen.by_reference))
    for mode in chosen.by_reference:
        found = "; ".join(_cost(a, noise) for a in of_few if a.setup.by_reference == mode and a.setup.policy != "none")
        lines.append(f"  {mode:<{width}}  {MEANING[mode]}: {found or 'not measured'}")
    lines.append("  " + _memory(averages, few, reference))
    return "\n".join(lines)


def _cost(average, noise):
    """What is less than the noise is no finding."""
    of_all, of_worst = statistics.median(noise.values()) if noise else 0, noise.get(average.worst, 0)
    overhead = f"{average.overhead_percent:+.0f} %" if abs(average.overhead_percent) > of_all else f"within the noise of {of_all:.0f} %"
    worst = f" ({average.worst} {average.worst_percent:+.0f} %)" if abs(average.worst_percent) > of_worst else ""
    delayed = "" if average.delayed_percent is None else f", {average.delayed_percent:.0f} % delayed"
    return f"{average.setup.policy} {overhead}{worst}{delayed}"


def _memory(averages, few, reference):
    small = max((a.mailbox_bytes_per_rank for a in averages if a.setup.slots == few and a.mailbox_bytes_per_rank), default=None)
    large = next((a.mailbox_bytes_per_rank for a in averages if a.setup == reference), None)
    if not small or not large:
        return "mailbox memory: not known"
    return f"for a mailbox of {small:.0f} bytes per rank, where {reference.slots} slots take {large:.0f}"
