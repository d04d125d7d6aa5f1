// velo-mpi-bench phases: a program whose communication pattern changes, as in section 7.3 of the thesis (figure 7.4).
// Executions of Pairwise over all ranks, a quarter, a half, all, a half, a quarter and all again, with a
// barrier of everybody after each phase. Times are those of btl_velo_trace.
#include <time.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>

#include "data_check.h"
#include "modes.h"
#include "process_groups.h"

namespace velo::bench {
namespace {

constexpr char kPhasesUsage[] =
    "Usage: velo-mpi-bench phases [executions] [bytes] [divisors]\n"
    "  executions  of an alltoall in each phase (default 100)\n"
    "  bytes       to each rank (default 2048)\n"
    "  divisors    one for each phase: 4 means a quarter of the ranks, at least 2 (default 1,4,2,1,2,4,1)\n"
    "Each rank sends to all others, then receives from all. Exit status: 0, 1 when received data was wrong, "
    "2 for\n"
    "a wrong command line.\n";
constexpr long kMarksInPhase = 20;

struct PhasePlan {
    long executions = 100;
    std::size_t bytes = 2048;
    std::vector<int> divisors = {1, 4, 2, 1, 2, 4, 1};
};

struct Mark {
    long done;  // executions since the beginning
    long long at_ns;
};

PhasePlan parse_phases(const Words& words) {
    PhasePlan plan;
    if (words.size() > 3) throw UsageError("three words at most");
    if (!words.empty()) plan.executions = parse_int("executions", words[0], 1, 1'000'000'000);
    if (words.size() > 1) plan.bytes = parse_int("bytes", words[1], 1, 1 << 24);
    if (words.size() > 2) {
        plan.divisors.clear();
        for (std::size_t begin = 0; begin <= words[2].size();) {
            const std::size_t end = std::min(words[2].find(',', begin), words[2].size());
            plan.divisors.push_back(parse_int("divisors", words[2].substr(begin, end - begin), 1, 1 << 20));
            begin = end + 1;
        }
    }
    return plan;
}

long long monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

struct Phase {
    std::size_t number;
    const ProcessGroups& groups;
    const PhasePlan& plan;
};

// Returns the defects that all ranks found.
long run_phase(Benchmark& benchmark, const Phase& phase, int rank, std::vector<Mark>& marks) {
    const Group& group = phase.groups.group();
    const bool takes_part = phase.groups.takes_part();
    const long executions = phase.plan.executions;
    const std::size_t room = phase.plan.bytes * group.size;
    std::vector<std::byte> out(room);
    std::vector<std::byte> in(room);
    Call call{.group = group,
              .bytes = phase.plan.bytes,
              .iteration = 0,
              .root = 0,
              .window = 1,
              .send = out.data(),
              .receive = in.data(),
              .stride = phase.plan.bytes};
    DataCheck check(rank);
    if (takes_part) {
        benchmark.prepare(group, call.bytes, 1);
        check.fill(benchmark, call);
    }
    const long every = std::max(1L, executions / kMarksInPhase);
    const long before = marks.back().done;
    MPI_Barrier(MPI_COMM_WORLD);
    const long long begin = monotonic_ns();
    for (long i = 1; i <= executions; ++i) {
        if (takes_part) benchmark.run(call);
        if (i % every == 0 || i == executions) marks.push_back({before + i, monotonic_ns()});
    }
    const long long mine = takes_part ? monotonic_ns() - begin : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const long long end = monotonic_ns();
    if (takes_part) check.verify(benchmark, call);
    long long slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    long defects = check.defects();
    MPI_Allreduce(MPI_IN_PLACE, &defects, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf(
            "phase %zu ranks %d executions %ld begin_ns %lld end_ns %lld slowest_us %.3f defects %ld\n",
            phase.number, group.size, executions, begin, end,
            1e-3 * static_cast<double>(slowest) / static_cast<double>(executions), defects);
    return defects;
}

}  // namespace

int run_phases(const Words& words, int rank) {
    if (words == Words{"--help"}) {
        if (rank == 0) std::fputs(kPhasesUsage, stdout);
        return 0;
    }
    PhasePlan plan;
    try {
        plan = parse_phases(words);
    } catch (const UsageError& error) {
        // Its words are no options.
        const std::string text = error.what();
        throw UsageError(text.substr(text.starts_with('-') ? 1 : 0) + "\n" + kPhasesUsage);
    }
    Options options;
    options.benchmarks = {"Pairwise"};
    const BenchmarkList selected = select_benchmarks(options);
    int world = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    // Before the first phase: to make them takes messages too.
    std::vector<std::unique_ptr<ProcessGroups>> groups;
    for (const int divisor : plan.divisors)
        groups.push_back(std::make_unique<ProcessGroups>(Layout{
            .world = world, .group_size = std::max(world / divisor, std::min(world, 2)), .groups = 1}));
    std::vector<Mark> marks{{0, monotonic_ns()}};
    long defects = 0;
    for (std::size_t number = 0; number < groups.size(); ++number)
        defects += run_phase(*selected.front(), {number, *groups[number], plan}, rank, marks);
    if (rank == 0) {
        for (const Mark& mark : marks) std::printf("mark %ld %lld\n", mark.done, mark.at_ns);
        std::puts("end");
    }
    return defects == 0 ? 0 : 1;
}

}  // namespace velo::bench
