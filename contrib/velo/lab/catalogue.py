"""All experiments, in the order of the papers."""

from .experiments import (bandwidth, benchmark_suite, by_reference, incast, local_peers, localised, multicast, nas, overhead_parts,
                          overview, paired, piggybacking, reallocation, schedules, static_parameters, unexpected)

EXPERIMENTS = (
    overview.EXPERIMENT,
    static_parameters.EXPERIMENT,
    piggybacking.EXPERIMENT,
    localised.STATIC,
    localised.DYNAMIC,
    overhead_parts.EXPERIMENT,
    local_peers.EXPERIMENT,
    reallocation.EXPERIMENT,
    benchmark_suite.EXPERIMENT,
    unexpected.EXPERIMENT,
    benchmark_suite.ROOTS,
    bandwidth.EXPERIMENT,
    nas.EXPERIMENT,
    incast.EXPERIMENT,
    paired.EXPERIMENT,
    by_reference.EXPERIMENT,
    *schedules.EXPERIMENTS,
    *multicast.EXPERIMENTS,
)
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
# Words that stand for several names.
GROUPS = {"goal": tuple(experiment.name for experiment in schedules.EXPERIMENTS),
          "multicast": tuple(experiment.name for experiment in multicast.EXPERIMENTS), "all": tuple(BY_NAME)}
