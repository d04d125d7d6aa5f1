"""docs/papers.md: what the papers show, the command that shows it here, and the outcome. Out of the list of velo-measure papers's
experiments and of velo-sim's statements (contrib/sim/bounds.json), so that it names what runs."""

import json
import pathlib

from .. import command
from ..command import EXIT_OK
from ..lab.catalogue import EXPERIMENTS

_ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = _ROOT / "docs" / "papers.md"
_BOUNDS = _ROOT / "contrib" / "sim" / "bounds.json"
_OUTCOMES = {"holds": "shown", "does not hold": "not shown", "not run": "not run", "not measured": "not measured"}

_INTRODUCTION = """\
# The papers, and what shows them here

Written by `contrib/dev/papers` out of the lists that the commands themselves go by; `test/build/test_papers.py` keeps it so.

Five documents: J. Prades' thesis on static and dynamic credit flow control over EXTOLL; the Spanish paper by the same authors;
Liu and Panda on flow control in MPI over InfiniBand; Schneider and Eckelmann's ESPGOAL; Subramoni's slides on multicast.

## Cannot be shown here

| what | why |
|---|---|
| VELO and RMA units, latencies by hops (thesis, chapters 2 to 4) | EXTOLL hardware; `velo-sim` has a model of its network |
| LiMIC's own times (thesis 7.2) | `btl_velo_limic` is a second ring without credits, not LiMIC's kernel copy |
| slots that local peers leave to remote ones (thesis 7.2, figure 7.3) on a machine | Velo gives processes of the same node no slots of the mailbox with credits; `velo-sim experiment fig7.3` divides it among all |
| GASNet over the same engine (thesis, chapter 3) | the engine is part of the plugin and not installed as a library |
| hardware flow control by RNR NAK (Liu and Panda 4.1) | InfiniBand; `rnr` refuses and tries again in software |
| small messages by rendezvous where there is no credit (Liu and Panda 6.2.2) over the BTL and in the simulator | Open MPI's ob1 chooses without knowing of credits; with the MTL `velo-measure papers run bandwidth` shows it. In the simulator such a message waits at its sender |
| NAS times (Liu and Panda, figures 9 and 10) on a machine | 8 and 16 ranks need a core each; `velo-measure papers run nas` counts, `velo-sim experiment liu10` has patterns that stand for the codes |
| alltoall, allgather, gather and scatter in three phases (slides), chosen while a program runs | a rule chooses them (`coll_velo_choices`), which `velo-goal tune` writes where it has measured that they are faster; Velo's own rules never do |
| the basic scheme of multicast (slides) for broadcasts of several datagrams on a machine | they leave as messages; `velo-sim multicast --scheme basic` has them |
| co-roots that get data point to point (slides, T_rc), late members and placement (S3 to S7) on a machine | co-roots get data by multicast, too; `velo-sim experiment S3` to `S7` |
| interrupt coalescing (ESPGOAL 6.2, figures 6.1 to 6.6) | belongs to an Ethernet card |
| PERFTRACE (ESPGOAL 6.7, figure 6.17) | a kernel module; `velo-goal` and traces measure in its place |
| multicast in InfiniBand's switches (slides) | no such network; IP multicast between nodes and `velo-sim` |
"""


def text():
    return "\n".join([_INTRODUCTION, *_on_a_machine(), *_simulated()])


def _on_a_machine():
    yield "## On a machine\n"
    yield "`velo-measure papers run NAME` checks each statement. The outcome depends on the machine and is not listed here.\n"
    yield "| command | paper | statement |\n|---|---|---|"
    for experiment in EXPERIMENTS:
        yield f"| `velo-measure papers run {experiment.name}` | {experiment.source} | {experiment.title}. {experiment.statement} |"
    yield ""


def _simulated():
    yield "## In the simulator\n"
    yield ("`velo-sim experiment NAME`; `--full` runs the papers' sizes. The outcome is the same on every machine, and a run that finds "
           "another one says so.\n")
    for name, statements in json.loads(_BOUNDS.read_text(encoding="utf-8")).items():
        yield f"### `velo-sim experiment {name}`\n"
        yield "| statement | paper | kind | outcome | `--full` |\n|---|---|---|---|---|"
        for found in statements:
            note = f" ({found['note']})" if "note" in found else ""
            yield (f"| {found['statement']}{note} | {found['source']} | {found['kind']} | {_OUTCOMES[found['reduced']]} | "
                   f"{_OUTCOMES[found['full']]} |")
        yield ""


def main(arguments):
    command.parser("papers", __doc__).parse_args(arguments)
    PAGE.write_text(text(), encoding="utf-8")
    return EXIT_OK
