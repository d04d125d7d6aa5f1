"""Performs experiments: plan, runs, lines, verdicts, files."""

import dataclasses
import shutil

from .. import command, machine
from ..plugin import Unavailable
from ..progress import Progress
from ..rounds import perform
from . import measurement, output
from .experiment import Results
from .judging import count_text, noise_text

_ROUNDS, _QUICK_ROUNDS = 3, 1


class Laboratory:
    """`rounds`: of every experiment; None: as each needs."""

    def __init__(self, runner, context, rounds, directory, write_plot):
        self._runner = runner
        self._context = context
        self._rounds = rounds
        self._directory = directory
        self._write_plot = write_plot
        self._machine = machine.describe()  # before there is load of its own

    def perform(self, experiment):
        """Runs an experiment and writes its files. False if a run failed."""
        directory = self._directory / experiment.name
        # What is written while it runs is no result: the page takes what lies in directories of the output alone.
        running = self._directory / ".running" / experiment.name
        shutil.rmtree(running.parent, ignore_errors=True)
        running.mkdir(parents=True)
        context = dataclasses.replace(self._context, directory=running)
        print(f"\n{experiment.name}  {experiment.title}  [{experiment.source}]\n{experiment.statement}", flush=True)
        try:
            plan = experiment.plan(context)
        except Unavailable as reason:
            print(f"SKIPPED {experiment.name}: {reason}", flush=True)
            output.write_skipped(running, experiment, str(reason), self._settings(experiment, None))
            self._move(running, directory)
            return True
        for reason in plan.skipped:
            print(f"SKIPPED in {experiment.name}: {reason}", flush=True)
        outcomes = []
        runs = measurement.schedule(plan.points_of, self._rounds_of(experiment))
        try:
            self._run_all(runs, outcomes)
        except KeyboardInterrupt:
            self._keep(running, directory, plan, outcomes, len(runs))
            raise
        good = self._conclude(experiment, context, plan, outcomes)
        self._move(running, directory)
        plots = [output.PNG, output.SVG] if self._write_plot is not None else []
        print(f"wrote {directory}/: {', '.join([output.DATA, output.RESULT, *plots])}", flush=True)
        return good

    def _keep(self, running, directory, plan, outcomes, wanted):
        """What an interrupted run has measured is not lost, and is no result: an earlier one stays."""
        output.write_data(running, measurement.lines(plan.points_of, outcomes))
        kept = directory.with_name(directory.name + ".interrupted")
        self._move(running, kept)
        print(f"\nINTERRUPTED {directory.name} after {len(outcomes)} of {wanted} runs: no verdicts; what was measured is in "
              f"{kept}/{output.DATA}" + (f", and {directory} is as it was" if directory.exists() else ""), flush=True)

    def _move(self, running, directory):
        """In the place of what an earlier run has left."""
        shutil.rmtree(directory, ignore_errors=True)
        running.rename(directory)
        running.parent.rmdir()

    def _rounds_of(self, experiment):
        return self._rounds or max(experiment.least_rounds, _QUICK_ROUNDS if self._context.quick else _ROUNDS)

    def _conclude(self, experiment, context, plan, outcomes):
        directory = context.directory
        results = Results(measurement.lines(plan.points_of, outcomes), outcomes)
        verdicts = experiment.judge(results, context)
        settings = self._settings(experiment, plan)
        noise = noise_text(results)
        settings["scale"] += f". {noise}" if noise else ""
        output.write_data(directory, results.lines)
        output.write_phases(directory, outcomes)
        output.write_result(directory, experiment, plan, verdicts, outcomes, settings)
        if self._write_plot is not None:
            self._write_plot([directory / output.PNG, directory / output.SVG], experiment, plan, results, verdicts, context, settings["scale"])
        if experiment.finish:
            experiment.finish(results, context)
        print(f"{settings['scale']}")
        for verdict in verdicts:
            print(f"- {verdict.text()}")
        print(count_text(verdicts))
        return not any(outcome.failure for outcome in outcomes)

    def _run_all(self, runs, outcomes):
        progress = Progress(len(runs))
        for outcome in perform(runs, self._runner.execute, _label, lambda failed: command.failure_text("velo-measure papers", failed), progress):
            outcomes.append(outcome)
            if outcome.failure and len(outcomes) == 1:
                progress.message("velo-measure papers: the first run failed, which is the reference: none of the others was started")
                return
        progress.finish()

    def _settings(self, experiment, plan):
        context, rounds = self._context, self._rounds_of(experiment)
        ranks = sorted({workload.ranks for workload in plan.points_of if workload.program != measurement.SIMULATED}) if plan else [context.ranks]
        compared = experiment.compared or f"overhead against none with {context.reference_slots} slots per peer or more"
        scale = (f"{' to '.join(str(count) for count in dict.fromkeys((ranks[0], ranks[-1])))} ranks on {context.cores} cores of one "
                 f"node, medians of {rounds} round(s), {context.seconds:g} s each; {compared} in the same interleaved run")
        scale = ". ".join(filter(None, [scale, machine.load_text(self._machine).rstrip(".")]))
        return {"scale": scale, "machine": self._machine, "ranks": ranks, "cores": context.cores, "rounds": rounds, "seconds": context.seconds,
                "quick": context.quick, "reference_slots": context.reference_slots, "plugin": context.plugin.version,
                "policies": list(context.plugin.policies)}


def _label(run):
    return f"{run.case.name}, {run.setup.series}" + ("" if run.setup.x is None else f", {run.setup.x:g}")
