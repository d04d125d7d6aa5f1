"""What a mutation is, and whether it still applies."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Test:
    """A GoogleTest program of the tree and which of its tests, as a filter. `build`: a key of workshop.BUILDS."""

    program: str
    filter: str
    build: str = "plain"
    limit_s: int = 120
    environment: dict = dataclasses.field(default_factory=dict)

    def __str__(self):
        return f"{self.program.rsplit('/', 1)[-1]} {self.filter}" + (f" ({self.build})" if self.build != "plain" else "")


@dataclasses.dataclass(frozen=True)
class Mutation:
    """`old`, which occurs once in the file, becomes `new`. Either `test` fails then, or `equivalent` says why none can."""

    name: str
    file: str
    old: str
    new: str
    test: Test = None
    equivalent: str = ""

    def objection(self, root):
        """Why it cannot be made to the tree in `root`; empty if it can."""
        path = root / self.file
        if not path.is_file():
            return f"there is no {self.file}"
        count = path.read_text().count(self.old)
        if count != 1:
            return f"its old text is {count or 'no'} times in {self.file}, not once"
        return "" if self.old != self.new else "it changes nothing"

    def apply(self, root):
        path = root / self.file
        path.write_text(path.read_text().replace(self.old, self.new))


def choose(mutations, patterns):
    """Those whose name or file holds one of the patterns. Raises ValueError for one that finds nothing."""
    for pattern in patterns:
        if not any(pattern in mutation.name or pattern in mutation.file for mutation in mutations):
            raise ValueError(f"no mutation has {pattern} in its name or file; --list shows all")
    return [mutation for mutation in mutations
            if not patterns or any(pattern in mutation.name or pattern in mutation.file for pattern in patterns)]
