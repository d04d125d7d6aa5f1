// velo-phases: a program whose communication pattern changes, as in section 7.3 of the thesis (figure 7.4).
// Executions of the alltoall of velo-lab over all ranks, a quarter, a half, all, a half, a quarter and all
// again, with a barrier of everybody after each phase. Rank 0 prints, on the clock of btl_velo_trace:
//   phase NUMBER ranks R executions E begin_ns B end_ns E slowest_us T wrong_bytes W
//   mark EXECUTIONS_SO_FAR NS
//   end
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "pattern.h"
#include "sampler.h"

namespace velo::lab {
namespace {

constexpr char kUsage[] =
    "usage: velo-phases [executions] [bytes] [divisors]\n"
    "  executions  of an alltoall in each phase (default 100)\n"
    "  bytes       to each rank (default 2048)\n"
    "  divisors    one for each phase: 4 means a quarter of the ranks, at least 2 (default 1,4,2,1,2,4,1)\n"
    "Each rank sends to all others, then receives from all. Exit status: 0, 1 when received data was wrong, "
    "2 for\n"
    "a wrong command line.\n";
constexpr long kMarksInPhase = 20;

struct Plan {
    long executions = 100;
    int bytes = 2048;
    std::vector<int> divisors = {1, 4, 2, 1, 2, 4, 1};
};

struct Mark {
    long done;  // executions since the beginning
    long long at_ns;
};

template <typename Number>
bool read(const std::string& text, Number most, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && value >= 1 && value <= most;
}

bool read_divisors(std::string text, std::vector<int>& divisors) {
    divisors.clear();
    for (std::size_t comma = 0; comma != std::string::npos; text.erase(0, comma + 1)) {
        comma = text.find(',');
        if (!read(text.substr(0, comma), 1 << 20, divisors.emplace_back())) return false;
        if (comma == std::string::npos) break;
    }
    return true;
}

bool parse(const std::vector<std::string>& words, Plan& plan) {
    return words.size() <= 3 && (words.empty() || read(words[0], 1'000'000'000L, plan.executions)) &&
           (words.size() < 2 || read(words[1], 1 << 24, plan.bytes)) &&
           (words.size() < 3 || read_divisors(words[2], plan.divisors));
}

long long monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Returns the wrong bytes that all ranks received.
long run_phase(const World& world, const Plan& plan, std::size_t phase, std::vector<Mark>& marks) {
    const int active = std::max(world.ranks / plan.divisors[phase], std::min(world.ranks, 2));
    const auto pattern = make_alltoall(world, active, plan.bytes);
    const long every = std::max(1L, plan.executions / kMarksInPhase);
    const long before = marks.back().done;
    pattern->spoil();
    MPI_Barrier(world.everyone);
    const long long begin = monotonic_ns();
    for (long i = 1; i <= plan.executions; ++i) {
        pattern->run();
        if (i % every == 0 || i == plan.executions) marks.push_back({before + i, monotonic_ns()});
    }
    const long long mine = pattern->takes_part() ? monotonic_ns() - begin : 0;
    MPI_Barrier(world.everyone);
    const long long end = monotonic_ns();
    long long slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_LONG_LONG, MPI_MAX, 0, world.everyone);
    const long wrong = defects_of_all(world, *pattern);
    if (world.rank == 0)
        std::printf(
            "phase %zu ranks %d executions %ld begin_ns %lld end_ns %lld slowest_us %.3f wrong_bytes %ld\n",
            phase, active, plan.executions, begin, end,
            1e-3 * static_cast<double>(slowest) / static_cast<double>(plan.executions), wrong);
    return wrong;
}

int run(const std::vector<std::string>& words) {
    World world;
    MPI_Comm_rank(world.everyone, &world.rank);
    MPI_Comm_size(world.everyone, &world.ranks);
    Plan plan;
    if (!parse(words, plan)) {
        if (world.rank == 0) std::fputs(kUsage, stderr);
        return 2;
    }
    std::vector<Mark> marks{{0, monotonic_ns()}};
    long wrong = 0;
    for (std::size_t phase = 0; phase < plan.divisors.size(); ++phase)
        wrong += run_phase(world, plan, phase, marks);
    if (world.rank == 0) {
        for (const Mark& mark : marks) std::printf("mark %ld %lld\n", mark.done, mark.at_ns);
        std::puts("end");
    }
    return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace velo::lab

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words == std::vector<std::string>{"--help"}) {
        std::fputs(velo::lab::kUsage, stdout);
        return 0;
    }
    MPI_Init(&argc, &argv);
    const int status = velo::lab::run(words);
    MPI_Finalize();
    return status;
}
