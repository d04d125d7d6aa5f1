"""The programs of programs/, compiled when one is asked for, and again when it or a header has changed."""

import os
import pathlib
import subprocess

SOURCES = pathlib.Path(__file__).resolve().parent / "programs"
# MPI 4.1 deprecates calls that MPI 3, which Open MPI 4.1 has, offers nothing else for.
CFLAGS = "-std=c11 -D_GNU_SOURCE -O2 -g -pthread -Wall -Wextra -Werror -Wno-deprecated-declarations".split()
# -rdynamic: a program may stand in for a function that libraries call. The shared objects are for programs/series.c.
FORMS = {"": ["-rdynamic"], ".so": ["-shared", "-fPIC"]}


class Programs:
    def __init__(self, compiler, directory):
        self._compiler = compiler
        self._directory = pathlib.Path(directory)
        self._fresh = set()

    def path(self, name, form=""):
        target, source = self._directory / f"{name}{form}", SOURCES / f"{name}.c"
        if target not in self._fresh:
            newest = max(file.stat().st_mtime for file in (source, *SOURCES.glob("*.h"), pathlib.Path(__file__)))
            if not target.exists() or target.stat().st_mtime <= newest:
                self._make(source, target, FORMS[form])
            self._fresh.add(target)
        return str(target)

    def _make(self, source, target, options):
        """Under another name first: a session beside this one may want the same."""
        self._directory.mkdir(parents=True, exist_ok=True)
        made = f"{target}.{os.getpid()}"
        done = subprocess.run([self._compiler, *CFLAGS, *options, str(source), "-o", made], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, f"{source}:\n{done.stderr}"
        os.rename(made, target)
