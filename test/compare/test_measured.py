"""contrib/dev/measured: pages out of results of velo-versus, on results that are written here."""

import json

import pytest

from velo.dev import measured

NEAR, FAR = [[0.05, 1.0]] * 2, [[0.2, 1.0]] * 2
USUAL = {"velo": 1.05, "mtl": 0.9, "before": 9.0, "vader": 1.1, "ucx": 1.0, "mpich": 1.2}
MPIS = {"mpich": "mpich"}
LAYERS = {"velo": "btl", "mtl": "mtl", "before": "btl"}


def run(name, number, usec, ends, pattern="pingpong", size=8):
    point = {"usec": usec, "min_usec": usec, "max_usec": usec, "iterations": 1, "repetitions": 5, "defects": 0, "messages": 1,
             "mbytes_per_second": 1.0}
    return {"contestant": name, "pattern": pattern, "program": [], "share_percent": None, "ranks": 2, "round": number, "command": "", "times": {size: point}, "lines": {size: ends},
            "failure": None}


def runs(rounds, ends, usec=None, **where):
    return [run(name, number, usual, ends, **where) for number in rounds for name, usual in (USUAL | (usec or {})).items()]


def result(path, entries, cpu="Some CPU (family 1, model 2)", min_blocks=8, **head):
    document = {
        "version": 2, "date": "2026-11-22T10:00+00:00", "commit": "abc", "velo": "0.1.0", "open_mpi": "4.1.4", "runs": entries,
        "machine": {"cpu": cpu, "load": 0.0, "kernel": "Linux 6", "system": "Debian", "ucx": "1.13"},
        "settings": {"min_blocks": min_blocks, "between_nodes": False, "point_ms": 20},
        "contestants": [{"name": name, "library": "Some MPI 1", "layer": LAYERS.get(name, ""), "mpi": MPIS.get(name, "openmpi"), "command": ""} for name in USUAL],
    } | head
    path.write_text(json.dumps(document))
    return str(path)


def rows(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ping-pong")]


def test_each_distance_with_enough_blocks_has_a_page_of_its_own(tmp_path, capsys):
    given = result(tmp_path / "r.json", runs(range(8), NEAR) + runs(range(8, 16), FAR, {"velo": 2.0}, size=256)
                   + runs(range(16, 23), [[0.026, 1.6]] * 2))
    assert measured.main([given, "--into", str(tmp_path / "pages")]) == 0
    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == [
        "README.md", "some-cpu-family-1-model-2-far.md", "some-cpu-family-1-model-2-shared-cache.md"]
    assert "sibling threads: at most 7 blocks of everybody, fewer than 8" in capsys.readouterr().out
    near = (tmp_path / "pages" / "some-cpu-family-1-model-2-shared-cache.md").read_text()
    assert near.startswith("# Some CPU (family 1, model 2), shared cache\n") and "commit abc" in near and "Some MPI 1, UCX 1.13" in near
    assert rows(near)[0] == ["ping-pong", "8 B", "1.05", "0.9", "1 ucx", "1.05", "1.00 of vader (0.95), met", "0.90", "0.95, met", "8"]
    far = (tmp_path / "pages" / "some-cpu-family-1-model-2-far.md").read_text()
    assert rows(far)[-1] == ["ping-pong", "256 B", "2", "0.9", "1 ucx", "2.00", "0.90, **missed**", "0.90", "0.85, **missed**", "8"]
    assert "Goals met: BTL 0 of 1; MTL 0 of 1." in far


def test_pages_of_other_processors_stay_and_are_listed(tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "README.md").write_text("# Measured\n\nSome words.\n\n- [gone](gone.md)\n")
    (pages / "by-hand.md").write_text("# By hand\n\nnumbers\n")
    older, newer = (result(tmp_path / f"{cpu}.json", runs(range(8), NEAR), cpu=cpu) for cpu in ("Old", "New"))
    for given in (older, newer):
        assert measured.main([given, "--into", str(pages)]) == 0
    before = (pages / "old-shared-cache.md").read_text()
    measured.main([result(tmp_path / "again.json", runs(range(8), NEAR, {"mtl": 2.0}), cpu="New", commit="def"), "--into", str(pages)])
    assert (pages / "old-shared-cache.md").read_text() == before
    assert rows((pages / "new-shared-cache.md").read_text())[0][7] == "2.00" and "commit def" in (pages / "new-shared-cache.md").read_text()
    assert (pages / "by-hand.md").read_text() == "# By hand\n\nnumbers\n"
    assert (pages / "README.md").read_text() == ("# Measured\n\nSome words.\n\n- [By hand](by-hand.md)\n- [New, shared cache](new-shared-cache.md)\n"
                                                 "- [Old, shared cache](old-shared-cache.md)\n")


def test_results_of_one_build_are_taken_together_and_those_of_two_are_not(tmp_path, capsys):
    first = result(tmp_path / "1.json", runs(range(5), NEAR))
    second = result(tmp_path / "2.json", runs(range(3), NEAR, {"velo": 3.0}))
    assert measured.main([first, "--into", str(tmp_path / "alone")]) == 1, "five blocks are too few"
    assert not list((tmp_path / "alone").glob("some*"))
    assert measured.main([first, second, "--into", str(tmp_path / "both")]) == 0
    assert rows((tmp_path / "both" / "some-cpu-family-1-model-2-shared-cache.md").read_text())[0][9] == "8"
    other = result(tmp_path / "3.json", runs(range(8), NEAR), commit="def")
    assert measured.main([first, other, "--into", str(tmp_path / "both")]) == 2
    assert "differ in commit" in capsys.readouterr().err


def test_a_size_with_too_few_blocks_of_somebody_says_so_and_has_no_ratio(tmp_path):
    entries = runs(range(8), NEAR) + [entry for entry in runs(range(8), NEAR, size=64) if (entry["contestant"], entry["round"]) != ("ucx", 3)]
    measured.main([result(tmp_path / "r.json", entries), "--into", str(tmp_path)])
    assert rows((tmp_path / "some-cpu-family-1-model-2-shared-cache.md").read_text())[1][4:] == ["-", "-", "1.10", "-", "1.00", "7, too few"]


def test_programs_have_a_page_of_ratios_and_shares_with_the_variants(tmp_path):
    entries = [entry | {"program": ["lmp", "-in", "in.melt"], "share_percent": 30.0} for entry in runs(range(8), NEAR, pattern="melt", size=0)
               if entry["contestant"] != "mpich"]
    for entry in entries:
        entry["times"][0]["usec"] *= 1 + 0.1 * (entry["round"] == 0)
    entries += [entry | {"program": ["{mpi}/ep.x"], "share_percent": 1.0} for entry in runs(range(8), NEAR, {"velo": 1.01}, pattern="ep", size=0)]
    for entry in entries:
        entry["times"][0]["usec"] *= 1e6
    assert measured.main([result(tmp_path / "r.json", entries + runs(range(8), NEAR)), "--into", str(tmp_path)]) == 0
    text = (tmp_path / "some-cpu-family-1-model-2-shared-cache-programs.md").read_text()
    assert text.startswith("# Some CPU (family 1, model 2), shared cache: programs\n")
    assert ("| melt `lmp -in in.melt` | 1 s ucx | **1.05**, 30 % | 0.90, 30 % | **9.00**, 30 % | 1.10, 30 % | 1.00, 30 % | - | 8 |" in text), \
        "lmp is a program of Open MPI's"
    assert "| ep `{mpi}/ep.x` | 1 s ucx | 1.01, 1 % | 0.90, 1 % | **9.00**, 1 % | 1.10, 1 % | 1.00, 1 % | 1.20, 1 % | 8 |" in text
    assert "Aim met: velo 1 of 2; mtl 2 of 2; before 0 of 2." in text
    assert "The runs of one contestant lie 5 % apart" in " ".join(text.split()), "10 of melt, none of ep"
    patterns = (tmp_path / "some-cpu-family-1-model-2-shared-cache.md").read_text()
    assert "melt" not in patterns and "9.00" not in patterns


@pytest.mark.parametrize("change, complaint", [({"version": 1}, "is no velo-versus.json of this version"),
                                               ({"settings": {"between_nodes": True}}, "between nodes there are no distances")])
def test_other_files_are_refused(tmp_path, capsys, change, complaint):
    assert measured.main([result(tmp_path / "r.json", [], **change), "--into", str(tmp_path)]) == 2
    assert complaint in capsys.readouterr().err
