"""contrib/dev/measured: pages out of results of velo-measure transports, on results that are written here."""

import json

from velo.dev import measured

NEAR, FAR = [[0.05, 1.0]] * 2, [[0.2, 1.0]] * 2
USUAL = {"velo": 1.05, "mtl": 0.9, "before": 9.0, "vader": 1.1, "ucx": 1.0, "mpich": 1.2}
MPIS = {"mpich": "mpich"}
LAYERS = {"velo": "btl", "mtl": "mtl", "before": "btl"}
SETTINGS = {"min_blocks": 8, "between_nodes": False, "point_ms": 20}


def run(name, number, usec, ends, pattern="pingpong", size=8, ranks=2):
    point = {"usec": usec, "min_usec": usec, "max_usec": usec, "iterations": 1, "repetitions": 5, "defects": 0, "messages": 1,
             "mbytes_per_second": 1.0}
    return {"contestant": name, "pattern": pattern, "program": [], "share_percent": None, "ranks": ranks, "round": number, "command": "", "times": {size: point},
            "lines": {size: ends} if ends else {}, "failure": None}


def runs(rounds, ends, usec=None, **where):
    return [run(name, number, usual, ends, **where) for number in rounds for name, usual in (USUAL | (usec or {})).items()]


def result(path, entries, cpu="Some CPU (family 1, model 2)", **head):
    document = {
        "version": 2, "date": "2026-11-22T10:00+00:00", "commit": "abc", "velo": "0.1.0", "open_mpi": "4.1.4", "runs": entries,
        "machine": {"cpu": cpu, "load": 0.0, "usable_cores": 4, "kernel": "Linux 6", "system": "Debian", "ucx": "1.13"},
        "settings": SETTINGS,
        "contestants": [{"name": name, "library": "Some MPI 1", "layer": LAYERS.get(name, ""), "mpi": MPIS.get(name, "openmpi"), "command": ""} for name in USUAL],
    } | head
    path.write_text(json.dumps(document))
    return str(path)


def rows(text, first="ping-pong"):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith(f"| {first}")]


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


def test_the_list_begins_with_the_best_and_the_worst_of_each_class(tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "README.md").write_text("# Measured\n\n<!-- summary -->\nold\n<!-- end of the summary -->\n\nMore.\n")
    (pages / "programs.md").write_text("# CPU (family 1, virtual), shared cache: programs\n\n|  | best other | velo | mtl | vader | blocks |\n|---|---|---|---|---|---|\n"
                                       "| LU `lu.x` | 1 s vader | **1.30**, 9 % | 0.90, 9 % | 1.00, 9 % | 4 |\n| IS `is.x` | 1 s vader | 0.5 s, 9 % | 1.10, 9 % | 1.00, 9 % | 2 |\n")
    (pages / "collectives.md").write_text("# CPU (family 1, virtual), collectives, 4 ranks\n\n| | size | BTL, µs | BTL | goal | MTL | goal |\n|---|---|---|---|---|---|---|\n"
                                          "| Bcast, 4 ranks | 8 B | 1 | 0.50 | | 0.40 | |\n| Bcast, 4 ranks | 1 KiB | 1 | 0.70 | | - | |\n| Ibcast, 4 ranks | 8 B | 1 | 0.60 | | 2.00 | |\n")
    measured.write_list(pages)
    text = (pages / "README.md").read_text()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.partition("### CPU (family 1)")[2].splitlines() if line.startswith("|")][2:]
    assert table == [
        ["[collectives, 4 ranks](collectives.md)", "blocking", "0.60", "0.50 (Bcast 8 B)", "0.70 (Bcast 1 KiB)", "0.40", "0.40 (Bcast 8 B)", "0.40 (Bcast 8 B)"],
        ["", "non-blocking", "0.60", "0.60 (Ibcast 8 B)", "0.60 (Ibcast 8 B)", "2.00", "2.00 (Ibcast 8 B)", "2.00 (Ibcast 8 B)"],
        ["[shared cache: programs](programs.md)", "programs", "1.30", "1.30 (LU)", "1.30 (LU)", "1.00", "0.90 (LU)", "1.10 (IS)"]]
    assert "old" not in text and text.endswith("\n\nMore.\n"), "what the summary links is not listed again"
    (pages / "by-hand.md").write_text("# By hand\n")
    measured.write_list(pages)
    assert (pages / "README.md").read_text() == text + "\n- [By hand](by-hand.md)\n"


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


def test_collectives_have_a_page_for_each_distance_and_one_for_each_number_of_ranks_beyond(tmp_path):
    entries = (runs(range(8), NEAR, {"velo": 0.5}, pattern="bcast", size=8) + runs(range(8), NEAR, {"velo": 0.9}, pattern="bcast-rotating", size=4096)
               + runs(range(8), FAR, pattern="barrier", size=0) + runs(range(8), None, {"velo": 0.6}, pattern="bcast", size=8, ranks=16))
    collectives = result(tmp_path / "c.json", entries, settings=SETTINGS | {"collectives": True})
    plain = result(tmp_path / "p.json", runs(range(8), NEAR))
    assert measured.main([collectives, plain, "--into", str(tmp_path / "pages")]) == 0
    stem = "some-cpu-family-1-model-2"
    assert sorted(path.name for path in (tmp_path / "pages").glob("some*")) == [
        f"{stem}-collectives-16-ranks.md", f"{stem}-collectives-far.md", f"{stem}-collectives-shared-cache.md", f"{stem}-shared-cache.md"]
    near = (tmp_path / "pages" / f"{stem}-collectives-shared-cache.md").read_text()
    assert near.startswith("# Some CPU (family 1, model 2), collectives, shared cache\n") and "Two bound ranks" in near
    assert [row[:2] + row[5:7] for row in rows(near, "Bcast")] == [["Bcast", "8 B", "0.50", "0.70, met"],
                                                                   ["Bcast, root rotating", "4 KiB", "0.90", "0.75, **missed**"]]
    many = (tmp_path / "pages" / f"{stem}-collectives-16-ranks.md").read_text()
    assert "16 ranks on 4 processors, not bound" in many and "of this distance" not in many and "cache line" not in many
    assert rows(many, "Bcast")[0][5:7] == ["0.60", "0.50, **missed**"], "the goals of many ranks"


def test_between_nodes_there_is_a_page_for_each_number_of_ranks_with_the_goals_that_are_there(tmp_path):
    messages = result(tmp_path / "m.json", runs(range(8), None, {"velo": 0.95}), settings=SETTINGS | {"between_nodes": True})
    casts = result(tmp_path / "c.json", runs(range(8), None, {"velo": 0.7}, pattern="bcast", size=2048, ranks=8),
                   settings=SETTINGS | {"between_nodes": True, "collectives": True})
    assert measured.main([messages, casts, "--into", str(tmp_path / "pages")]) == 0
    found = {path.name: path.read_text() for path in (tmp_path / "pages").glob("some*")}
    assert sorted(found) == ["some-cpu-family-1-model-2-between-nodes-two-ranks.md", "some-cpu-family-1-model-2-collectives-between-nodes-8-ranks.md"]
    two, eight = (found[name] for name in sorted(found))
    assert "Two ranks on nodes by turns" in two and rows(two)[0][5:7] == ["0.95", "0.90, **missed**"]
    assert "8 ranks on nodes by turns" in eight and rows(eight, "Bcast")[0][5:7] == ["0.70", "0.60, **missed**"]


def test_a_file_of_another_version_is_refused(tmp_path, capsys):
    assert measured.main([result(tmp_path / "r.json", [], version=1), "--into", str(tmp_path)]) == 2
    assert "is no transports.json of this version" in capsys.readouterr().err


def test_what_is_no_result_of_velo_versus_is_refused_and_leaves_nothing(tmp_path, capsys):
    for text in ("null", "[]", '{"version": 2, "runs": []}'):
        (tmp_path / "r.json").write_text(text)
        assert measured.main([str(tmp_path / "r.json"), "--into", str(tmp_path / "pages")]) == 2
        assert "is no transports.json of this version" in capsys.readouterr().err
    nothing = result(tmp_path / "r.json", [])
    assert measured.main([nothing, "--into", str(tmp_path / "pages")]) == 1
    assert "no page was written" in capsys.readouterr().out
    assert not (tmp_path / "pages").exists()


def test_the_same_results_twice_and_those_of_other_settings_are_refused(tmp_path, capsys):
    one, same = (result(tmp_path / f"{name}.json", runs(range(8), NEAR)) for name in ("one", "same"))
    assert measured.main([one, same, "--into", str(tmp_path / "pages")]) == 2
    assert "same.json and " in (told := capsys.readouterr().err) and "hold the same results" in told
    longer = result(tmp_path / "longer.json", runs(range(8), NEAR), settings=SETTINGS | {"point_ms": 500})
    assert measured.main([one, longer, "--into", str(tmp_path / "pages")]) == 2
    assert "differ in point_ms" in capsys.readouterr().err
    assert not (tmp_path / "pages").exists()


def test_a_page_of_an_interrupted_series_says_so(tmp_path):
    given = result(tmp_path / "r.json", runs(range(8), NEAR), complete=False)
    assert measured.main([given, "--into", str(tmp_path / "pages")]) == 0
    assert "**Ended before all was measured.**" in (tmp_path / "pages" / "some-cpu-family-1-model-2-shared-cache.md").read_text()


def test_a_file_that_is_no_json_is_named(tmp_path, capsys):
    (tmp_path / "r.json").write_text("something")
    assert measured.main([str(tmp_path / "r.json"), "--into", str(tmp_path)]) == 2
    assert "r.json: " in capsys.readouterr().err
