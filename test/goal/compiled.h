// A graph's schedule; that there is one is expected.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "collectives/goal/schedule.h"

namespace velo::goal {

inline Schedule compiled(const Graph& graph) {
    std::string error;
    const auto schedule = compile(graph, &error);
    EXPECT_TRUE(schedule) << error;
    return schedule.value_or(Schedule());
}

}  // namespace velo::goal
