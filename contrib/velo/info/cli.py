"""velo-info from the command line to what it prints."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path

from .. import command
from ..command import EXIT_FAILED, EXIT_OK, Trouble
from ..counters import find_report
from ..process import attempt, environment, mca_words, run_limited, shell_line
from ..programs import find_own
from . import installed, machine, routes

_TRY_SECONDS = 60
_HERE = Path(sys.argv[0]).absolute().parent
_OTHER_COMMANDS = ("velo-goal", "velo-measure", "velo-mpi-bench", "velo-pvars", "velo-sim", "velo-trace")
EPILOG = """examples:
  velo-info               what is installed, what works, and what to add to the command line
  velo-info --try         also runs a job of two processes
  velo-info --routes      the routes of messages of each length on this machine
  velo-info --calibrate   measures the routes, for all later jobs
  velo-info --json        the same for programs

Each mechanism is tested: one process reads another's memory, UCX is opened, a datagram goes to a group. Run it where the
job will run: on a compute node, in the container. The exit status is 0 if the plugin can be used, and the job of --try,
if it was asked for, went over it.
"""


def parse(arguments):
    parser = command.parser("velo-info", "Shows what of Velo is installed, for which Open MPI, which mechanisms work on this machine and why "
                            "not, and what to add to the command line.", EPILOG)
    parser.add_argument("--mpirun", metavar="PROGRAM", help="mpirun of the Open MPI (default: mpirun.openmpi or mpirun on PATH)")
    parser.add_argument("--try", dest="attempt", action="store_true", help="run a job of two processes over Velo")
    parser.add_argument("--bench", metavar="PROGRAM", help="velo-mpi-bench for --try, if it is not found")
    parser.add_argument("--routes", action="store_true", help="print the routes of messages of each length between processes of this machine")
    parser.add_argument("--calibrate", action="store_true",
                        help=f"measure the routes between two cores, one to three minutes on an idle machine, and keep them in {routes.file_text()}")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser.parse_args(arguments)


def main(arguments):
    return command.run("velo-info", _run, parse(arguments))


def _run(options):
    mpi = installed.open_mpi(options.mpirun)
    plugin = installed.plugin(mpi)
    if options.routes or options.calibrate:
        if plugin.troubles:
            raise Trouble("; ".join(plugin.troubles))
        if options.calibrate:
            routes.calibrate(mpi, plugin)
        told = routes.told(plugin)
        print(json.dumps(told, indent=2) if options.json else routes.text(told))
        return EXIT_OK
    works = machine.mechanisms(plugin)
    job = _job(options, mpi) if options.attempt and not plugin.troubles else None
    told = {
        "velo": {"version": plugin.version, "plugin": plugin.file and str(plugin.file), "components": plugin.components,
                 "built_for": plugin.built_for, "troubles": plugin.troubles,
                 "commands": [name for name in _OTHER_COMMANDS if shutil.which(name) or (_HERE / name).is_file()]},
        "open_mpi": {"version": mpi.version, "prefix": mpi.prefix, "mpirun": mpi.mpirun, "choices": mpi.choices},
        "mechanisms": [dataclasses.asdict(each) for each in works],
        "job": job,
        "command_lines": [] if plugin.troubles else _command_lines(plugin, {each.name: each.works for each in works}, job),
    }
    print(json.dumps(told, indent=2) if options.json else _text(told))
    return EXIT_FAILED if plugin.troubles or (job and job["failure"]) else EXIT_OK


def _job(options, mpi):
    """A job over Velo, and where it finds no plugin once more with the path of components spelt out: some mpirun replace it."""
    program = find_own("--bench", options.bench)
    words = [mpi.mpirun, "--oversubscribe", "-np", "2", *mca_words({"pml": "ob1", "btl": "velo", "btl_velo_report": "json"}), program, "-iter", "100",
             "-msglog", "0:3", "PingPong"]
    finished, failure = attempt(words, _TRY_SECONDS)
    path = None
    if failure and "requested component was not found" in " ".join(finished.stderr.split()):
        path = mpi.component_path
        finished = run_limited(words, {**environment(), "OMPI_MCA_mca_base_component_path": path}, _TRY_SECONDS)
        failure = finished.failure(_TRY_SECONDS)
        path = None if failure else path
    if not failure and not (find_report(finished.stderr) or {"total": {"messages_sent": 0}})["total"]["messages_sent"]:
        failure = "no message went over Velo"
    return {"command": shell_line(words), "needs_component_path": path, "failure": failure, "output": finished.tail() if failure else None}


def _command_lines(plugin, works, job):
    begin = "mpirun --mca pml ob1 --mca btl velo "
    lines = [("one node, or several" if works["UCX"] else "one node", begin + "./program")]
    lines.append(("prints that it is in use", begin + "--mca btl_velo_verbose 1 ./program"))
    if job and job["needs_component_path"]:
        lines.insert(0, ("this mpirun needs", f"export OMPI_MCA_mca_base_component_path={job['needs_component_path']}"))
    if not works["UCX"]:
        lines.append(("several nodes", "mpirun --mca pml ob1 --mca btl velo,tcp --mca btl_velo_network none ./program"))
    if "mtl" in plugin.components:
        lines.append(("bounded memory for unmatched messages", "mpirun --mca pml cm --mca mtl velo ./program"))
    if "coll" in plugin.components:
        multicast = "--mca coll_velo_multicast auto " if works["UCX"] and works["IP multicast"] else ""
        lines.append(("collective operations, too", f"{begin}--mca coll_velo_priority 90 {multicast}./program"))
    return [{"for": purpose, "line": line} for purpose, line in lines]


def _text(told):
    velo, mpi = told["velo"], told["open_mpi"]
    lines = [f"Velo {velo['version'] or '(not usable)'}", *_facts([
        ("plugin", velo["plugin"] and f"{velo['plugin']} ({', '.join(velo['components'])})"),
        ("built for", velo["built_for"] and f"Open MPI {velo['built_for']}"),
        ("found", f"Open MPI {mpi['version']} in {mpi['prefix']}"),
        ("chosen", ", ".join(f"{name}={value}" for name, value in mpi["choices"].items())),
        ("commands", ", ".join(velo["commands"])),
        *(("TROUBLE", trouble) for trouble in velo["troubles"])]), "", "This machine"]
    for each in told["mechanisms"]:
        lines += _facts([(each["name"], f"{'yes' if each['works'] else 'no '}  {each['detail']}")])
        lines += [f"{'':20}-> {each['remedy']}"] if each["remedy"] else []
    if told["job"]:
        failure = told["job"]["failure"]
        lines += ["", "A job of two processes", *_facts([("command", told["job"]["command"]), ("ended", f"FAILED: {failure}" if failure else "well")])]
        lines += [f"  | {line}" for line in (told["job"]["output"] or "").splitlines()]
    if told["command_lines"]:
        lines += ["", "On the command line", *(f"  {each['line']:110} # {each['for']}".rstrip() for each in told["command_lines"])]
    return "\n".join(lines)


def _facts(facts):
    return [f"  {name:14}{value}" for name, value in facts if value]
