"""The counters that Velo prints at finalize: one line `VELO-REPORT {json}` from rank 0 on stderr.

Velo prints it when btl_velo_report is json. `total` holds the sums over all ranks of the keys of `per_rank`.
"""

import json
import statistics

MARK = "VELO-REPORT "
VERSION = 1

COUNTERS = (
    "messages_sent",
    "messages_delayed",
    "data_packets",
    "messages_by_reference",
    "batches",
    "batched_messages",
    "outbox_full",
    "credit_packets",
    "credits_in_packets",
    "piggybacked_credits",
    "requests",
    "responses",
    "steals",
    "stolen_slots",
)
# Of these the rank with the most counts: their sum is of no use to anybody.
HIGHEST = ("mailbox_high_water", "outbox_high_water", "largest_share")


class ReportError(ValueError):
    """There is a report line, and it is not what this program understands."""


def find_report(text):
    """The report in the output of a run, as a dict; None when there is no report line."""
    start = text.rfind(MARK)
    if start < 0:
        return None
    try:
        report, _ = json.JSONDecoder().raw_decode(text, start + len(MARK))
        if report["version"] != VERSION:
            raise ReportError(f"report version {report['version']}, this program reads version {VERSION}")
        _check_keys(report)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ReportError(f"damaged VELO-REPORT line: {error!r}") from error
    return report


def _check_keys(report):
    for key in COUNTERS:
        float(report["total"][key])
    for rank in report["per_rank"]:
        float(rank["mailbox_bytes"])


def counters_of(report):
    """The counters of a run summed over its ranks, with what follows from them."""
    total = {key: report["total"][key] for key in COUNTERS}
    sent = total["messages_sent"]
    total["delayed_percent"] = 100.0 * total["messages_delayed"] / sent if sent else None
    in_outbox = total["messages_by_reference"] + total["batched_messages"]
    total["by_reference_percent"] = 100.0 * in_outbox / sent if sent else None
    total["credit_packets_per_1000_messages"] = 1000.0 * total["credit_packets"] / sent if sent else None
    total["mailbox_bytes_per_rank"] = _highest(report, "mailbox_bytes")
    total.update((name, _highest(report, name)) for name in HIGHEST)
    return total


def medians(runs):
    """Each counter's median over the counters of several runs; what none has is left out."""
    names = dict.fromkeys(name for run in runs for name in run)
    values = {name: [run[name] for run in runs if run.get(name) is not None] for name in names}
    return {name: statistics.median(known) for name, known in values.items() if known}


def _highest(report, name):
    """Of all ranks; None where none has it."""
    return max((rank[name] for rank in report["per_rank"] if name in rank), default=None)
