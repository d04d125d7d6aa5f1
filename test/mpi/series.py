"""Cases of a test in one job, where programs/series.c runs one after the other between one MPI_Init and one MPI_Finalize.

A case is the words of a program. One that fails, crashes or hangs is told as that, and those behind it run in another job."""

import pytest

from launcher import Hang, facts_in

SECONDS_FOR_EACH = 60


class Facts(dict):
    """What a case has printed; `job`: how the job ended in which it ran."""

    def __init__(self, text, job):
        super().__init__(facts_in(text))
        self.job = job


def words_of(cases, level):
    words = [level]
    for case in cases:
        words += ["--"] if len(words) > 1 else []
        words += case
    return words


def printed_by(stdout, number):
    """What a case has printed, and whether it has ended."""
    _, begins, text = stdout.partition(f"begins: {number}\n")
    text, ended, _ = text.partition(f"has ended: {number}\n")
    return text, bool(begins and ended)


def run(mpi, cases, level="single", seconds=SECONDS_FOR_EACH, **how):
    """What each case has printed and, of those that did not end, why."""
    outcomes, left = {}, list(cases)
    while left:
        job = mpi.start(mpi.series_of(case[0] for case in left), *words_of(left, level), **how)
        ended = 0
        try:
            while ended < len(left) and not job.finished():
                job.extend(seconds)
                job.until(lambda: printed_by(job.stdout, ended)[1] or job.finished(), f"{' '.join(map(str, left[ended]))}: the end")
                while ended < len(left) and printed_by(job.stdout, ended)[1]:
                    ended += 1
            job.extend(seconds)
            result = job.wait()
            failure = None if result.returncode == 0 else str(result)
        except Hang as hang:
            result, failure = hang.result, str(hang)
        finally:
            job.stop()
        ended = 0
        while ended < len(left) and printed_by(result.stdout, ended)[1]:
            outcomes[left[ended]] = Facts(printed_by(result.stdout, ended)[0], result), None
            ended += 1
        if failure is None:
            assert ended == len(left), str(result)
            break
        # One that fails when all have ended has failed with the last one.
        at = min(ended, len(left) - 1)
        outcomes[left[at]] = {}, failure
        left = left[at + 1 :]
    return outcomes


class Together:
    """The cases of a test that are chosen and have all else alike, in one job, which the first of them starts."""

    def __init__(self):
        self._outcomes = {}

    def facts(self, item, mpi, **how):
        def alike(other):
            values = getattr(other, "callspec", None) and {key: str(value) for key, value in other.callspec.params.items() if key != "case"}
            return other.path, getattr(other, "originalname", None), str(values)

        key = alike(item)
        if key not in self._outcomes:
            cases = [other.callspec.params["case"] for other in item.session.items if alike(other) == key]
            self._outcomes[key] = run(mpi, list(dict.fromkeys(cases)), **how)
        facts, failure = self._outcomes[key][item.callspec.params["case"]]
        if failure is not None:
            pytest.fail(failure, pytrace=False)
        return facts


def cases(table):
    """A decorator that runs a test for each case of a table {words: facts}; `pytest -k` chooses by the words."""
    return pytest.mark.parametrize("case", list(table), ids=lambda words: "-".join(map(str, words)))
