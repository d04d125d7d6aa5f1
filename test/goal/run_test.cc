// Runs against a naive interpreter, under seeded interleavings; very long chains; failures.
#include "collectives/goal/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "goal/allocations.h"
#include "goal/compiled.h"

namespace velo::goal {
namespace {

// Acyclic: edges go up in a random order of the vertices.
Graph random_graph(std::mt19937& random) {
    Graph graph(0, 8);
    const Vertex n = 1 + random() % 40;
    for (Vertex v = 0; v < n; ++v) switch (random() % 4) {
            case 0:
                graph.send({0, 0}, random() % 4, random() % 8);
                break;
            case 1:
                graph.receive({0, 0}, random() % 4, random() % 8);
                break;
            case 2:
                graph.calculate(random() % 9);
                break;
            default:
                graph.call(random() % 3);
        }
    std::vector<Vertex> order(n);
    for (Vertex v = 0; v < n; ++v) order[v] = v;
    std::shuffle(order.begin(), order.end(), random);
    for (unsigned edges = random() % (3 * n); edges > 0; --edges) {
        const Vertex i = random() % n, j = random() % n;
        if (i == j) continue;
        const Vertex earlier = order[std::min(i, j)], later = order[std::max(i, j)];
        random() % 3 == 0 ? graph.needs_start(later, earlier) : graph.needs(later, earlier);
    }
    return graph;
}

// By the words of the rules: looks at every edge each time.
struct Naive {
    explicit Naive(const Graph& graph)
        : graph(graph), started(graph.operations().size()), finished(started.size()) {}
    bool may_start(Vertex v) const {
        return !started[v] && std::ranges::all_of(graph.edges(), [&](const Graph::Edge& edge) {
            return edge.later != v || (edge.start ? started : finished)[edge.earlier];
        });
    }

    const Graph& graph;
    std::vector<bool> started, finished;
};

// Finishes operations at once, or when the test says so.
struct Chance : Executor {
    Chance(Naive& naive, std::mt19937& random) : naive(naive), random(random) {}
    void send(Run& run, Vertex v, const Operation& o) override { start(run, v, o, Kind::kSend); }
    void receive(Run& run, Vertex v, const Operation& o) override { start(run, v, o, Kind::kReceive); }
    void work(Run& run, Vertex v, const Operation& o) override {
        EXPECT_FALSE(o.communicates());
        start(run, v, o, o.kind);
    }
    void start(Run& run, Vertex v, const Operation& o, Kind kind) {
        EXPECT_EQ(&o, &run.schedule().operation(v));
        EXPECT_EQ(o.kind, kind);
        EXPECT_TRUE(naive.may_start(v)) << v;
        naive.started[v] = true;
        under_way.push_back(v);
        if (random() % 2 == 0) finish(run);
    }
    void finish(Run& run) {
        const std::size_t i = random() % under_way.size();
        const Vertex v = under_way[i];
        under_way[i] = under_way.back();
        under_way.pop_back();
        naive.finished[v] = true;
        run.finished(v);
    }

    Naive& naive;
    std::mt19937& random;
    std::vector<Vertex> under_way;
};

class Seeds : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(RunTest, Seeds, ::testing::Range(0U, 500U));

TEST_P(Seeds, everything_starts_as_soon_as_the_naive_interpreter_lets_it_and_never_before) {
    std::mt19937 random(GetParam());
    const Graph graph = random_graph(random);
    const Schedule schedule = compiled(graph);
    goal::Run run(schedule);
    for (int again = 0; again < 3; ++again, run.restart()) {
        Naive naive(graph);
        Chance executor(naive, random);
        for (unsigned steps = 0; !run.done(); ++steps) {
            ASSERT_LE(steps, 10 * schedule.count());
            const std::uint32_t most = random() % 3 == 0 ? 1 + random() % 3 : UINT32_MAX;
            if (drain(run, executor, most)) {
                for (Vertex v = 0; v < schedule.count(); ++v)
                    ASSERT_FALSE(naive.may_start(v)) << v << " may start, and was not";
            }
            ASSERT_TRUE(run.done() || run.has_ready() || !executor.under_way.empty());
            if (!executor.under_way.empty()) executor.finish(run);
        }
        EXPECT_EQ(run.finished_count(), schedule.count());
        EXPECT_TRUE(std::ranges::all_of(naive.finished, [](bool f) { return f; }));
    }
}

TEST_P(Seeds, who_takes_all_at_once_gets_the_same) {
    std::mt19937 random(GetParam());
    const Graph graph = random_graph(random);
    const Schedule schedule = compiled(graph);
    Naive naive(graph);
    goal::Run run(schedule);
    std::vector<Vertex> waiting;
    while (!run.done()) {
        for (const Vertex v : run.take()) {
            ASSERT_TRUE(naive.may_start(v));
            waiting.push_back(v);
        }
        ASSERT_FALSE(waiting.empty());
        std::swap(waiting[random() % waiting.size()], waiting.back());
        const Vertex v = waiting.back();
        waiting.pop_back();
        naive.started[v] = true;
        run.started(v);
        naive.finished[v] = true;
        run.finished(v);
    }
    EXPECT_TRUE(waiting.empty());
    EXPECT_TRUE(std::ranges::all_of(naive.finished, [](bool f) { return f; }));
}

TEST_P(Seeds, after_a_failure_nothing_starts_and_what_is_under_way_ends) {
    std::mt19937 random(GetParam());
    const Graph graph = random_graph(random);
    const Schedule schedule = compiled(graph);
    goal::Run run(schedule);
    std::vector<Vertex> under_way;
    for (unsigned i = random() % schedule.count() + 1; i > 0; --i) {
        const Vertex v = run.next();
        if (v == kNoVertex) break;
        run.started(v);
        under_way.push_back(v);
    }
    const Vertex failed = under_way.back();
    under_way.pop_back();
    if (!under_way.empty() && random() % 2 == 0) {  // kept, and not started
        run.give_back(under_way.back());
        under_way.pop_back();
    }
    run.stop();
    std::size_t waiting = 0;
    for (Vertex v = 0; v < schedule.count(); ++v) waiting += run.waits(v);
    EXPECT_EQ(waiting, schedule.count() - under_way.size() - 1);
    run.finished(failed);
    for (const Vertex v : under_way) {
        EXPECT_EQ(run.next(), kNoVertex);
        EXPECT_FALSE(run.done());
        run.finished(v);
    }
    EXPECT_EQ(run.next(), kNoVertex);
    EXPECT_TRUE(run.take().empty());
    EXPECT_TRUE(run.done());
    EXPECT_TRUE(run.stopped());
}

// Finishes each operation within its start.
struct AtOnce : Executor {
    void send(Run& run, Vertex v, const Operation&) override { finish(run, v); }
    void receive(Run& run, Vertex v, const Operation&) override { finish(run, v); }
    void work(Run& run, Vertex v, const Operation&) override { finish(run, v); }
    // As an executor does that may be called from anywhere: it finishes, and drains.
    void finish(Run& run, Vertex v) {
        ++depth;
        deepest = std::max(deepest, depth);
        ++count;
        last = v;
        run.finished(v);
        EXPECT_TRUE(drain(run, *this));
        --depth;
    }
    unsigned depth = 0, deepest = 0, count = 0;
    Vertex last = 0;
};

TEST(RunTest, a_chain_of_a_million_receives_whose_messages_are_there_needs_no_stack) {
    constexpr Vertex kLength = 1000000;
    Graph graph(0, 2);
    Vertex before = kNoVertex;
    for (Vertex v = 0; v < kLength; ++v) {
        const Vertex receive = graph.receive({0, 0}, 1, 1);
        graph.needs(receive, before);
        before = receive;
    }
    const Schedule schedule = compiled(graph);
    goal::Run run(schedule);
    AtOnce executor;
    EXPECT_TRUE(drain(run, executor));
    EXPECT_EQ(executor.count, kLength);
    EXPECT_EQ(executor.last, before);
    EXPECT_EQ(executor.deepest, 1U);
    EXPECT_TRUE(run.done());
}

TEST(RunTest, a_million_independent_operations_and_one_that_waits_for_all) {
    constexpr Vertex kWidth = 1000000;
    Graph graph(0, 2);
    const Vertex last = graph.calculate(1);
    for (Vertex v = 0; v < kWidth; ++v) graph.needs(last, graph.calculate(1));
    const Schedule schedule = compiled(graph);
    goal::Run run(schedule);
    AtOnce executor;
    EXPECT_TRUE(drain(run, executor));
    EXPECT_EQ(executor.count, kWidth + 1);
    EXPECT_EQ(executor.last, last);
}

TEST(RunTest, the_work_of_one_call_is_bounded) {
    Graph graph(0, 2);
    for (Vertex v = 0; v < 1000; ++v) graph.calculate(1);
    const Schedule schedule = compiled(graph);
    goal::Run run(schedule);
    AtOnce executor;
    EXPECT_FALSE(drain(run, executor, 256));
    EXPECT_EQ(executor.count, 256U);
    EXPECT_FALSE(drain(run, executor, 256));
    EXPECT_FALSE(drain(run, executor, 256));
    EXPECT_TRUE(drain(run, executor, 256));
    EXPECT_EQ(executor.count, 1000U);
}

TEST(RunTest, a_run_asks_for_memory_when_it_is_made_and_never_again) {
    std::mt19937 random(5);
    for (int round = 0; round < 20; ++round) {
        const Schedule schedule = compiled(random_graph(random));
        goal::Run run(schedule);
        AtOnce executor;
        const std::size_t before = allocations();
        for (int again = 0; again < 3; ++again, run.restart()) drain(run, executor);
        drain(run, executor);
        EXPECT_EQ(allocations(), before);
        EXPECT_TRUE(run.done());
    }
    EXPECT_GT(allocations(), 0U);
}

TEST(RunTest, an_empty_schedule_is_done_when_it_starts) {
    const Schedule schedule = compiled(Graph(0, 1));
    EXPECT_TRUE(goal::Run(schedule).done());
}

}  // namespace
}  // namespace velo::goal
