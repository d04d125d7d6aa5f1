"""Runs mpirun with a hard time limit, so that a hang is a failure and not a lost test run."""

import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time

import excuses

MPIRUN = os.environ.get("MPIRUN", "mpirun.openmpi")
SECONDS_BETWEEN_LOOKS = 0.1
ROOT_CONSENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# btl/tcp of Open MPI 5.0 may find no pair of other interfaces by which processes of one machine reach each other.
TCP_HERE = {"btl_tcp_if_include": "lo"}


class Hang(AssertionError):
    """A command was still running when its time was over. `left`: the processes of it that were there still; `result`: what
    it has come to until then."""

    def __init__(self, text, left, result):
        super().__init__(text)
        self.left = left
        self.result = result

    @property
    def without_velo(self):
        """What still ran had no Velo in its memory."""
        return bool(self.left) and all(process.has_velo is False for process in self.left)

    @property
    def of_mpirun_alone(self):
        """What still ran was mpirun, without Velo in its memory."""
        return self.without_velo and all(process.words and os.path.basename(process.words[0]) == os.path.basename(MPIRUN)
                                         for process in self.left)


def facts_in(text):
    """The `key=value` words that the programs print, as numbers."""
    return {key: int(value) for key, value in re.findall(r"\b(\w+)=(-?\d+)\b", text)}


@dataclasses.dataclass(frozen=True)
class Result:
    """`mpirun_crashed`: mpirun itself ended by SIGSEGV and, whenever it was looked at, had no Velo in its memory. What it
    printed of that is not in `stderr`. (A rank that crashes is told by mpirun's exit status, 139.)"""

    command: str
    returncode: int
    stdout: str
    stderr: str
    mpirun_crashed: bool = False

    @classmethod
    def of(cls, command, pid, returncode, stdout, stderr, without_velo):
        if returncode != -signal.SIGSEGV or not without_velo:
            return cls(command, returncode, stdout, stderr)
        kept = [line for line in stderr.splitlines(keepends=True) if not re.match(rf"\[[^]]*:0*{pid}\]", line)]
        return cls(command, returncode, stdout, "".join(kept), mpirun_crashed=True)

    @property
    def output(self):
        return self.stdout + self.stderr

    def assert_aborted(self, status):
        """The job ended by MPI_Abort. mpirun of Open MPI 4.1 crashes now and then in PMIx_server_finalize, after a job that
        has failed; then its exit status is not the job's."""
        if self.mpirun_crashed:
            assert f"errorcode {status}" in self.stderr, str(self)
            excuses.add("mpirun itself ended by SIGSEGV and had no Velo in its memory")
        else:
            assert self.returncode == status, str(self)

    def facts(self):
        return facts_in(self.stdout)

    def __str__(self):
        return f"{self.command}\nexit {self.returncode}\n--- stdout\n{self.stdout[-6000:]}--- stderr\n{self.stderr[-6000:]}"


def session_members(session):
    """Processes of a session. Open MPI gives each rank a process group of its own, but leaves it in the session."""
    members = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as file:
                state, _, _, owner = file.read().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(owner) == session and state != "Z":
            members.append(int(entry))
    return members


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [word.decode(errors="replace") for word in file.read().split(b"\0")[:-1]]
    except OSError:
        return []


def has_velo(pid):
    """Whether Velo is in the memory of a process; None if the process does not tell."""
    try:
        maps = pathlib.Path("/proc", str(pid), "maps").read_text()
    except OSError:
        return None
    return re.search(r"/mca_[bm]tl_velo", maps) is not None if maps else None


def stacks_of(pid):
    """Where its threads are, where gdb is there and may look."""
    if not shutil.which("gdb"):
        return ""
    try:
        return subprocess.run(["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "thread apply all backtrace 12"], capture_output=True,
                              text=True, errors="replace", timeout=20, check=False).stdout[-4000:]
    except subprocess.TimeoutExpired:
        return ""


@dataclasses.dataclass(frozen=True)
class Survivor:
    """A process that does not end: what it executes, whether Velo is in its memory, and where each of its threads waits."""

    pid: int
    words: list
    has_velo: bool | None
    threads: list
    stacks: str = ""

    @classmethod
    def of(cls, pid):
        threads = []
        for thread in pathlib.Path("/proc", str(pid), "task").glob("*"):
            try:
                state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
                threads.append(f"{thread.name} {state} {(thread / 'wchan').read_text()} "
                               f"system call {(thread / 'syscall').read_text().strip()}")
            except OSError:
                pass
        return cls(pid, command_of(pid), has_velo(pid), threads, stacks_of(pid))

    def __str__(self):
        velo = {True: "Velo loaded", False: "no Velo loaded", None: "gone"}[self.has_velo]
        return "\n  ".join([f"{self.pid}: {shlex.join(self.words) or 'no command'} ({velo})", *self.threads, *self.stacks.splitlines()])


class Run:
    """A command in a session of its own. Whatever happens, `stop` leaves no process of it behind."""

    def __init__(self, words, environment, time_limit):
        self.command = shlex.join(words)
        self._deadline = time.monotonic() + time_limit
        self._time_limit = time_limit
        self._text = {"stdout": [], "stderr": []}
        self._without_velo = True
        self._next_look = 0
        # Without restore_signals SIGPIPE stays ignored: mpirun may write to a rank that has just ended.
        self._process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, start_new_session=True, restore_signals=False)
        self._readers = [threading.Thread(target=self._collect, args=(name,), daemon=True) for name in self._text]
        for reader in self._readers:
            reader.start()

    def _collect(self, name):
        for line in getattr(self._process, name):
            self._text[name].append(line.decode(errors="replace"))

    @property
    def pid(self):
        return self._process.pid

    @property
    def stdout(self):
        return "".join(self._text["stdout"])

    @property
    def stderr(self):
        return "".join(self._text["stderr"])

    def members(self):
        return session_members(self.pid)

    def ranks(self, program):
        """Process ids that execute the program now."""
        name = os.path.basename(program)
        ids = []
        for pid in self.members():
            words = command_of(pid)
            if words and os.path.basename(words[0]) == name:
                ids.append(pid)
        return sorted(ids)

    def extend(self, seconds):
        """From now on it has so many."""
        self._deadline = time.monotonic() + seconds
        self._time_limit = seconds

    def finished(self):
        return self._process.poll() is not None

    def until(self, condition, what):
        """Waits for a condition and returns its value."""
        while True:
            value = condition()
            if value:
                return value
            self._look_at_command()
            if time.monotonic() > self._deadline:
                left = [Survivor.of(pid) for pid in self.members()]
                self.stop()
                there = "\n".join(map(str, left))
                result = self.snapshot()
                raise Hang(f"{what}: not within {self._time_limit} s\n{result}\nstill there:\n{there}", left, result)
            time.sleep(0.01)

    def _look_at_command(self):
        """Once it has crashed it cannot be asked any more."""
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + SECONDS_BETWEEN_LOOKS
            self._without_velo = self._without_velo and not has_velo(self.pid)

    def until_printed(self, pattern):
        def found():
            # What is printed last must still be seen when the command ends in the meantime.
            over = self.finished()
            match = re.search(pattern, self.stdout)
            if match is None and over:
                self._join()
                match = re.search(pattern, self.stdout)
                assert match, f"ended without printing {pattern!r}\n{self.snapshot()}"
            return match

        return self.until(found, f"printing {pattern!r}")

    def wait(self):
        """Waits for the end, of all processes and not of mpirun alone."""
        self.until(lambda: self.finished() and not self.members(), "the end of all processes")
        self._join()
        return self.snapshot()

    def _join(self):
        for reader in self._readers:
            reader.join(timeout=5)

    def snapshot(self):
        code = self._process.poll()
        return Result.of(self.command, self.pid, -signal.SIGALRM if code is None else code, self.stdout, self.stderr,
                         self._without_velo)

    def stop(self):
        for _ in range(500):
            for pid in self.members():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if self.finished() and not self.members():
                break
            time.sleep(0.01)
        self._join()


class Launcher:
    """Builds mpirun commands for one transport."""

    def __init__(self, transport, component_path, temporary, programs, layer="btl"):
        """`layer`: "mtl" if messages go through pml cm instead of ob1."""
        self.transport = transport
        self.layer = layer
        self._programs = programs
        self._component_path = component_path
        self._temporary = temporary
        self._results = {}

    def environment(self, extra=None, bare=False):
        kept = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": os.environ.get("HOME", "/")} if bare else {
            key: value for key, value in os.environ.items()
            if not key.startswith(("OMPI_", "PMIX_", "ORTE_")) and key != "LD_LIBRARY_PATH"}
        if self._component_path:
            kept["OMPI_MCA_mca_base_component_path"] = self._component_path
            # mpirun of Open MPI 5.0 hands the path to PMIx too, which would complain of each file of Open MPI.
            kept["PMIX_MCA_mca_base_component_show_load_errors"] = "none"
        # Ranks that spin would take the two cores of a small machine from those that have work.
        kept["OMPI_MCA_mpi_yield_when_idle"] = "1"
        # Not in /dev/shm, where a job that is killed leaves it.
        kept["OMPI_MCA_btl_vader_backing_directory"] = self._temporary
        return {**kept, **ROOT_CONSENT, "TMPDIR": self._temporary, **(extra or {})}

    def program(self, name):
        """Compiled when it is first asked for."""
        return name if os.path.isabs(name) else self._programs.path(name)

    def series_of(self, names):
        """The program that runs these in turn."""
        for name in names:
            self._programs.path(name, ".so")
        return self.program("series")

    def words(self, parts, params=None, options=(), transport=None, transport_btl=True):
        """`parts`: (np, words of the program) for each application context. `transport_btl`: name the BTLs; else the
        options do."""
        words = [MPIRUN, "--oversubscribe", "--bind-to", "none"]
        if self.layer == "mtl" and transport is None:
            # Not cm by name: Open MPI 5.0 has BTLs, and by them windows, only where ob1 may be chosen, too.
            words += ["--mca", "pml", (params or {}).get("pml", "^ucx"), "--mca", "mtl", self.transport]
        else:
            words += ["--mca", "pml", "ob1"]
        chosen = self.transport if transport is None else transport
        if chosen and transport_btl:
            words += ["--mca", "btl", chosen if chosen == "velo" else f"{chosen},self"]
        for key, value in (params or {}).items():
            words += [] if key == "pml" else ["--mca", key, str(value)]
        count, program = one_part(parts)
        return [*words, *options, "-np", str(count), *program]

    def start(self, program, *arguments, np=2, params=None, env=None, options=(), before=(), prefix=(), time_limit=60,
              transport=None, bare=False, transport_btl=True):
        """`prefix`: words before mpirun; `before`: words between mpirun and the program, such as another launcher."""
        parts = [(np, [*before, self.program(program), *map(str, arguments)])]
        words = [*prefix, *self.words(parts, params, options, transport, transport_btl)]
        return Run(words, self.environment(env, bare), time_limit)

    def start_parts(self, parts, params=None, env=None, options=(), prefix=(), time_limit=60, transport=None):
        return Run([*prefix, *self.words(parts, params, options, transport)], self.environment(env), time_limit)

    def run(self, *arguments, **keywords):
        """Runs to the end, which must be a success."""
        result = finish(self.start(*arguments, **keywords))
        assert result.returncode == 0, str(result)
        return result

    def once(self, *arguments, **keywords):
        """The same for tests that ask for the same: the first of them runs it."""
        key = repr((arguments, keywords))
        if key not in self._results:
            self._results[key] = self.run(*arguments, **keywords)
        return self._results[key]

    def run_any(self, *arguments, **keywords):
        """Runs to the end, whatever it is. mpirun of Open MPI 4.1 itself may never come to it, where a rank has failed while
        another one was about to be connected."""
        try:
            return finish(self.start(*arguments, **keywords))
        except Hang as hang:
            if not hang.of_mpirun_alone or "PMIX ERROR: UNREACHABLE" not in hang.result.stderr:
                raise
            excuses.add("mpirun itself did not end when all ranks had, and had no Velo in its memory: PMIX ERROR: UNREACHABLE")
            return hang.result

    def run_parts(self, parts, **keywords):
        return finish(self.start_parts(parts, **keywords))


def one_part(parts):
    """Several programs, each with `-x NAME=VALUE` before it, as one: a shell chooses by rank. The mpirun of Debian 13 crashes
    when it is given two application contexts itself."""
    if len(parts) == 1:
        return parts[0]
    script, ranks = "", 0
    for count, words in parts:
        settings = []
        while words[0] == "-x":
            settings, words = [*settings, words[1]], words[2:]
        ranks += count
        script += f'[ "$OMPI_COMM_WORLD_RANK" -ge {ranks} ] || exec env {shlex.join([*settings, *map(str, words)])}\n'
    return ranks, ["sh", "-c", script]


def finish(run):
    try:
        return run.wait()
    finally:
        run.stop()


def run_command(words, environment, time_limit=30):
    return finish(Run(words, environment, time_limit))
