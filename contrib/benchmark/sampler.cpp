#include "sampler.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>

#include "iteration_policy.h"

namespace velo::bench {
namespace {

// Repetitions that warm up caches, connections and credits, and estimate the time of one.
constexpr int kWarmUpCalls = 8;
constexpr double kGigabyte = 1024.0 * 1024.0 * 1024.0;

void synchronise(MPI_Comm comm) {
    MPI_Barrier(comm);
    MPI_Barrier(comm);
}

}  // namespace

int Sampler::window(std::size_t bytes) const {
    constexpr std::size_t kMaxWindowBytes = 64UL << 20;
    const std::size_t fitting = kMaxWindowBytes / std::max<std::size_t>(bytes, 1);
    return static_cast<int>(std::clamp<std::size_t>(fitting, 1, options_.window));
}

Call Sampler::call(const ProcessGroups& groups, const Traits& traits, std::size_t bytes,
                   int iteration) const {
    const Group& group = groups.group();
    return {.group = group,
            .bytes = bytes,
            .iteration = iteration,
            .root = traits.rooted && options_.root_shift ? iteration % group.size : 0,
            .window = window(bytes),
            .send = send_.get(),
            .receive = receive_.get()};
}

double Sampler::needed_gb(const Benchmark& benchmark, std::size_t bytes, int processes) const {
    const int in_flight = window(bytes);
    return static_cast<double>(benchmark.send_bytes(bytes, processes, in_flight) +
                               benchmark.receive_bytes(bytes, processes, in_flight)) /
           kGigabyte;
}

Obstacle Sampler::obstacle(const Benchmark& benchmark, std::size_t bytes, int processes) const {
    if (needed_gb(benchmark, bytes, processes) > options_.memory_gb) return Obstacle::kMemory;
    // The ...v variants have displacements of type int.
    const bool overflow = benchmark.traits().kind == Kind::kCollective && bytes * processes > INT_MAX;
    return overflow ? Obstacle::kIntOverflow : Obstacle::kNone;
}

Sampler::Memory Sampler::page_aligned(std::size_t bytes) {
    constexpr std::size_t kPage = 4096;
    const std::size_t rounded = std::max(kPage, (bytes + kPage - 1) / kPage * kPage);
    Memory memory(static_cast<std::byte*>(std::aligned_alloc(kPage, rounded)));
    if (!memory) throw std::bad_alloc();
    std::memset(memory.get(), 0, rounded);
    return memory;
}

void Sampler::allocate(std::size_t send_bytes, std::size_t receive_bytes) {
    send_ = page_aligned(send_bytes);
    receive_ = page_aligned(receive_bytes);
}

double Sampler::checked(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes, int iteration) {
    const Call one = call(groups, benchmark.traits(), bytes, iteration);
    check_.fill(benchmark, one);
    MPI_Barrier(groups.group().comm);
    const double start = MPI_Wtime();
    benchmark.run(one);
    const double seconds = MPI_Wtime() - start;
    check_.verify(benchmark, one);
    return seconds;
}

// Returns the seconds of one call, the same on all active processes.
double Sampler::warm_up(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes) {
    checked(benchmark, groups, bytes, 0);
    const int count = std::min(kWarmUpCalls, options_.repetitions);
    double seconds = timed(benchmark, groups, bytes, count) / count;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, groups.active());
    return seconds;
}

// Collectives are timed one by one between barriers (-sync), everything else in one go.
double Sampler::timed(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes, int count) {
    const Traits& traits = benchmark.traits();
    const bool one_by_one = options_.sync && traits.kind == Kind::kCollective;
    double seconds = 0;
    synchronise(groups.active());
    if (options_.check_every_iteration) {
        for (int i = 0; i < count; ++i) seconds += checked(benchmark, groups, bytes, i);
    } else if (one_by_one) {
        for (int i = 0; i < count; ++i) {
            MPI_Barrier(groups.group().comm);
            const double start = MPI_Wtime();
            benchmark.run(call(groups, traits, bytes, i));
            seconds += MPI_Wtime() - start;
        }
    } else {
        const double start = MPI_Wtime();
        for (int i = 0; i < count; ++i) benchmark.run(call(groups, traits, bytes, i));
        seconds = MPI_Wtime() - start;
    }
    return seconds;
}

Sample Sampler::take(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes) {
    const Group& group = groups.group();
    Sample sample;
    sample.bytes = bytes;
    sample.window = window(bytes);
    allocate(benchmark.send_bytes(bytes, group.size, sample.window),
             benchmark.receive_bytes(bytes, group.size, sample.window));
    benchmark.prepare(group, bytes, sample.window);
    check_.start_sample();
    const long defects_before = check_.defects();

    const double seconds_per_call = warm_up(benchmark, groups, bytes);
    sample.repetitions = repetitions(options_, benchmark.traits(), bytes, group.size, seconds_per_call);
    const double seconds = timed(benchmark, groups, bytes, sample.repetitions);

    const Share mine{.usec_per_call = seconds / sample.repetitions * 1e6,
                     .defects = static_cast<double>(check_.defects() - defects_before)};
    int rank = 0;
    int active = 0;
    MPI_Comm_rank(groups.active(), &rank);
    MPI_Comm_size(groups.active(), &active);
    if (rank == 0) sample.shares.resize(active);
    MPI_Gather(&mine, 2, MPI_DOUBLE, sample.shares.data(), 2, MPI_DOUBLE, 0, groups.active());
    return sample;
}

}  // namespace velo::bench
