"""Many ranks on few processors: Alltoall, Allreduce and Barrier over vader and over Velo, in turn."""

import pathlib
import re
import tempfile

from .. import command
from .prove.job import ROOT, VADER, JobFailed, Launcher, velo

# Benchmark, and bytes as a power of two; none for Barrier.
BENCHMARKS = (("Alltoall", 11), ("Allreduce", 11), ("Barrier", None))
_NAMES = [name for name, _ in BENCHMARKS]
# How much slower the best run may be: what the same transport differs by from one series of runs to the next.
TOLERANCE = 1.1


def parse(output):
    """Average microseconds of one operation."""
    rows = re.findall(r"^ *(?:\d+ +)?\d+((?: +\d+\.\d+)+)", output, re.MULTILINE)
    if not rows:
        raise ValueError(f"no figures in the output: ...{output[-400:]}")
    return float(rows[-1].split()[-1])


def verdict(mine_us, vader_us):
    """The ratio of the best runs, and whether it is within the tolerance: what else the machine does only makes runs slower."""
    ratio = min(mine_us) / min(vader_us)
    return ratio, ratio <= TOLERANCE


def _measure(launcher, transport, ranks, benchmark, log_bytes, seconds, directory):
    program = [launcher.bench, "-npmin", ranks, "-time", seconds, "-iter", 1000]
    if log_bytes is not None:
        program += ["-msglog", f"{log_bytes}:{log_bytes}"]
    output, _ = launcher.run(transport, ranks, [*program, benchmark], directory, 300)
    return parse(output)


def _compare(launcher, transports, ranks, benchmark, log_bytes, arguments, directory):
    """Microseconds of each run by transport; the transports take turns."""
    times = {transport.name: [] for transport in transports}
    for _ in range(arguments.repeat):
        for transport in transports:
            times[transport.name].append(
                _measure(launcher, transport, ranks, benchmark, log_bytes, arguments.seconds, directory))
    return times


def main(argv):
    parser = command.parser("oversubscription", __doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, of which the best counts (default 5)")
    parser.add_argument("--seconds", type=float, default=2, help="for which a benchmark repeats itself (default 2)")
    parser.add_argument("--policies", nargs="+", default=["dynamic"], help="default dynamic")
    parser.add_argument("--only", nargs="+", default=_NAMES, choices=_NAMES)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-check", help="where Velo was built (default build-check)")
    return command.run("oversubscription", _run, parser.parse_args(argv))


def _run(arguments):
    launcher = Launcher(arguments.build)
    transports = [VADER, *(velo(policy) for policy in arguments.policies)]
    slower, done = [], 0
    with tempfile.TemporaryDirectory() as directory:
        for ranks in arguments.ranks:
            for benchmark, log_bytes in BENCHMARKS:
                if benchmark not in arguments.only:
                    continue
                try:
                    times = _compare(launcher, transports, ranks, benchmark, log_bytes, arguments, directory)
                except (JobFailed, ValueError) as error:
                    print(f"{ranks} ranks, {benchmark}: FAILED: {error}", flush=True)
                    slower.append(f"{benchmark} with {ranks} ranks failed")
                    continue
                done += 1
                for transport in transports[1:]:
                    ratio, good = verdict(times[transport.name], times[VADER.name])
                    if not good:
                        slower.append(f"{benchmark} with {ranks} ranks {ratio:.2f} times vader's")
                    print(f"{ranks:4} ranks  {benchmark:10} vader {min(times[VADER.name]):11.1f} us   "
                          f"{transport.name} {min(times[transport.name]):11.1f} us   ratio {ratio:5.2f}", flush=True)
    print(f"oversubscription: {done} comparisons, " + ("none slower than vader" if not slower else "; ".join(slower)))
    return 1 if slower else 0
