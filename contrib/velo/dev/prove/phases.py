"""The phases: what each runs, how long it may take, what it needs, and where its log says what ran."""

import dataclasses
import os
import re
import shutil


@dataclasses.dataclass(frozen=True)
class Phase:
    """`needs`: commands that must be there. `ran`: finds, in the last lines that match, what was run."""

    name: str
    about: str
    command: tuple
    limit_s: int
    environment: dict = dataclasses.field(default_factory=dict)
    needs: tuple = ()
    root: bool = False
    ran: str = r"^skipped \d+, excused \d+|\d+ (?:passed|failed|skipped|error)"


def _check(part):
    return "contrib/check", "--all", part


_TOTALS = r"^# (?:TOTAL|PASS|SKIP|FAIL|ERROR): .*"

PHASES = (
    Phase("unit", "make check of the engine, under ASan and UBSan", _check("unit"), 3600, ran=_TOTALS),
    Phase("tsan", "the engine's unit and stress tests under ThreadSanitizer", _check("threads"), 3600, ran=_TOTALS),
    Phase("distcheck", "make distcheck: a build and all tests out of the source package", _check("distcheck"), 5400,
          ran=r"^velo-\S+ archives ready.*|^velo-\S+\.tar\.gz"),
    Phase("mpi", "every program over the BTL, under every policy with every mailbox", _check("mpi"), 9000),
    Phase("mtl", "the same over the MTL", _check("mtl"), 5400),
    Phase("tools", "configure, make install, the commands and their files", _check("tools"), 3600),
    Phase("checked", "programs over a plugin that asserts the invariants of flow control", _check("checked"), 5400),
    Phase("user", "the programs with MPI as an ordinary user, who is made for it", _check("user"), 7200, root=True,
          needs=("useradd", "setpriv")),
    Phase("demo", "contrib/demo, which installs Velo, up to its picture", ("contrib/demo", "--quick"), 1800, ran=r"^wrote .*"),
    Phase("lint", "clang-tidy and cppcheck", ("contrib/dev/lint",), 3600, needs=("clang-tidy", "cppcheck"), ran=r"^lint: .*"),
    Phase("fuzz", "libFuzzer on what reads bytes of peers", ("contrib/dev/fuzz", "--seconds", "120"), 3600, needs=("clang++",),
          ran=r"^in all .*"),
    Phase("mutations", "one line of the engine is broken at a time, and a test sees it", ("contrib/dev/mutate",), 5400,
          ran=r"^mutate: .*"),
    Phase("applications", "real programs, their answers beside vader's", ("contrib/dev/applications",), 7200,
          ran=r"^applications: .*"),
    Phase("oversubscription", "64 and 128 ranks, beside vader", ("contrib/dev/oversubscription",), 3600,
          ran=r"^oversubscription: .*"),
    Phase("aarch64", "unit and schedule tests under qemu", ("contrib/dev/aarch64",), 7200,
          needs=("aarch64-linux-gnu-g++", "qemu-aarch64-static"), ran=r"^aarch64: .*"),
    Phase("series", "Open MPI 4.1, 5.0 and 6.0, each in a Debian of its own", ("contrib/dev/series",), 14400, root=True,
          needs=("debootstrap", "unshare"), ran=r"^ +(?:ok|FAILED) +test/mpi.*"),
    Phase("newcomer", "the commands of README.md and docs/ as they are printed, in a new Debian 12", ("contrib/dev/newcomer",), 5400, root=True,
          needs=("debootstrap", "unshare"), ran=r"^newcomer: .*"),
    Phase("package", "the Debian packages in clean chroots of Debian 12, 13 and unstable, with lintian", ("contrib/dev/package", "4.1", "5.0", "6.0"),
          7200, root=True, needs=("debootstrap", "unshare"), ran=r"^package: .*"),
    Phase("graft", "an Open MPI source tree with Velo in it, built", ("contrib/dev/graft-build",), 7200,
          needs=("flex",), ran=r"^graft: .*"),
)


def missing(phase):
    """Why the phase cannot run here; empty if it can."""
    if phase.root and os.geteuid() != 0:
        return "needs root"
    lacking = [command for command in phase.needs if shutil.which(command) is None]
    return f"{', '.join(lacking)} not installed" if lacking else ""


def choose(only, skip):
    """The phases in their order. Raises ValueError for a name that is none."""
    known = [phase.name for phase in PHASES]
    wrong = sorted((set(only) | set(skip)) - set(known))
    if wrong:
        raise ValueError(f"there is no phase {', '.join(wrong)}; there are {', '.join(known)}")
    return [phase for phase in PHASES if (not only or phase.name in only) and phase.name not in skip]


def what_ran(phase, log):
    """The last line of the log that says so, the last few if they stand together."""
    found = [(number, line.strip()) for number, line in enumerate(log.splitlines()) if re.search(phase.ran, line)]
    together = []
    for number, line in reversed(found):
        if together and together[-1][0] - number > 1:
            break
        together.append((number, line))
    return ", ".join(re.sub(r"^=+ *| *=+$", "", line.removeprefix("# ")) for _, line in reversed(together))
