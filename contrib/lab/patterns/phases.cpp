#include "phases.h"

#include <time.h>

#include <algorithm>
#include <cstdio>

#include "sampler.h"

namespace velo::lab {
namespace {

constexpr long kMarksInPhase = 20;

long long monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

struct Mark {
    long done;  // repetitions since the beginning
    long long at_ns;
};

}  // namespace

long run_phases(const World& world, const Options& options) {
    std::vector<Mark> marks{{0, monotonic_ns()}};
    long defects = 0;
    long done = 0;
    const long every = std::max(1L, options.repetitions / kMarksInPhase);
    for (std::size_t phase = 0; phase < options.phases.size(); ++phase) {
        const int active = options.phases[phase];
        const auto pattern = make_alltoall(world, active, options.bytes);
        pattern->spoil();
        MPI_Barrier(world.everyone);
        const double started = MPI_Wtime();
        for (long i = 1; i <= options.repetitions; ++i) {
            pattern->run();
            if (++done; i % every == 0) marks.push_back({done, monotonic_ns()});
        }
        const double mine = pattern->takes_part() ? MPI_Wtime() - started : 0;
        MPI_Barrier(world.everyone);
        double slowest = 0;
        MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, world.everyone);
        const long wrong = pattern->defects();
        long all_wrong = 0;
        MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, world.everyone);
        defects += all_wrong;
        if (world.rank == 0)
            std::printf("phase %zu %d %.3f %ld %ld\n", phase, active, 1e6 * slowest / options.repetitions,
                        options.repetitions, all_wrong);
    }
    for (const Mark& mark : marks)
        if (world.rank == 0) std::printf("mark %ld %lld\n", mark.done, mark.at_ns);
    return defects;
}

}  // namespace velo::lab
