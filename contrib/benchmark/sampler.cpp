#include "sampler.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <new>
#include <optional>

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

void perform(Benchmark& benchmark, const Call& call, bool request) {
    if (!request) return benchmark.run(call);
    MPI_Request begun;
    start(benchmark, call, &begun);
    MPI_Wait(&begun, MPI_STATUS_IGNORE);
}

// What a process does to its buffers between calls: a float of each cache line, so that lines travel and sums
// are of numbers. Of a rooted collective the root has other ones than the rest.
class Touching {
 public:
    Touching(const Benchmark& benchmark, Call call) {
        call.stride = call.bytes;
        for (const bool root : {false, true}) {
            call.root = (call.group.rank + !root) % call.group.size;
            sent_[root] = end_of(benchmark.sent(call));
            received_[root] = end_of(benchmark.received(call));
        }
    }

    void write(const Call& call) const {
        const float value = static_cast<float>(call.iteration % 1024);
        for (std::size_t at = 0; at + sizeof value <= sent_[role(call)]; at += kLine)
            std::memcpy(call.send + at, &value, sizeof value);
    }
    void read(const Call& call) {
        for (std::size_t at = 0; at + sizeof(float) <= received_[role(call)]; at += kLine) {
            float value;
            std::memcpy(&value, call.receive + at, sizeof value);
            seen_ += value;
        }
        asm volatile("" : : "m"(seen_));  // so that it has to be read
    }

 private:
    static constexpr std::size_t kLine = 64;

    static std::size_t end_of(const std::vector<Block>& blocks) {
        std::size_t end = 0;
        for (const Block& block : blocks) end = std::max(end, block.offset + block.bytes);
        return end;
    }
    static int role(const Call& call) { return call.root == call.group.rank; }

    std::size_t sent_[2] = {0, 0}, received_[2] = {0, 0};  // bytes; of the root the second one
    float seen_ = 0;
};

}  // namespace

void start(Benchmark& benchmark, const Call& call, MPI_Request* request) {
    if (!benchmark.start(call, request))
        throw UsageError(std::string(benchmark.traits().name) + " has no call that does not block here");
}

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
            .root = traits.rooted && options_.root_shift ? iteration / options_.root_hold % group.size : 0,
            .window = window(bytes),
            .send = send_.get(),
            .receive = receive_.get(),
            .stride = bytes};
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
    Call one = call(groups, benchmark.traits(), bytes, iteration);
    one.checked = true;
    one.corrupt = check_.corrupt();
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
    benchmark.prepare(group, bytes, sample.window);
    allocate(benchmark.send_bytes(bytes, group.size, sample.window),
             benchmark.receive_bytes(bytes, group.size, sample.window));
    check_.start_sample();
    const long defects_before = check_.defects();

    const double seconds_per_call = warm_up(benchmark, groups, bytes);
    sample.repetitions = repetitions(options_, benchmark.traits(), bytes, group.size, seconds_per_call);
    const double seconds = timed(benchmark, groups, bytes, sample.repetitions);

    const Share mine{.usec_per_call = seconds / sample.repetitions * 1e6,
                     .defects = static_cast<double>(check_.defects() - defects_before + benchmark.defects())};
    int rank = 0;
    int active = 0;
    MPI_Comm_rank(groups.active(), &rank);
    MPI_Comm_size(groups.active(), &active);
    if (rank == 0) sample.shares.resize(active);
    MPI_Gather(&mine, 2, MPI_DOUBLE, sample.shares.data(), 2, MPI_DOUBLE, 0, groups.active());
    return sample;
}

// The seconds from the first process's begin to the last one's end, known to rank 0 alone: where many share a
// processor, who has its turn last finds all that it waits for, and its own time is short. Without a common
// clock, those of the slowest process. The call is made anew as little as can be: of eight bytes that go to
// and fro, a division for each would be seen.
double Sampler::batch(Benchmark& benchmark, Call call, MPI_Comm active, long calls, const Effort& effort) {
    using Seconds = std::chrono::duration<double>;
    const bool moves = benchmark.traits().rooted && options_.root_shift;
    std::optional<Touching> touching;
    if (effort.touch) touching.emplace(benchmark, call);
    MPI_Barrier(active);
    const auto start = std::chrono::steady_clock::now().time_since_epoch();
    for (long i = 0; i < calls; ++i) {
        call.iteration = static_cast<int>(next_++);
        if (effort.calls > 0) MPI_Barrier(active);
        if (moves) call.root = call.iteration / options_.root_hold % call.group.size;
        if (touching) touching->write(call);
        if (counts_) counts_->begin();
        perform(benchmark, call, effort.request);
        if (counts_) counts_->end();
        if (touching) touching->read(call);
    }
    const auto end = std::chrono::steady_clock::now().time_since_epoch();
    const auto origin = one_clock_ ? end.zero() : start;
    const double mine[2] = {-Seconds(start - origin).count(), Seconds(end - origin).count()};
    double all[2] = {0, 0};
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, 0, active);
    return all[0] + all[1];
}

bool Sampler::is_on_one_machine(MPI_Comm processes) {
    MPI_Comm machine = MPI_COMM_NULL;
    MPI_Comm_split_type(processes, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    int here = 0, all = 0;
    MPI_Comm_size(machine, &here);
    MPI_Comm_size(processes, &all);
    MPI_Comm_free(&machine);
    all = here == all ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, processes);
    return all == 1;
}

Point Sampler::measure(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes,
                       const Effort& effort) {
    constexpr long kBatches = 5;
    constexpr std::size_t kCheckedBytes = 4UL << 20;  // of a window in one buffer, at least one message
    const Group& group = groups.group();
    const MPI_Comm active = groups.active();
    int rank = 0;
    MPI_Comm_rank(active, &rank);
    one_clock_ = is_on_one_machine(active);
    const int full = window(bytes);
    const int checked_window = effort.one_buffer
                                   ? static_cast<int>(std::clamp<std::size_t>(
                                         kCheckedBytes / std::max<std::size_t>(bytes, 1), 1, full))
                                   : full;
    benchmark.prepare(group, bytes, full);
    allocate(benchmark.send_bytes(bytes, group.size, checked_window),
             benchmark.receive_bytes(bytes, group.size, checked_window));
    check_.start_sample();
    const long defects_before = check_.defects();

    Call timed_call = call(groups, benchmark.traits(), bytes, 0);
    if (effort.one_buffer) timed_call.stride = 0;
    const auto check = [&] {
        Call one = call(groups, benchmark.traits(), bytes, static_cast<int>(next_++));
        one.window = checked_window;
        one.checked = true;
        one.corrupt = check_.corrupt();
        check_.fill(benchmark, one);
        MPI_Barrier(active);
        perform(benchmark, one, effort.request);
        check_.verify(benchmark, one);
    };
    const auto agreed = [&](long value) {
        MPI_Bcast(&value, 1, MPI_LONG, 0, active);
        return value;
    };

    const long first_call = next_;
    check();
    // Doubled until they take long enough, twice: one preemption must not pass for a slow transport. Warms up
    // as well.
    const long most = std::max(1L, effort.most_calls / kBatches);
    const double share = effort.seconds / kBatches;
    long iterations = std::max(1L, effort.calls), batches = 1;
    double took = 0;
    if (effort.calls > 0) counts_.emplace();
    while (effort.calls == 0) {
        took = batch(benchmark, timed_call, active, iterations, effort);
        if (agreed(took < share / 4 && iterations < most)) {
            iterations = std::min(2 * iterations, most);
            continue;
        }
        const double again = batch(benchmark, timed_call, active, iterations, effort);
        took = std::min(took, again);
        if (!agreed(took < share / 4 && iterations < most)) break;
        iterations = std::min(2 * iterations, most);
    }
    if (effort.calls == 0) {
        const double once = std::max(took / static_cast<double>(iterations), 1e-9);
        iterations = agreed(std::clamp(static_cast<long>(share / once), 1L, most));
        // Where one call takes longer than there is time, there are fewer batches.
        batches = agreed(
            std::clamp(std::min(static_cast<long>(effort.seconds / once) + 1, effort.most_calls / iterations),
                       1L, kBatches));
    }
    std::vector<double> usec;
    for (long i = 0; i < batches; ++i)
        usec.push_back(1e6 * batch(benchmark, timed_call, active, iterations, effort) /
                       static_cast<double>(iterations));
    check();

    // What one call moves from process to process.
    Call whole = timed_call;
    whole.stride = bytes;
    double moved[5] = {0, 0, static_cast<double>(check_.defects() - defects_before + benchmark.defects())};
    if (counts_) moved[3] = static_cast<double>(counts_->messages());
    if (counts_) moved[4] = static_cast<double>(counts_->delayed());
    for (const Block& block : benchmark.sent(whole)) {
        if (block.to == block.from) continue;
        moved[0] += 1;
        moved[1] += static_cast<double>(block.bytes);
    }
    double all[5] = {};
    MPI_Reduce(moved, all, 5, MPI_DOUBLE, MPI_SUM, 0, active);

    std::sort(usec.begin(), usec.end());
    const double median = (usec[(usec.size() - 1) / 2] + usec[usec.size() / 2]) / 2;
    const Traits& traits = benchmark.traits();
    const double units = traits.time_divisor * (traits.report == Report::kMessageRate ? full : 1);
    return {.usec = median / units,
            .min_usec = usec.front() / units,
            .max_usec = usec.back() / units,
            .iterations = iterations,
            .repetitions = batches,
            .defects = static_cast<long>(all[2]),
            .messages = static_cast<long>(all[0]) * (next_ - first_call),
            .mbytes_per_second = rank == 0 && median > 0 ? all[1] / median : 0,
            .counted = static_cast<long>(all[3]),
            .delayed = static_cast<long>(all[4])};
}

}  // namespace velo::bench
