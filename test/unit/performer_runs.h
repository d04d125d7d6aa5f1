// What tests of a performer run: graphs and schedules through the C interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "performer_party.h"

namespace velo::test {

using Bytes = std::vector<std::byte>;

inline constexpr velo_goal_place kSent{0, 0}, kReceived{0, 1};

struct FreeGraph {
    void operator()(velo_goal_graph* graph) const { velo_goal_graph_free(graph); }
};
struct FreeSchedule {
    void operator()(velo_goal_schedule* schedule) const { velo_goal_schedule_free(schedule); }
};
using Graph = std::unique_ptr<velo_goal_graph, FreeGraph>;
using Schedule = std::unique_ptr<velo_goal_schedule, FreeSchedule>;

inline Graph graph_of(std::uint32_t rank, std::uint32_t size) {
    velo_goal_graph* graph = nullptr;
    EXPECT_EQ(velo_goal_graph_new(rank, size, &graph), VELO_OK);
    return Graph(graph);
}

inline Schedule compiled(const Graph& graph) {
    velo_goal_schedule* schedule = nullptr;
    char error[512] = "";
    EXPECT_EQ(velo_goal_compile(graph.get(), &schedule, error, sizeof error), VELO_OK) << error;
    return Schedule(schedule);
}

inline std::string refusal(const Graph& graph) {
    velo_goal_schedule* schedule = nullptr;
    char error[512] = "";
    EXPECT_EQ(velo_goal_compile(graph.get(), &schedule, error, sizeof error), VELO_ERR_PARAMETER);
    EXPECT_EQ(schedule, nullptr);
    return error;
}

inline velo_goal_run* started(velo_goal_group* group, const Schedule& schedule,
                              const std::vector<void*>& arguments = {}, velo_goal_start start = {}) {
    start.arguments = arguments.data();
    start.argument_count = static_cast<std::uint32_t>(arguments.size());
    velo_goal_run* run = nullptr;
    EXPECT_EQ(velo_goal_run_start(group, schedule.get(), &start, &run), VELO_OK);
    return run;
}

// Two ranks: rank 1 sends `count` messages of `bytes`, which rank 0 receives one after the other.
inline std::vector<Schedule> chain(std::uint32_t count, std::uint64_t bytes) {
    std::vector<Schedule> schedules;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        const Graph graph = graph_of(rank, 2);
        velo_goal_vertex before = VELO_GOAL_NO_VERTEX;
        for (std::uint32_t i = 0; i < count; ++i) {
            const velo_goal_vertex v = rank == 0 ? velo_goal_receive(graph.get(), kReceived, bytes, 1, 3)
                                                 : velo_goal_send(graph.get(), kSent, bytes, 0, 3);
            if (rank == 0) velo_goal_requires(graph.get(), v, before);
            if (rank == 1) velo_goal_requires_start(graph.get(), v, before);
            before = v;
        }
        schedules.push_back(compiled(graph));
    }
    return schedules;
}

class PerformerTest : public ::testing::Test {};

}  // namespace velo::test
