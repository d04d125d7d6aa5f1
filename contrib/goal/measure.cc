#include "measure.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <vector>

#include "goal.h"
#include "part.h"

namespace velo::goal {
namespace {

GOAL_Schedule compiled(GOAL_Graph graph) {
    const GOAL_Schedule schedule = GOAL_Compile(graph);
    GOAL_FreeGraph(graph);
    return schedule;
}

// One way of the ping-pong, as ESPGOAL's section 6.3 has it: each send waits for the receive before it, the
// first one for a stamp, and another stamp for the last receive. What went out has to come back.
class PingPong {
 public:
    explicit PingPong(const MeasureOptions& options)
        : rounds_(options.rounds), rank_(GOAL_MyRank()), out_(options.bytes), back_(options.bytes) {
        if (GOAL_GroupSize() != 2) throw std::runtime_error("pingpong is for two ranks: mpirun -np 2");
        const auto bytes = static_cast<int>(options.bytes);
        const GOAL_Graph graph = GOAL_CreateGraph();
        GOAL_Vertex last = rank_ == 0 ? stamp(graph, &begin_) : GOAL_INVALID_VERTEX;
        const auto then = [&](GOAL_Vertex next) {
            if (last != GOAL_INVALID_VERTEX) GOAL_Requires(graph, last, next);
            last = next;
        };
        for (std::uint32_t i = 0; i < 2 * rounds_; ++i)
            if (i % 2 == static_cast<std::uint32_t>(rank_))
                then(GOAL_Send(graph, rank_ == 0 ? out_.data() : back_.data(), bytes, 1 - rank_));
            else
                then(GOAL_Recv(graph, back_.data(), bytes, 1 - rank_));
        if (rank_ == 0) then(stamp(graph, &end_));
        schedule_ = compiled(graph);
    }
    ~PingPong() { GOAL_FreeSchedule(schedule_); }
    PingPong(const PingPong&) = delete;
    PingPong& operator=(const PingPong&) = delete;

    double once() {
        out_.front() = out_.back() = ++number_;
        back_.front() = back_.back() = 0;
        GOAL_Wait(GOAL_Run(schedule_));
        return 1e6 * (end_ - begin_) / (2 * rounds_);
    }
    bool is_right() const { return back_.front() == number_ && back_.back() == number_; }

 private:
    static GOAL_Vertex stamp(GOAL_Graph graph, double* seconds) {
        return GOAL_LocalOp(graph, nullptr, nullptr, seconds, GOAL_WTIME, GOAL_FLOAT, 64, 1);
    }

    std::uint32_t rounds_;
    int rank_;
    std::vector<std::uint8_t> out_, back_;
    std::uint8_t number_ = 0;
    double begin_ = 0, end_ = 0;
    GOAL_Schedule schedule_;
};

// As a tuned program has it, whatever the rest is compiled with; Clang does so anyhow.
#ifndef __clang__
#define VELO_TUNED __attribute__((optimize("O3")))
#else
#define VELO_TUNED
#endif

template <typename Element>
VELO_TUNED void add(const void* first, const void* second, void* result, std::size_t count) {
    const auto* a = static_cast<const Element*>(first);
    const auto* b = static_cast<const Element*>(second);
    auto* c = static_cast<Element*>(result);
    for (std::size_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
}

constexpr struct {
    const char* name;
    GOAL_DataType type;
    int bytes;
    void (*loop)(const void*, const void*, void*, std::size_t);
} kTypes[] = {{"uint8", GOAL_UINT, 1, add<std::uint8_t>},
              {"uint64", GOAL_UINT, 8, add<std::uint64_t>},
              {"float", GOAL_FLOAT, 4, add<float>},
              {"double", GOAL_FLOAT, 8, add<double>}};

// An addition as a schedule of one operation, and as a loop (section 6.4). Microseconds of GOAL_Run and
// GOAL_Wait.
class Addition {
 public:
    explicit Addition(const MeasureOptions& options) : is_loop_(options.what == "loop") {
        const auto* type =
            std::ranges::find_if(kTypes, [&](const auto& t) { return options.type == t.name; });
        if (type == std::end(kTypes)) throw std::runtime_error("--type: one of uint8, uint64, float, double");
        count_ = options.bytes / static_cast<std::uint32_t>(type->bytes);
        loop_ = type->loop;
        const std::size_t room = std::max<std::size_t>(options.bytes, 8);
        for (auto* buffer : {&first_, &second_, &result_, &expected_}) buffer->resize(room);
        for (std::size_t i = 0; i < room; ++i) {
            first_[i] = static_cast<std::uint8_t>(i % 61);
            second_[i] = static_cast<std::uint8_t>(i % 53);
        }
        loop_(first_.data(), second_.data(), expected_.data(), count_);
        const GOAL_Graph graph = GOAL_CreateGraph();
        GOAL_LocalOp(graph, first_.data(), second_.data(), result_.data(), GOAL_ADD, type->type,
                     8 * type->bytes, static_cast<int>(count_));
        schedule_ = compiled(graph);
    }
    ~Addition() { GOAL_FreeSchedule(schedule_); }
    Addition(const Addition&) = delete;
    Addition& operator=(const Addition&) = delete;

    double once() {
        constexpr int kCalls = 16;  // between two looks at the clock
        const Clock::time_point begin = Clock::now();
        for (int i = 0; i < kCalls; ++i) {
            if (is_loop_)
                loop_(first_.data(), second_.data(), result_.data(), count_);
            else
                GOAL_Wait(GOAL_Run(schedule_));
            asm volatile("" : : "r"(result_.data()) : "memory");
        }
        return 1e6 * seconds_since(begin) / kCalls;
    }
    bool is_right() const { return result_ == expected_; }

 private:
    bool is_loop_;
    std::uint32_t count_;
    void (*loop_)(const void*, const void*, void*, std::size_t);
    std::vector<std::uint8_t> first_, second_, result_, expected_;
    GOAL_Schedule schedule_;
};

// Rank 0 decides when it is enough.
template <typename Experiment>
int repeat(const MeasureOptions& options) {
    Experiment experiment(options);
    std::vector<double> usec;
    long defects = 0;
    const Clock::time_point begin = Clock::now();
    constexpr std::size_t kLeast = 5;
    for (int more = 1; more != 0;) {
        usec.push_back(experiment.once());
        defects += experiment.is_right() ? 0 : 1;
        more = usec.size() < kLeast || seconds_since(begin) < options.seconds ? 1 : 0;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (GOAL_MyRank() > 0) return 0;
    std::ranges::sort(usec);
    std::printf("bench 1 %d Velo\npoint %s %u %.6g %.6g %.6g 1 %zu %ld 0 0\nend\n", GOAL_GroupSize(),
                options.what.c_str(), options.bytes, usec[usec.size() / 2], usec.front(), usec.back(),
                usec.size(), defects);
    return defects == 0 ? 0 : 1;
}

}  // namespace

int measure(const MeasureOptions& options) {
    MPI_Init(nullptr, nullptr);
    GOAL_Init();
    int status = 1;
    try {
        status = options.what == "pingpong" ? repeat<PingPong>(options) : repeat<Addition>(options);
    } catch (const std::exception& error) {
        // The same at all ranks.
        if (GOAL_MyRank() == 0) std::fprintf(stderr, "velo-goal: %s\n", error.what());
    }
    GOAL_Finalize();
    MPI_Finalize();
    return status;
}

}  // namespace velo::goal
