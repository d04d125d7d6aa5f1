// What the handles of goal.h stand for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "calls.h"
#include "goal.h"
#include "group.h"
#include "plugin.h"

namespace velo::library {

struct Function {
    void (*function)(void*);
    void* argument;
};

// Throws Misuse once MPI_Finalize has begun.
inline void require_mpi() {
    if (is_released()) throw Misuse{GOAL_ERR_STATE, "", "MPI is finalized"};
}
// Throws Misuse unless the group of the object that was given as `argument` is open.
inline void require_open(const Group& group, const char* argument) {
    require_mpi();
    if (!group.is_open()) throw Misuse{GOAL_ERR_STATE, argument, "its group has been freed"};
}

}  // namespace velo::library

struct _GOAL_Group {
    std::shared_ptr<velo::library::Group> group;
};

// Of an open group all the time that it is used; what else is kept says at once what is wrong with an
// operation.
struct _GOAL_Graph {
    explicit _GOAL_Graph(std::shared_ptr<velo::library::Group> of);
    ~_GOAL_Graph() { table.velo_goal_graph_free(graph); }
    _GOAL_Graph(const _GOAL_Graph&) = delete;
    _GOAL_Graph& operator=(const _GOAL_Graph&) = delete;

    std::shared_ptr<velo::library::Group> group;
    const velo_goal_table& table;
    velo_goal_graph* graph = nullptr;
    std::uint32_t operations = 0;
    bool has_scratchpad = false;
    std::uint64_t scratchpad = 0;                    // bytes
    std::uint64_t scratch_used = 0;                  // that operations reach to
    std::vector<velo::library::Function> functions;  // by the number of the call
};

struct _GOAL_Schedule {
    explicit _GOAL_Schedule(const _GOAL_Graph& graph)
        : group(graph.group), table(graph.table), functions(graph.functions) {}
    ~_GOAL_Schedule() { table.velo_goal_schedule_free(schedule); }
    _GOAL_Schedule(const _GOAL_Schedule&) = delete;
    _GOAL_Schedule& operator=(const _GOAL_Schedule&) = delete;

    std::shared_ptr<velo::library::Group> group;
    const velo_goal_table& table;
    velo_goal_schedule* schedule = nullptr;
    std::vector<velo::library::Function> functions;
    _GOAL_Run* runs = nullptr;  // whose handles are good
};

// What a handle names. These records are never given back to the system, so that a handle that is over can be
// told.
struct _GOAL_Run {
    std::atomic<std::uint64_t> number{0};  // of the handle that is good
    velo_goal_run* run = nullptr;          // NULL: it is over, and `result` is there
    velo_goal_result result{};
    _GOAL_Schedule* schedule = nullptr;
    _GOAL_Run *next = nullptr, **link = nullptr;  // among the schedule's, or the free ones
};
