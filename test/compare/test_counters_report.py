"""The VELO-REPORT line."""

import json

import pytest

from velo.counters import COUNTERS, ReportError, counters_of, find_report


def report_line(**total):
    counters = {name: 0 for name in COUNTERS} | total
    ranks = [{"rank": rank, "mailbox_bytes": 4096 * (rank + 1), "outbox_high_water": 2304 * (2 - rank)} for rank in range(2)]
    return "VELO-REPORT " + json.dumps({"version": 1, "per_rank": ranks, "total": counters}) + "\n"


def test_line_is_found_among_other_output():
    text = "[host:1] warning\n" + report_line(steals=7) + "more\n"
    assert find_report(text)["total"]["steals"] == 7


def test_no_line_means_no_report():
    assert find_report("nothing here\n") is None


def test_rates_follow_from_the_counters():
    counters = counters_of(find_report(report_line(messages_sent=4000, messages_delayed=100, credit_packets=10,
                                                    messages_by_reference=3000)))
    assert counters["delayed_percent"] == 2.5
    assert counters["by_reference_percent"] == 75.0
    assert counters["credit_packets_per_1000_messages"] == 2.5


def test_rates_without_messages_are_unknown():
    counters = counters_of(find_report(report_line()))
    assert counters["delayed_percent"] is None
    assert counters["by_reference_percent"] is None
    assert counters["credit_packets_per_1000_messages"] is None


def test_memory_is_that_of_the_largest_rank():
    counters = counters_of(find_report(report_line()))
    assert counters["mailbox_bytes_per_rank"] == 8192
    assert counters["outbox_high_water"] == 4608
    assert counters["mailbox_high_water"] is None


@pytest.mark.parametrize(
    "line",
    [
        "VELO-REPORT {\"version\": 1,",
        "VELO-REPORT {\"version\": 1}",
        "VELO-REPORT {\"version\": 2, \"total\": {}, \"per_rank\": []}",
        "VELO-REPORT {\"version\": 1, \"total\": {}, \"per_rank\": []}",
        "VELO-REPORT []",
    ],
)
def test_report_that_cannot_be_understood_is_an_error(line):
    with pytest.raises(ReportError):
        find_report(line)
