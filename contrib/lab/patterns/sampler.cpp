#include "sampler.h"

#include <algorithm>
#include <cstdlib>

namespace velo::lab {
namespace {

constexpr int kBatches = 5;
constexpr int kWarmUp = 3;

// Seconds of `repetitions`, those of the slowest process; known to all.
double time_batch(const World& world, Pattern& pattern, long repetitions) {
    MPI_Barrier(world.everyone);
    const double started = MPI_Wtime();
    for (long i = 0; i < repetitions; ++i) pattern.run();
    const double mine = pattern.takes_part() ? MPI_Wtime() - started : 0;
    double slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, world.everyone);
    return slowest;
}

// VELO_LAB_CORRUPT: rank whose first received byte counts as wrong (to test the check).
bool is_told_to_fail(const World& world) {
    const char* rank = std::getenv("VELO_LAB_CORRUPT");
    return rank && std::atoi(rank) == world.rank;
}

}  // namespace

long defects_of_all(const World& world, const Pattern& pattern) {
    long mine = pattern.defects();
    if (is_told_to_fail(world)) ++mine;
    long all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, world.everyone);
    return all;
}

long checked_repetition(const World& world, Pattern& pattern) {
    pattern.spoil();
    MPI_Barrier(world.everyone);
    pattern.run();
    return defects_of_all(world, pattern);
}

Sample sample(const World& world, Pattern& pattern, long most_repetitions, double seconds) {
    Sample result;
    result.defects = checked_repetition(world, pattern);
    const double once = time_batch(world, pattern, kWarmUp) / kWarmUp;
    const double wanted = std::min<double>(most_repetitions, seconds / std::max(once, 1e-9));
    const long batch = std::max(1L, static_cast<long>(wanted) / kBatches);
    const int batches =
        static_cast<int>(std::clamp(most_repetitions / batch, 1L, static_cast<long>(kBatches)));
    std::vector<double> usec;
    for (int i = 0; i < batches; ++i) usec.push_back(1e6 * time_batch(world, pattern, batch) / batch);
    result.defects += checked_repetition(world, pattern);
    std::sort(usec.begin(), usec.end());
    result.usec = usec[usec.size() / 2];
    result.min_usec = usec.front();
    result.max_usec = usec.back();
    result.repetitions = batch * batches;
    result.calls = result.repetitions + kWarmUp + 2;
    return result;
}

}  // namespace velo::lab
