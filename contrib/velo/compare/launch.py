"""The mpirun command of a run."""

from dataclasses import dataclass, field

from .. import policies
from ..process import mca_words
from .plan import SINGLE_TRANSFER


@dataclass
class Launch:
    """What all runs have in common."""

    mpirun: str
    bench: str
    processes: int
    transport: str = "velo"
    iterations: int = 10000
    sample_seconds: float = 0.25
    mca: list = field(default_factory=list)  # further (name, value) pairs

    @property
    def uses_velo(self):
        return "velo" in self.transport.split(",")


def mpirun_command(launch, case, setup, lengths):
    """The command line as a list; `lengths`: words that say the size of the case."""
    return _mpirun_part(launch, setup) + [launch.bench] + _bench_part(launch, case, lengths)


def _mpirun_part(launch, setup):
    parameters = [("pml", "ob1"), ("btl", launch.transport)]
    if launch.uses_velo:
        parameters += [
            ("btl_velo_flow_control", setup.policy),
            *policies.mca(policies.parameters(setup.policy, setup.slots, launch.processes)),
            ("btl_velo_by_reference", setup.by_reference),
            ("btl_velo_report", "json"),
        ]
    return [launch.mpirun, "--oversubscribe", "-np", str(launch.processes), *mca_words(parameters + launch.mca)]


def _bench_part(launch, case, lengths):
    name = case.benchmark
    if name.startswith("Multi-"):
        arguments = [name.removeprefix("Multi-"), "-multi", "0", "-npmin", "2"]
    else:
        processes = 2 if name in SINGLE_TRANSFER else launch.processes
        arguments = [name, "-npmin", str(processes)]
    return arguments + [*lengths, "-iter", str(launch.iterations), "-time", f"{launch.sample_seconds:g}"]
