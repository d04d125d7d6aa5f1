"""All experiments, in the order of the papers."""

from .experiments import (bandwidth, benchmark_suite, incast, local_peers, localised, overhead_parts, paired, piggybacking,
                          reallocation, static_parameters)

EXPERIMENTS = (
    static_parameters.EXPERIMENT,
    piggybacking.EXPERIMENT,
    localised.STATIC,
    localised.DYNAMIC,
    overhead_parts.EXPERIMENT,
    local_peers.EXPERIMENT,
    reallocation.EXPERIMENT,
    benchmark_suite.EXPERIMENT,
    benchmark_suite.ROOTS,
    bandwidth.EXPERIMENT,
    incast.EXPERIMENT,
    paired.EXPERIMENT,
)
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
