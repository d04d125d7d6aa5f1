"""velo-measure transports --regret and velo-info --calibrate: what they read, and what they make of it."""

import re
from types import SimpleNamespace

import pytest

from velo.command import Trouble
from velo.info import routes
from velo.versus import regret
from velo.versus.regret import Bench, Point

OSU = """
# OSU MPI Bandwidth Test v7.4
# Size      Bandwidth (MB/s)
1024                 2000.00
2048                 4000.00
"""
IMB = """
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         0.20         0.00
         1024         1000         0.50      2048.00
"""


@pytest.mark.parametrize("bench, text, times", [
    (Bench("osu_bw", ("osu_bw",), True), OSU, {1024: 0.512, 2048: 0.512}),
    (Bench("PingPong", ("IMB-MPI1",), True), IMB, {1024: 0.5}),
    (Bench("latency", (), False), "8 0.125\n16 0.250\nsome warning 3\n", {8: 0.125, 16: 0.25})])
def test_times_are_microseconds_of_a_message(bench, text, times):
    assert bench.times(text) == pytest.approx(times)


def contestant(name, layer=""):
    return SimpleNamespace(name=name, layer=layer, is_velo=bool(layer))


def test_regret_is_the_default_by_the_best_fixed_way_and_lead_by_the_best_other():
    points = [Point("bw", 1024, "far", {"velo": [2.0, 1.0, 3.0], "never": [4.0], "packets-reader": [1.6], "vader": [8.0], "ucx": [4.0]}),
              Point("bw", 2048, "far", {"velo": [1.0], "never": [4.0], "packets-reader": [2.0], "vader": [2.0]}),
              Point("bw", 1024, "shared cache", {"velo": [9.0], "vader": [3.0]})]
    text = regret.text(points, [contestant("velo", "btl"), contestant("never", "btl"), contestant("packets-reader", "btl"),
                                contestant("vader"), contestant("ucx")], {("ucx", "bw"): "exit status 1"})
    first, second, third = (line.split() for line in text.splitlines() if re.match("(far|shared cache) +bw", line))
    assert first[-2:] == ["1.25", "0.50"]
    assert second[-2:] == ["1.00", "0.50"], "where the default is the best, there is no regret"
    assert third[-2:] == ["9.00", "3.00"], "what was not measured at the same distance is not compared"
    assert "regret (the default / the best fixed way): mean 1.118 (goal 1.02), worst 1.25, above 1.05 at 1 of 2 points, in the fastest round, too, at 0" in text
    assert "FAILED: ucx, bw: exit status 1" in text


def test_what_one_round_shows_alone_is_noise():
    point = Point("bw", 8, "", {"velo": [2.0, 3.0], "never": [2.0, 2.0]})
    assert not point.stands_out("velo", ["never"], 1.05)
    point.times["velo"] = [2.2, 3.0]
    assert point.stands_out("velo", ["never"], 1.05)


def test_a_border_is_where_both_ways_together_cost_least():
    costs = {"packets": {512: 1.0, 1024: 1.0, 2048: 2.0}, "reference": {512: 1.5, 1024: 1.1, 2048: 1.0}}
    assert routes.limit(costs, "packets", "reference") == 2048
    assert routes.limit({"packets": {512: 1.0}, "reference": {512: 2.0}}, "packets", "reference") is None


def test_long_messages_are_staged_then_read_then_copied_by_both():
    costs = {"staged": {1: 1.0, 2: 2.0, 3: 3.0, 4: 3.0}, "reader": {1: 2.0, 2: 1.0, 3: 2.0, 4: 2.0}, "both": {1: 3.0, 2: 2.0, 3: 1.0, 4: 1.0}}
    assert routes._long(costs) == (1, 3)
    costs = {"staged": {1: 2.0, 2: 2.0}, "reader": {1: 1.0, 2: 1.0}, "both": {1: 3.0, 2: 2.0}}
    assert routes._long(costs) == (0, "never")


def test_a_directory_in_place_of_the_calibration_shows_before_anything_is_measured(monkeypatch, tmp_path):
    monkeypatch.setenv("VELO_ROUTES_FILE", str(tmp_path))
    monkeypatch.setattr(routes, "_ask", lambda *_: "safe values\na processor\n\n")
    monkeypatch.setattr(routes, "beside", lambda *_: "mpicc")
    monkeypatch.setattr(routes.os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(Trouble, match="is a directory"):
        routes.calibrate(SimpleNamespace(mpirun="mpirun"), None)
    assert not list(tmp_path.parent.glob(f"{tmp_path.name}.*"))


class _Times:
    """Runs of which one way takes least, at every size."""

    settled = ""

    def __init__(self, *best):
        self._best = best

    def compare(self, _pattern, sizes, ways):
        return {way: dict.fromkeys(sizes, 1.0 if way in self._best else 2.0) for way in ways}


@pytest.mark.parametrize("best, both, row", [
    (("string", "packets", "staged"), "", "copy string reference never one-way staged 4194304 cold 4194304 both-ways staged 4194304 cold 4194304"),
    (("vectors", "reference", "both"), "one-way both 16384 both-ways both 16384",
     "copy vectors reference 512 one-way staged 0 cold 0 both-ways staged 0 cold 0")])
def test_a_calibration_says_nothing_of_what_is_not_staged_where_all_is(best, both, row):
    assert routes._row(_Times(*best)) == (both, row)
