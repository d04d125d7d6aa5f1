// What a graph becomes, and what it is refused for.
#include "collectives/goal/schedule.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "goal/compiled.h"

namespace velo::goal {
namespace {

std::vector<Vertex> list(std::span<const Vertex> vertices) {
    return {vertices.begin(), vertices.end()};
}

std::string refusal(const Graph& graph) {
    std::string error;
    EXPECT_FALSE(compile(graph, &error));
    return error;
}

// Figure 1.2 of the paper: rank 1 of a scatter over a tree of five.
TEST(ScheduleTest, holds_operations_edges_and_counters_as_the_graph_was_told) {
    Graph graph(1, 5);
    const Vertex receive = graph.receive({0, kScratch}, 8, 0);
    const Vertex copy = graph.copy({0, kScratch}, {0, 1}, 4);
    const Vertex send = graph.send({4, kScratch}, 4, 2, 7);
    graph.needs(copy, receive);
    graph.needs(send, receive);
    graph.scratch(8);
    const Schedule schedule = compiled(graph);

    EXPECT_EQ(schedule.rank(), 1U);
    EXPECT_EQ(schedule.size(), 5U);
    EXPECT_EQ(schedule.scratch_bytes(), 8U);
    ASSERT_EQ(schedule.count(), 3U);
    EXPECT_EQ(list(schedule.independents()), std::vector<Vertex>{receive});
    EXPECT_EQ(list(schedule.dependents(receive)), (std::vector<Vertex>{copy, send}));
    EXPECT_TRUE(schedule.start_dependents(receive).empty());
    EXPECT_EQ(std::vector(schedule.counters(), schedule.counters() + 3),
              (std::vector<std::uint32_t>{0, 1, 1}));
    EXPECT_EQ(describe(schedule.operation(receive)), "recv 8b from 0");
    EXPECT_EQ(describe(schedule.operation(send)), "send 4b to 2 tag 7");
    EXPECT_EQ(describe(schedule.operation(copy), &schedule), "copy 4b");
    EXPECT_EQ(schedule.combination(schedule.operation(copy)).result.space, 1);
}

TEST(ScheduleTest, is_one_block_that_may_be_moved_as_bytes) {
    Graph graph(0, 2);
    const Piece pieces[] = {{{0, 0}, 3}, {{10, 0}, 4}};
    const Vertex send = graph.send(pieces, 1);
    graph.needs_start(graph.calculate(5), send);
    const Schedule schedule = compiled(graph);
    const Schedule copy = schedule;
    EXPECT_EQ(std::memcmp(copy.image().data(), schedule.image().data(), schedule.image().size()), 0);
    EXPECT_NE(copy.image().data(), schedule.image().data());
    EXPECT_EQ(copy.operation(send).bytes, 7U);
    ASSERT_EQ(copy.pieces(copy.operation(send)).size(), 2U);
    EXPECT_EQ(copy.pieces(copy.operation(send))[1].place, (Place{10, 0}));
    EXPECT_EQ(list(copy.start_dependents(send)), std::vector<Vertex>{1});
}

TEST(ScheduleTest, starts_receives_then_sends_then_work) {
    Graph graph(0, 4);
    const Vertex call = graph.call(0), copy = graph.copy({0, 0}, {0, 1}, 1), large = graph.send({0, 0}, 9, 1),
                 small = graph.send({0, 0}, 2, 2), late = graph.receive({0, 1}, 9, 1),
                 calc = graph.calculate(3), equal = graph.send({0, 0}, 2, 3);
    EXPECT_EQ(list(compiled(graph).independents()),
              (std::vector<Vertex>{late, large, small, equal, copy, calc, call}));
}

TEST(ScheduleTest, an_empty_graph_is_a_schedule) {
    const Schedule schedule = compiled(Graph(0, 1));
    EXPECT_EQ(schedule.count(), 0U);
    EXPECT_TRUE(schedule.independents().empty());
}

TEST(ScheduleTest, a_cycle_is_told_operation_by_operation) {
    Graph graph(3, 8);
    const Vertex a = graph.receive(Place{}, 8, 2), b = graph.send(Place{}, 8, 4), c = graph.calculate(7),
                 d = graph.calculate(9);
    graph.needs(b, a);
    graph.needs(c, b);
    graph.needs_start(b, c);
    graph.needs(d, c);
    EXPECT_EQ(refusal(graph),
              "rank 3 has a cycle: operation 2 (calc 7) waits for operation 1 (send 8b to 4) waits for "
              "operation 2");
    std::string error;
    compile(graph, &error, [](Vertex v) { return "l" + std::to_string(v + 1); });
    EXPECT_EQ(error, "rank 3 has a cycle: l3 (calc 7) waits for l2 (send 8b to 4) waits for l3");
}

TEST(ScheduleTest, an_operation_that_waits_for_itself_is_a_cycle) {
    Graph graph(0, 1);
    const Vertex v = graph.calculate(1);
    graph.needs(v, v);
    EXPECT_EQ(refusal(graph), "rank 0 has a cycle: operation 0 (calc 1) waits for operation 0");
}

TEST(ScheduleTest, a_long_cycle_is_told_in_part) {
    Graph graph(0, 1);
    for (Vertex v = 0; v < 1000000; ++v) graph.calculate(1);
    for (Vertex v = 0; v < 1000000; ++v) graph.needs((v + 1) % 1000000, v);
    const std::string error = refusal(graph);
    EXPECT_LT(error.size(), 3000U);
    EXPECT_NE(error.find("(999968 more)"), std::string::npos) << error;
}

TEST(ScheduleTest, the_first_mistake_in_building_is_told) {
    Graph graph(1, 4);
    graph.send({0, 0}, 1, 4);
    graph.receive({0, 0}, 1, 9);
    EXPECT_EQ(refusal(graph), "rank 1: operation 0 sends to rank 4, but there are 4 ranks");

    Graph any(0, 4);
    any.receive({0, 0}, 1, kAny, kAny);
    compiled(any);
    any.send({0, 0}, 1, kAny);
    EXPECT_EQ(refusal(any), "rank 0: operation 1 sends to rank any, but there are 4 ranks");

    Graph unknown(0, 4);
    unknown.needs(unknown.calculate(1), 5);
    EXPECT_EQ(refusal(unknown), "rank 0: a requirement names operation 5 of 1");

    Graph illegal(0, 4);
    Combination floats;
    floats.op = Operator::kXor;
    floats.type = Type::kFloat;
    floats.width = 64;
    illegal.combine(floats);
    EXPECT_EQ(refusal(illegal), "rank 0: there is no operation xor on float of 64 bits");
}

TEST(ScheduleTest, nothing_to_wait_for_is_no_requirement) {
    Graph graph(0, 1);
    graph.needs(graph.calculate(1), kNoVertex);
    EXPECT_EQ(compiled(graph).independents().size(), 1U);
}

}  // namespace
}  // namespace velo::goal
