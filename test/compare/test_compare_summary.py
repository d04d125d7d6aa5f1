"""Medians, overheads and averages."""

import csv
import io

import pytest

from velo.compare import report, story, summary
from velo.compare.plan import Case, Chosen, Setup
from velo.compare.runner import Result
from velo.rounds import Run

BCAST, ALLTOALL = Case("Bcast", 2048), Case("Alltoall", 2048)
REFERENCE, STATIC = Setup("none", 64, "never"), Setup("static", 8, "never")
CHOSEN = Chosen(("static", "dynamic"), (8,), ("never", "auto"))


def result(case, setup, time_usec=None, counters=None, failure=None):
    return Result(Run(case, setup, 0), "mpirun ...", 0.1, time_usec, 100, counters, failure)


def lines_of(results, all_cases=(BCAST,)):
    return summary.summarise(results, list(all_cases), [REFERENCE, STATIC], REFERENCE)


def test_time_is_the_median_of_the_rounds():
    reference, static = lines_of(
        [result(BCAST, REFERENCE, t) for t in (10, 12, 90)] + [result(BCAST, STATIC, t) for t in (15, 14)])
    assert (reference.time_usec, reference.time_min_usec, reference.time_max_usec) == (12, 10, 90)
    assert static.time_usec == 14.5


def test_overhead_is_relative_to_the_reference_of_the_same_benchmark():
    lines = lines_of(
        [result(BCAST, REFERENCE, 10), result(BCAST, STATIC, 12),
         result(ALLTOALL, REFERENCE, 100), result(ALLTOALL, STATIC, 90)],
        [BCAST, ALLTOALL])
    assert [line.overhead_percent for line in lines] == pytest.approx([0, 20, 0, -10])
    assert [line.time_ratio for line in lines] == pytest.approx([1, 1.2, 1, 0.9])


def test_overhead_without_reference_is_unknown():
    lines = lines_of([result(BCAST, STATIC, 12), result(BCAST, REFERENCE, failure="hang")])
    assert [line.overhead_percent for line in lines] == [None, None]
    assert [line.time_usec for line in lines] == [None, 12]


def test_counters_are_medians_of_the_runs_that_printed_them():
    counters = [{"steals": 1, "delayed_percent": None}, {"steals": 5, "delayed_percent": 2.0}, None]
    _, static = lines_of([result(BCAST, STATIC, 1, c) for c in counters])
    assert static.counters == {"steals": 3, "delayed_percent": 2.0}


def test_average_is_over_the_benchmarks_that_have_an_overhead():
    lines = lines_of(
        [result(BCAST, REFERENCE, 10), result(BCAST, STATIC, 12),
         result(ALLTOALL, REFERENCE, 100), result(ALLTOALL, STATIC, 140)],
        [BCAST, ALLTOALL])
    static = next(a for a in summary.averages(lines) if a.setup == STATIC)
    assert static.overhead_percent == pytest.approx(30)
    assert (static.worst, static.benchmarks) == ("Alltoall", 2)


def test_typical_overhead_is_the_geometric_mean_of_the_ratios():
    assert summary.typical_percent([100.0, -50.0]) == pytest.approx(0)
    assert summary.typical_percent([300.0, 0.0, 700.0]) == pytest.approx(217.48, abs=0.01)


def test_incomplete_average_says_so():
    lines = lines_of(
        [result(BCAST, REFERENCE, 10), result(BCAST, STATIC, 12), result(ALLTOALL, REFERENCE, 100)],
        [BCAST, ALLTOALL])
    text = report.averages_text(summary.averages(lines), CHOSEN, REFERENCE)
    assert [line.split(maxsplit=2)[2] for line in text.splitlines() if line.startswith("static   never")] == [
        "+20.0 (of 1)", "+20.0 (of 1)", "+20.0 Bcast (of 1)"]
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("dynamic")] == 6 * ["n/a"]


def test_ratios_of_each_benchmark_stand_in_a_table_of_their_own():
    lines = lines_of([result(BCAST, REFERENCE, 10), result(BCAST, STATIC, 12)])
    rows = [line.split() for line in report.ratios_text(lines, CHOSEN, REFERENCE).splitlines() if line.startswith("Bcast")]
    assert rows == [["Bcast", "static", "never", "1.20"], ["Bcast", "static", "auto", "n/a"],
                    ["Bcast", "dynamic", "never", "n/a"], ["Bcast", "dynamic", "auto", "n/a"]]


def test_three_lines_say_what_there_is_to_see():
    counters = {"delayed_percent": 80.0, "mailbox_bytes_per_rank": 2048}
    lines = lines_of(
        [result(BCAST, REFERENCE, 10, {"mailbox_bytes_per_rank": 16384}), result(BCAST, STATIC, 12, counters),
         result(ALLTOALL, REFERENCE, 100), result(ALLTOALL, STATIC, 300)],
        [BCAST, ALLTOALL])
    head, never, auto, memory = story.text(summary.averages(lines), CHOSEN, REFERENCE, {}).splitlines()
    assert head.startswith("What you see with 8 slots per peer: overhead against none with 64 slots per peer, 2048 bytes")
    assert never.endswith(": static +110 % (Alltoall +200 %), 80 % delayed")
    assert auto.split()[0] == "auto" and auto.endswith("not measured")
    assert memory == "  for a mailbox of 2048 bytes per rank, where 64 slots take 16384"


@pytest.mark.parametrize("spread, told", [
    (5, "static +15 % (Bcast +20 %)"), (15, "static within the noise of 15 % (Bcast +20 %)"), (50, "static within the noise of 50 %")])
def test_what_is_less_than_the_noise_is_no_finding(spread, told):
    lines = lines_of([result(BCAST, REFERENCE, 10), result(BCAST, STATIC, 12), result(ALLTOALL, REFERENCE, 100), result(ALLTOALL, STATIC, 110)],
                     [BCAST, ALLTOALL])
    _, never, _, _ = story.text(summary.averages(lines), CHOSEN, REFERENCE, dict.fromkeys((BCAST, ALLTOALL), spread)).splitlines()
    assert never.endswith(": " + told)


def test_noise_is_the_spread_of_the_reference():
    lines = lines_of([result(BCAST, REFERENCE, t) for t in (9, 10, 12)])
    assert summary.reference_spreads(lines) == {BCAST: pytest.approx(30)}


def test_unknown_values_are_not_available_in_text_and_empty_in_csv(tmp_path):
    lines = lines_of([result(BCAST, REFERENCE, 10), result(BCAST, STATIC, failure="exit status 1")])
    static = report.table_text(lines).splitlines()[-1]
    assert static.split()[:5] == ["Bcast", "2048", "8", "static", "never"]
    assert set(static.split()[5:]) == {"n/a"}
    report.write_csv(tmp_path / "table.csv", lines)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert rows[0]["time_usec"] == "10" and rows[0]["steals"] == ""
    assert rows[1]["time_usec"] == "" and rows[1]["overhead_percent"] == ""
