"""Performs experiments: plan, runs, lines, verdicts, files."""

import dataclasses

from .. import command
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

    def perform(self, experiment):
        """Runs an experiment and writes its files. False if a run failed."""
        directory = self._directory / experiment.name
        directory.mkdir(parents=True, exist_ok=True)
        context = dataclasses.replace(self._context, directory=directory)
        print(f"\n{experiment.name}  {experiment.title}  [{experiment.source}]\n{experiment.statement}", flush=True)
        try:
            plan = experiment.plan(context)
        except Unavailable as reason:
            print(f"SKIPPED {experiment.name}: {reason}", flush=True)
            self._forget(directory)
            output.write_skipped(directory, experiment, str(reason), self._settings(experiment, None))
            return True
        for reason in plan.skipped:
            print(f"SKIPPED in {experiment.name}: {reason}", flush=True)
        outcomes = []
        rounds = self._rounds_of(experiment)
        try:
            self._run_all(measurement.schedule(plan.points_of, rounds), outcomes)
        except KeyboardInterrupt:
            # What was measured is not lost.
            plan.skipped.append("INTERRUPTED: not all runs took place")
            self._conclude(experiment, context, plan, outcomes)
            raise
        return self._conclude(experiment, context, plan, outcomes)

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
        self._write_plot([directory / output.PNG, directory / output.SVG], experiment, plan, results, verdicts, context,
                         settings["scale"])
        if experiment.finish:
            experiment.finish(results, context)
        print(f"{settings['scale']}")
        for verdict in verdicts:
            print(f"- {verdict.text()}")
        print(count_text(verdicts))
        print(f"wrote {directory}/: {output.DATA}, {output.RESULT}, {output.PNG}, {output.SVG}", flush=True)
        return not any(outcome.failure for outcome in outcomes)

    @staticmethod
    def _forget(directory):
        """Files of an earlier run do not stand for this one."""
        for name in (output.DATA, output.PHASES, output.PNG, output.SVG):
            (directory / name).unlink(missing_ok=True)

    def _run_all(self, runs, outcomes):
        progress = Progress(len(runs))
        for outcome in perform(runs, self._runner.execute, _label, lambda failed: command.failure_text("velo-lab", failed), progress):
            outcomes.append(outcome)
            if outcome.failure and len(outcomes) == 1:
                progress.message("velo-lab: the first run failed, which is the reference: none of the others was started")
                return
        progress.finish()

    def _settings(self, experiment, plan):
        context, rounds = self._context, self._rounds_of(experiment)
        ranks = sorted({workload.ranks for workload in plan.points_of}) if plan else [context.ranks]
        compared = experiment.compared or f"overhead against none with {context.reference_slots} slots per peer or more"
        scale = (f"{' to '.join(str(count) for count in dict.fromkeys((ranks[0], ranks[-1])))} ranks on {context.cores} cores of one "
                 f"node, medians of {rounds} round(s), {context.seconds:g} s each; {compared} in the same interleaved run")
        return {"scale": scale, "ranks": ranks, "cores": context.cores, "rounds": rounds, "seconds": context.seconds,
                "quick": context.quick, "reference_slots": context.reference_slots, "plugin": context.plugin.version,
                "policies": list(context.plugin.policies)}


def _label(run):
    return f"{run.case.name}, {run.setup.series}" + ("" if run.setup.x is None else f", {run.setup.x:g}")
