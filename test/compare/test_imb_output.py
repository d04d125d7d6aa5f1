"""One parser reads IMB-MPI1 and velo-mpi-bench."""

import pytest

from velo import imb_output


def test_reads_every_section_of_imb(capture):
    output = imb_output.parse(capture("imb-mpi1"))
    assert [(s.benchmark, s.processes, s.groups) for s in output.sections] == [
        ("PingPong", 2, 1),
        ("Multi-Exchange", 2, 2),
        ("Exchange", 4, 1),
        ("Biband", 4, 1),
        ("Bcast", 4, 1),
        ("Barrier", 4, 1),
    ]
    assert output.finished


@pytest.mark.parametrize(
    "benchmark, size, time_usec",
    [
        ("PingPong", 0, 1.25),
        ("PingPong", 2048, 2.0),
        ("Multi-Exchange", 2048, 4.0),
        ("Exchange", 2048, 7.0),
        ("Biband", 2048, 2.5),
        ("Bcast", 2048, 5.5),
        ("Barrier", None, 2.5),
    ],
)
def test_time_is_the_average_or_follows_from_the_message_rate(capture, benchmark, size, time_usec):
    section = imb_output.parse(capture("imb-mpi1")).section(benchmark)
    assert section.row(size).time_usec == pytest.approx(time_usec)


def test_repetitions_and_bandwidth_come_from_their_columns(capture):
    row = imb_output.parse(capture("imb-mpi1")).section("Exchange").row(2048)
    assert row.repetitions == 1000
    assert row.values["Mbytes/sec"] == 1024.0
    assert row.defects is None


def test_sample_that_was_not_taken_is_a_notice_and_no_row(capture):
    section = imb_output.parse(capture("imb-mpi1")).section("Bcast")
    assert section.row(4194304) is None
    assert "out-of-mem." in section.notices[0]


def test_names_of_benchmarks_ignore_case(capture):
    assert imb_output.parse(capture("imb-mpi1")).section("exchange").processes == 4


def test_section_with_most_processes_is_the_default():
    text = "\n".join(
        f"# Benchmarking Bcast\n# #processes = {n}\n #bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n 8 1 1 1 {n}\n"
        for n in (2, 8, 4)
    )
    output = imb_output.parse(text)
    assert output.section("Bcast").processes == 8
    assert output.section("Bcast", processes=4).row(8).time_usec == 4


def test_a_single_pair_of_a_multi_benchmark_has_the_name_of_the_plain_one(capture):
    output = imb_output.parse(capture("imb-mpi1"))
    assert output.section("Multi-PingPong").row(2048).time_usec == pytest.approx(2.0)
    assert output.section("Multi-Biband", processes=2) is None
    assert output.section("Multi-Exchange").benchmark == "Multi-Exchange"


def test_cut_output_is_not_finished(capture):
    text = capture("imb-mpi1")
    output = imb_output.parse(text[: text.index("# Benchmarking Biband")])
    assert not output.finished
    assert output.section("Exchange").row(2048).time_usec == 7.0
    assert output.section("Biband") is None


def test_text_without_sections_has_none():
    output = imb_output.parse("mpirun: command not found\n")
    assert output.sections == [] and not output.finished
