"""Real programs over vader and over Velo: their answers have to be the same, within what each of them prints reliably."""

import dataclasses
import glob
import pathlib
import re
import shutil
import tempfile
import typing

from .. import command
from .prove.job import ROOT, VADER, JobFailed, Launcher, velo

RANKS = 4
TRANSPORTS = (VADER, velo("static", 8), velo("dynamic", 8))
_NUMBER = r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"


@dataclasses.dataclass(frozen=True)
class Application:
    """`files`: what has to be installed, the first is the program; `prepare` puts what it reads into a directory;
    `answers`: what its output says, by name. `tolerance`: relative."""

    name: str
    package: str
    files: tuple
    arguments: tuple
    answers: typing.Callable
    prepare: typing.Callable = lambda directory: None
    stdin: str = ""
    tolerance: float = 1e-6
    limit_s: int = 600


def _numbers(lines):
    return {f"{row}.{column}": float(number) for row, line in enumerate(lines)
            for column, number in enumerate(re.findall(_NUMBER, line))}


def hpcc_answers(_, directory):
    """Verdicts, and the norms of what was computed; residuals are rounding, and HPL judges them itself."""
    text = (directory / "hpccoutf.txt").read_text()
    wanted = r"^(Success|HPL_(?:Anorm1|AnormI|Xnorm1|XnormI|BnormI|N)|PTRANS_n|MPIRandomAccess(?:_LCG)?_(?:N|Errors)|MPIFFT_N)=(.*)$"
    answers = {name: float(value) for name, value in re.findall(wanted, text, re.MULTILINE)}
    answers["PASSED"] = float(text.count("PASSED"))
    answers["FAILED"] = float(len(re.findall(r"\bFAILED\b", text)))
    if answers.get("Success") != 1:
        raise ValueError("hpcc itself says that it did not succeed")
    return answers


def lammps_answers(output, _):
    """The table of energies and pressure."""
    rows = re.findall(rf"^ +\d+(?: +{_NUMBER}){{5}} *$", output, re.MULTILINE)
    if len(rows) < 2:
        raise ValueError(f"there is no table of energies in the output: ...{output[-600:]}")
    return _numbers(rows)


def scalapack_answers(output, _):
    """How many tests passed and how many failed."""
    answers = {outcome: float(count) for count, outcome in
               re.findall(r"(\d+) tests completed (?:and )?(passed|failed|without)", output)}
    if answers.get("failed", 0) != 0 or not any(answers.values()):
        raise ValueError(f"ScaLAPACK's own residuals: {answers or 'none in the output'}")
    return answers


def mumps_answers(output, _):
    """The solution."""
    found = re.search(r"Solution is(.*)", output, re.DOTALL)
    if found is None:
        raise ValueError("there is no solution in the output")
    return _numbers(found[1].splitlines()[:20])


def _named_numbers(pattern, what):
    """Finds the numbers that `pattern` captures, each time."""
    def answers(output, _):
        found = re.findall(pattern, output, re.MULTILINE)
        if not found:
            raise ValueError(f"there is no {what} in the output: ...{output[-600:]}")
        return {f"{what} {index}": float(number) for index, number in enumerate(found)}
    return answers


def hdf5_answers(output, _):
    """The sums of what was read."""
    answers = {name: float(total) for name, total in re.findall(rf"^sum (\S+) ({_NUMBER})$", output, re.MULTILINE)}
    if len(answers) != 12:
        raise ValueError(f"{len(answers)} of 12 sums in the output: ...{output[-600:]}")
    return answers


def hdf5_test_answers(output, _):
    """How many of its tests one of HDF5's parallel test programs has passed; it ends with an error if one fails."""
    failed = re.findall(r"^.*(?:\*FAILED\*|detected \d+ errors|errors detected|TEST ERRORS? OCCURRED).*", output, re.MULTILINE)
    if failed:
        raise ValueError(f"HDF5's own test: {failed[0].strip()}")
    return {"tests": float(len(re.findall(r"^(?:Testing|Doing|-- )|PASSED|finished (?:with no errors|successfully)", output, re.MULTILINE)))}


def _copy(source, name=None):
    return lambda directory: shutil.copy(source, directory / (name or pathlib.Path(source).name))


_SCALAPACK = next(iter(sorted(glob.glob("/usr/lib/*/scalapack/openmpi-tests"))), "/usr/lib/scalapack/openmpi-tests")


def _copy_data(directory):
    for path in pathlib.Path(_SCALAPACK).glob("*.dat"):
        shutil.copy(path, directory)


_INPUTS = pathlib.Path(__file__).resolve().parent / "prove" / "inputs"
_HPCC_INPUT = "/usr/share/doc/hpcc/examples/_hpccinf.txt"
_CP2K_INPUT = "/usr/share/doc/cp2k/examples/H2O.inp"
_MELT = "/usr/share/lammps/examples/melt/in.melt"
APPLICATIONS = (
    Application("lammps melt", "lammps lammps-examples", ("/usr/bin/lmp", _MELT), ("-in", "in.melt"), lammps_answers,
                _copy(_MELT), tolerance=1e-5),
    Application("hpcc", "hpcc", ("/usr/bin/hpcc", _HPCC_INPUT), (), hpcc_answers, _copy(_HPCC_INPUT, "hpccinf.txt")),
    *(Application(f"scalapack {name}", "scalapack-mpi-test", (f"{_SCALAPACK}/{name}",), (), scalapack_answers, _copy_data)
      for name in ("xdlu", "xzlu", "xdls", "xdhrd", "xdtrd", "xcinv", "xznep")),
    *(Application(f"mumps {name}", "mumps-test", (f"/usr/lib/mumps/{name}", f"/usr/lib/mumps/{data}"), (), mumps_answers,
                  stdin=f"/usr/lib/mumps/{data}", tolerance=1e-5)
      for name, data in (("dsimpletest", "input_simpletest_real"), ("zsimpletest", "input_simpletest_cmplx"))),
    Application("nwchem", "nwchem-openmpi", ("/usr/bin/nwchem.openmpi",), ("water.nw",),
                _named_numbers(rf"Total (?:SCF|DFT|MP2) energy *=? *({_NUMBER})", "energy"), _copy(_INPUTS / "water.nw")),
    Application("quantum espresso", "quantum-espresso quantum-espresso-data",
                ("/usr/bin/pw.x", "/usr/share/espresso/pseudo/Si.pz-vbc.UPF"), ("-in", "silicon.in"),
                _named_numbers(rf"^(?:!|     Total force) .*?= +({_NUMBER})", "energy or force"), _copy(_INPUTS / "silicon.in")),
    Application("cp2k", "cp2k", ("/usr/bin/cp2k.psmp", _CP2K_INPUT), ("-i", "H2O.inp"),
                _named_numbers(rf"^ ENERGY\|.*?({_NUMBER})$", "energy"), _copy(_CP2K_INPUT)),
    Application("hdf5 by h5py", "python3-h5py-mpi",
                ("/usr/bin/python3", "/usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi/__init__.py"), (_INPUTS / "hdf5_parallel.py",),
                hdf5_answers),
)


def hdf5_tests(directory):
    """HDF5's own parallel tests, as built in testpar/ of its source; Debian has no package of them."""
    programs = ("testphdf5", "t_mpi", "t_cache", "t_shapesame", "t_filters_parallel", "t_pread", "t_init_term")
    return tuple(Application(f"hdf5 {name}", str(directory), (str(directory.resolve() / name),), (), hdf5_test_answers)
                 for name in programs)


def differences(mine, reference, tolerance):
    """What of the answers differs, as text."""
    lines = [f"{name} is missing" for name in reference if name not in mine]
    lines += [f"{name} is there and not with vader" for name in mine if name not in reference]
    for name in mine.keys() & reference.keys():
        if abs(mine[name] - reference[name]) > tolerance * max(abs(reference[name]), tolerance):
            lines.append(f"{name} is {mine[name]} and {reference[name]} with vader")
    return sorted(lines)


def _run(application, transport, launcher):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        application.prepare(directory)
        with open(application.stdin or "/dev/null", "rb") as stdin:
            output, seconds = launcher.run(transport, RANKS, (application.files[0], *application.arguments), directory,
                                           application.limit_s, stdin)
        return application.answers(output, directory), seconds


def _try(application, launcher):
    """True if all went well."""
    reference, good = None, True
    for transport in TRANSPORTS:
        try:
            answers, seconds = _run(application, transport, launcher)
        except (JobFailed, ValueError, OSError) as error:
            print(f"{application.name:18} {transport.name:16} FAILED: {error}", flush=True)
            good = False
            if transport is VADER:
                return False
            continue
        reference = answers if transport is VADER else reference
        wrong = differences(answers, reference, application.tolerance)
        good = good and not wrong
        verdict = f"{len(answers)} numbers" if not wrong else "WRONG: " + "; ".join(wrong[:4])
        print(f"{application.name:18} {transport.name:16} {seconds:7.1f} s  {verdict}", flush=True)
    return good


def main(argv):
    parser = command.parser("applications", __doc__)
    parser.add_argument("names", nargs="*", help="run those whose name contains one of these (default: all that are installed)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-check", help="where Velo was built (default build-check)")
    parser.add_argument("--hdf5-tests", type=pathlib.Path, metavar="DIR",
                        help="also those of HDF5's own parallel tests that are built in DIR, testpar/ of its source")
    arguments = parser.parse_args(argv)
    return command.run("applications", lambda _: _run(parser, arguments), arguments)


def _run(parser, arguments):
    known = (*APPLICATIONS, *(hdf5_tests(arguments.hdf5_tests) if arguments.hdf5_tests else ()))
    chosen = [application for application in known
              if not arguments.names or any(name in application.name for name in arguments.names)]
    if not chosen:
        parser.error(f"there is no application {', '.join(arguments.names)}; there are "
                     f"{', '.join(application.name for application in known)}")
    there = [application for application in chosen if all(pathlib.Path(path).exists() for path in application.files)]
    absent = sorted({application.package for application in chosen} - {application.package for application in there})
    hint = f"; not installed: {', '.join(absent)}" if absent else ""
    if not there:
        print(f"applications: none of them is here{hint}")
        return 77
    launcher = Launcher(arguments.build)
    good = sum(_try(application, launcher) for application in there)
    print(f"applications: {good} of {len(there)} with vader's answers under {', '.join(t.name for t in TRANSPORTS[1:])}{hint}")
    return 0 if good == len(there) else 1
