// Schedules over engines: data beside the same schedules interpreted without any, runs that overlap, what
// comes early, what fails.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "goal/party.h"
#include "goal/program.h"
#include "performer_party.h"

namespace velo::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr velo_goal_place kSent{0, 0}, kReceived{0, 1};

struct FreeGraph {
    void operator()(velo_goal_graph* graph) const { velo_goal_graph_free(graph); }
};
struct FreeSchedule {
    void operator()(velo_goal_schedule* schedule) const { velo_goal_schedule_free(schedule); }
};
using Graph = std::unique_ptr<velo_goal_graph, FreeGraph>;
using Schedule = std::unique_ptr<velo_goal_schedule, FreeSchedule>;

Graph graph_of(std::uint32_t rank, std::uint32_t size) {
    velo_goal_graph* graph = nullptr;
    EXPECT_EQ(velo_goal_graph_new(rank, size, &graph), VELO_OK);
    return Graph(graph);
}

Schedule compiled(const Graph& graph) {
    velo_goal_schedule* schedule = nullptr;
    char error[512] = "";
    EXPECT_EQ(velo_goal_compile(graph.get(), &schedule, error, sizeof error), VELO_OK) << error;
    return Schedule(schedule);
}

std::string refusal(const Graph& graph) {
    velo_goal_schedule* schedule = nullptr;
    char error[512] = "";
    EXPECT_EQ(velo_goal_compile(graph.get(), &schedule, error, sizeof error), VELO_ERR_PARAMETER);
    EXPECT_EQ(schedule, nullptr);
    return error;
}

velo_goal_run* started(velo_goal_group* group, const Schedule& schedule,
                       const std::vector<void*>& arguments = {}, velo_goal_start start = {}) {
    start.arguments = arguments.data();
    start.argument_count = static_cast<std::uint32_t>(arguments.size());
    velo_goal_run* run = nullptr;
    EXPECT_EQ(velo_goal_run_start(group, schedule.get(), &start, &run), VELO_OK);
    return run;
}

// The same graph as the pure core's and through the C interface.
struct Twin {
    Twin(std::uint32_t rank, std::uint32_t size) : core(rank, size), live(graph_of(rank, size)) {}

    static std::vector<velo_goal_piece> pieces(const std::vector<goal::Piece>& list) {
        std::vector<velo_goal_piece> pieces;
        for (const goal::Piece& p : list) pieces.push_back({{p.place.offset, p.place.space}, p.bytes});
        return pieces;
    }
    goal::Vertex send(const std::vector<goal::Piece>& from, std::uint32_t to, std::uint32_t tag) {
        const auto list = pieces(from);
        const velo_goal_vertex v =
            list.size() == 1 ? velo_goal_send(live.get(), list[0].place, list[0].bytes, to, tag)
                             : velo_goal_send_pieces(live.get(), list.data(),
                                                     static_cast<std::uint32_t>(list.size()), to, tag);
        EXPECT_EQ(core.send(from, to, tag), v);
        return v;
    }
    goal::Vertex receive(const std::vector<goal::Piece>& into, std::uint32_t from, std::uint32_t tag) {
        const auto list = pieces(into);
        const velo_goal_vertex v =
            list.size() == 1 ? velo_goal_receive(live.get(), list[0].place, list[0].bytes, from, tag)
                             : velo_goal_receive_pieces(live.get(), list.data(),
                                                        static_cast<std::uint32_t>(list.size()), from, tag);
        EXPECT_EQ(core.receive(into, from, tag), v);
        return v;
    }
    goal::Vertex add(const goal::Piece& a, const goal::Piece& b, const goal::Piece& result) {
        goal::Combination c;
        c.op = goal::Operator::kAdd;
        c.elements = result.bytes;
        c.first = core.operand(a.place);
        c.second = core.operand(b.place);
        c.result = core.operand(result.place);
        const auto list = pieces({a, b, result});
        const velo_goal_combination live_c{
            VELO_GOAL_ADD, VELO_GOAL_UINT, 8, result.bytes, &list[0], &list[1], &list[2], 1, 1, 1};
        const velo_goal_vertex v = velo_goal_combine(live.get(), &live_c);
        EXPECT_EQ(core.combine(c), v);
        return v;
    }
    void needs(goal::Vertex later, goal::Vertex earlier, bool start = false) {
        if (earlier == goal::kNoVertex) return;
        start ? core.needs_start(later, earlier) : core.needs(later, earlier);
        (start ? velo_goal_requires_start : velo_goal_requires)(live.get(), later, earlier);
    }

    goal::Graph core;
    Graph live;
};

// No byte is written twice, and whoever reads one waits for who writes it: whatever the order, the result is
// the same. Messages of a pair often have the same tag, and then an order.
class RandomProgram {
 public:
    static constexpr std::uint64_t kBlock = 3000, kInitial = 4, kMost = 40;

    RandomProgram(std::uint32_t size, unsigned seed, std::uint64_t block = kBlock)
        : random_(seed), block_(block), blocks_(size) {
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            twins.emplace_back(rank, size);
            for (std::uint64_t i = 0; i < kInitial; ++i) blocks_[rank].push_back(goal::kNoVertex);
        }
        for (unsigned i = 20 * size; i > 0; --i) {
            const std::uint32_t from = random_() % size;
            if (random_() % 3 == 0)
                combine(from);
            else
                message(from, random_() % size);
        }
    }

    Bytes initial(std::uint32_t rank, unsigned round) const {
        Bytes bytes(block_ * (kInitial + kMost), std::byte{0});
        for (std::uint64_t i = 0; i < block_ * kInitial; ++i)
            bytes[i] = static_cast<std::byte>(rank * 31 + i * 7 + i / 256 + round * 13);
        return bytes;
    }

    std::vector<Twin> twins;

 private:
    struct Source {
        goal::Piece piece;
        goal::Vertex written;
    };
    Source source(std::uint32_t rank, std::uint64_t bytes) {
        const std::uint64_t block = random_() % blocks_[rank].size();
        return {{{block * block_, 0}, bytes}, blocks_[rank][block]};
    }
    // A new block, which has to be filled; the rest of it stays as it is.
    goal::Piece target(std::uint32_t rank, std::uint64_t bytes) {
        const std::uint64_t block = blocks_[rank].size();
        return {{block * block_, 0}, bytes};
    }
    bool is_full(std::uint32_t rank) const { return blocks_[rank].size() == kInitial + kMost; }
    std::uint64_t some_bytes() {
        const std::uint64_t sizes[] = {0, 1, 8, 56, 100, 1000, 1025, block_};
        return sizes[random_() % std::size(sizes)];
    }
    std::vector<goal::Piece> cut(const goal::Piece& whole) {
        std::vector<goal::Piece> pieces{whole};
        while (random_() % 2 == 0) {
            goal::Piece& last = pieces.back();
            const std::uint64_t first = last.bytes == 0 ? 0 : random_() % last.bytes;
            const goal::Piece rest{last.place.at(first), last.bytes - first};
            last.bytes = first;
            pieces.push_back(rest);
        }
        return pieces;
    }
    void combine(std::uint32_t rank) {
        if (is_full(rank)) return;
        const std::uint64_t bytes = some_bytes();
        const Source a = source(rank, bytes), b = source(rank, bytes);
        const goal::Vertex v = twins[rank].add(a.piece, b.piece, target(rank, bytes));
        twins[rank].needs(v, a.written);
        twins[rank].needs(v, b.written);
        blocks_[rank].push_back(v);
    }
    void message(std::uint32_t from, std::uint32_t to) {
        if (is_full(to)) return;
        const std::uint64_t bytes = some_bytes();
        const std::uint32_t tag = random_() % 2 == 0 ? 7 : static_cast<std::uint32_t>(random_() % INT32_MAX);
        const Source a = source(from, bytes);
        const goal::Vertex send = twins[from].send(cut(a.piece), to, tag);
        twins[from].needs(send, a.written);
        const goal::Vertex receive = twins[to].receive(cut(target(to, bytes)), from, tag);
        const auto [last, fresh] = last_.try_emplace({from, to, tag}, send, receive);
        if (!fresh) {
            twins[from].needs(send, last->second.first, true);
            twins[to].needs(receive, last->second.second, true);
            last->second = {send, receive};
        }
        blocks_[to].push_back(receive);
    }

    std::mt19937 random_;
    std::uint64_t block_;
    std::vector<std::vector<goal::Vertex>> blocks_;  // by rank: what writes each
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::pair<goal::Vertex, goal::Vertex>>
        last_;
};

// Some runs of a program at once, each member starting its own when it likes. What members have announced and
// placed is added up.
void run_beside_the_interpreter(const PerformerPartyConfig& config, unsigned seed, std::uint64_t block,
                                velo_messenger_state* sum = nullptr) {
    constexpr unsigned kRounds = 3;
    const std::uint32_t size = config.size;
    RandomProgram program(size, seed, block);
    PerformerParty party(config);
    std::vector<Schedule> schedules;
    std::vector<std::vector<Bytes>> memory(kRounds), expected(kRounds);
    goal::Program core;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        schedules.push_back(compiled(program.twins[rank].live));
        std::string error;
        auto schedule = goal::compile(program.twins[rank].core, &error);
        ASSERT_TRUE(schedule) << error;
        core.schedules.push_back(std::move(*schedule));
    }
    std::vector<velo_goal_run*> runs;
    std::mt19937 random(seed);
    for (unsigned round = 0; round < kRounds; ++round) {
        goal::Party oracle(core, seed + round);
        for (std::uint32_t rank = 0; rank < size; ++rank)
            oracle.argument(rank, 0) = program.initial(rank, round);
        ASSERT_TRUE(oracle.run());
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            expected[round].push_back(oracle.argument(rank, 0));
            memory[round].push_back(program.initial(rank, round));
        }
    }
    // Each rank starts its runs when it likes.
    std::vector<unsigned> next(size, 0);
    while (runs.size() < std::size_t{kRounds} * size) {
        const std::uint32_t rank = random() % size;
        if (next[rank] == kRounds) continue;
        runs.push_back(started(party[rank], schedules[rank], {memory[next[rank]++][rank].data()}));
        for (unsigned i = random() % 3; i > 0; --i) velo_goal_progress(party.at(random() % size));
    }
    ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); })) << seed;
    for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
    for (unsigned round = 0; round < kRounds; ++round)
        for (std::uint32_t rank = 0; rank < size; ++rank)
            ASSERT_EQ(memory[round][rank], expected[round][rank])
                << "seed " << seed << " round " << round << " rank " << rank;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        const velo_performer_state state = party.state(rank);
        EXPECT_TRUE(party.fatal(rank).empty());
        EXPECT_EQ(state.ended, kRounds);
        EXPECT_EQ(state.operations, kRounds * core.schedules[rank].count());
        EXPECT_EQ(state.messages.pool_used_bytes, 0U);
        if (sum == nullptr) continue;
        sum->announced += state.messages.announced;
        sum->placed += state.messages.placed;
    }
}

class EveryPolicy : public ::testing::TestWithParam<const char*> {
 protected:
    PerformerPartyConfig config(std::uint32_t size) const {
        PerformerPartyConfig config;
        config.size = size;
        config.flow_control = GetParam();
        return config;
    }
};
INSTANTIATE_TEST_SUITE_P(PerformerTest, EveryPolicy, ::testing::Values("none", "static", "dynamic", "lazy"));

TEST_P(EveryPolicy, random_schedules_leave_what_the_interpreter_leaves_also_when_three_runs_overlap) {
    for (unsigned seed = 0; seed < 40; ++seed)
        run_beside_the_interpreter(config(1 + seed % 5), seed, RandomProgram::kBlock);
}

TEST_P(EveryPolicy, random_schedules_with_large_messages_leave_the_same) {
    velo_messenger_state sum{};
    for (unsigned seed = 0; seed < 12; ++seed)
        run_beside_the_interpreter(config(2 + seed % 3), seed, 20000, &sum);
    EXPECT_GT(sum.announced, 20U);
    EXPECT_GT(sum.placed, 5U);
}

TEST_P(EveryPolicy, collective_operations_run_one_after_the_other_and_all_at_once) {
    constexpr std::uint32_t kRuns = 200;
    for (std::uint32_t size : {1U, 2U, 3U, 4U, 7U}) {
        PerformerParty party(config(size));
        struct Call {
            std::uint64_t in[3], out[3];
        };
        std::vector<std::vector<Call>> calls(size, std::vector<Call>(kRuns));
        std::vector<velo_goal_run*> runs;
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            velo_goal_request request{};
            request.operation = "allreduce";
            request.bytes = sizeof Call::in;
            request.op = VELO_GOAL_ADD;
            request.type = VELO_GOAL_UINT;
            request.width = 64;
            for (std::uint32_t i = 0; i < kRuns; ++i) {
                Call& call = calls[rank][i];
                for (std::uint64_t k = 0; k < 3; ++k) call.in[k] = i * 1000 + rank * 10 + k;
                velo_goal_schedule* schedule = nullptr;
                ASSERT_EQ(velo_goal_group_schedule(party[rank], &request, &schedule), VELO_OK);
                void* const arguments[] = {call.in, call.out};
                velo_goal_start start{};
                start.arguments = arguments;
                start.argument_count = 2;
                velo_goal_run* run = nullptr;
                ASSERT_EQ(velo_goal_run_start(party[rank], schedule, &start, &run), VELO_OK);
                runs.push_back(run);
            }
        }
        ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
        for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            EXPECT_EQ(party.state(rank).compiled, 1U);
            for (std::uint64_t i = 0; i < kRuns; ++i)
                for (std::uint64_t k = 0; k < 3; ++k)
                    ASSERT_EQ(calls[rank][i].out[k], size * (i * 1000 + k) + 10 * size * (size - 1) / 2);
        }
    }
}

// Two ranks: rank 1 sends `count` messages of `bytes`, which rank 0 receives one after the other.
std::vector<Schedule> chain(std::uint32_t count, std::uint64_t bytes) {
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

TEST_P(EveryPolicy, a_chain_of_20000_receives_starts_at_most_256_operations_at_a_time) {
    constexpr std::uint32_t kCount = 20000;
    PerformerPartyConfig roomy = config(2);
    roomy.pool = std::size_t{1} << 25;
    PerformerParty party(roomy);
    const std::vector<Schedule> schedules = chain(kCount, 8);
    std::uint64_t sent = 42, received = 0;
    velo_goal_run* const sender = started(party[1], schedules[1], {&sent});
    for (int i = 0; i < 300; ++i) party.step();
    velo_goal_run* const receiver = started(party[0], schedules[0], {&sent, &received});
    std::uint64_t before = party.state(0).operations;
    EXPECT_LE(before, 256U);
    ASSERT_TRUE(party.until([&] {
        const std::uint64_t now = party.state(0).operations;
        EXPECT_LE(now - before, 256U);
        before = now;
        return velo_goal_run_is_over(receiver) && velo_goal_run_is_over(sender);
    }));
    EXPECT_EQ(velo_goal_run_end(receiver).status, VELO_OK);
    EXPECT_EQ(velo_goal_run_end(sender).status, VELO_OK);
    EXPECT_EQ(received, 42U);
    EXPECT_EQ(party.state(0).operations, kCount);
}

TEST_P(EveryPolicy, what_comes_before_its_run_has_started_is_bounded_by_the_pool) {
    PerformerPartyConfig tight = config(2);
    tight.pool = 4096;
    tight.headers = 4096;
    PerformerParty party(tight);
    constexpr std::uint32_t kRuns = 500;
    const std::vector<Schedule> schedules = chain(20, 700);
    Bytes sent(700, std::byte{5}), received(700);
    std::vector<velo_goal_run*> runs;
    for (std::uint32_t i = 0; i < kRuns; ++i) {
        runs.push_back(started(party[1], schedules[1], {sent.data()}));
        party.step();
    }
    party.settle();
    const velo_performer_state early = party.state(0);
    EXPECT_GT(early.messages.unexpected, 0U);
    EXPECT_LE(early.messages.pool_most_bytes, early.messages.share_bytes);
    EXPECT_LE(early.messages.headers_most, early.messages.share_headers);
    EXPECT_FALSE(velo_goal_run_is_over(runs.back()));
    for (std::uint32_t i = 0; i < kRuns; ++i)
        runs.push_back(started(party[0], schedules[0], {sent.data(), received.data()}));
    ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
    for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
    EXPECT_EQ(received, sent);
    EXPECT_EQ(party.state(0).messages.pool_used_bytes, 0U);
    EXPECT_EQ(party.state(0).messages.headers, 0U);
    EXPECT_LE(party.state(0).messages.pool_most_bytes, early.messages.share_bytes);
}

// More than there is room for at the other rank, or at one's own, which wants the last one first; each is
// sent when the one before has been.
TEST_P(EveryPolicy, short_messages_whose_receives_wait_for_the_last_one_do_not_wait_for_their_receives) {
    constexpr std::uint32_t kCount = 2000;
    PerformerPartyConfig tight = config(2);
    tight.pool = 4096;
    tight.headers = 4096;
    for (const std::uint32_t source : {0U, 1U}) {
        PerformerParty party(tight);
        const Graph graphs[] = {graph_of(0, 2), graph_of(1, 2)};
        velo_goal_vertex before = VELO_GOAL_NO_VERTEX;
        for (std::uint32_t tag = 0; tag < kCount; ++tag) {
            velo_goal_graph* const graph = graphs[source].get();
            const velo_goal_piece pieces[] = {{kSent, 3}, {{3, 0}, 5}};
            const velo_goal_vertex v = tag % 2 == 0 ? velo_goal_send(graph, kSent, 8, 0, tag)
                                                    : velo_goal_send_pieces(graph, pieces, 2, 0, tag);
            velo_goal_requires(graph, v, before);
            before = v;
        }
        before = VELO_GOAL_NO_VERTEX;
        for (std::uint32_t tag = kCount; tag-- > 0;) {
            const velo_goal_vertex v = velo_goal_receive(graphs[0].get(), kReceived, 8, source, tag);
            velo_goal_requires(graphs[0].get(), v, before);
            before = v;
        }
        std::uint64_t sent = 42, received = 0;
        velo_goal_run* runs[2];
        Schedule schedules[2];
        for (const std::uint32_t rank : {1U, 0U}) {
            schedules[rank] = compiled(graphs[rank]);
            runs[rank] = started(party[rank], schedules[rank], {&sent, &received});
            party.settle();
        }
        ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
        for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
        EXPECT_EQ(received, 42U);
    }
}

class PerformerTest : public ::testing::Test {};

// Messages of runs that are 32768 apart have the same key.
TEST_F(PerformerTest, runs_whose_messages_look_alike_do_not_meet) {
    PerformerParty party({});
    constexpr std::uint32_t kRuns = 32768 + 500;
    const std::vector<Schedule> schedules = chain(1, sizeof(std::uint32_t));
    std::vector<std::uint32_t> sent(kRuns), received(kRuns);
    std::vector<velo_goal_run*> runs;
    for (std::uint32_t i = 0; i < kRuns; ++i) {
        sent[i] = i;
        runs.push_back(started(party[0], schedules[0], {nullptr, &received[i]}));
    }
    party.settle();
    // All but the last 500 wait for a message.
    EXPECT_EQ(party.state(0).operations, 32768U);
    for (std::uint32_t i = 0; i < kRuns; ++i) runs.push_back(started(party[1], schedules[1], {&sent[i]}));
    ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
    for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
    EXPECT_EQ(received, sent);
}

TEST_F(PerformerTest, a_group_that_multicasts_has_a_name_that_no_other_one_has_and_all_members_find_it) {
    PerformerParty party({});
    std::set<std::uint64_t> names;
    const auto new_name = [&](std::uint32_t rank, std::uint64_t members, std::uint32_t id) {
        std::uint64_t name = 0;
        EXPECT_EQ(velo_goal_new_name(party.at(rank), members, id, &name), VELO_OK);
        return name;
    };
    for (std::uint32_t turn = 0; turn < 50; ++turn)
        for (std::uint32_t id = 0; id < 3; ++id) {
            const std::uint64_t both = new_name(0, 1, id);
            EXPECT_TRUE(names.insert(both).second);
            EXPECT_TRUE(names.insert(both ^ std::uint64_t{1} << 63).second) << "of its requests";
            EXPECT_TRUE(names.insert(new_name(0, 2, id)).second) << "of which member 1 knows nothing";
            EXPECT_EQ(new_name(1, 1, id), both);
        }
}

TEST_F(PerformerTest, what_is_skipped_counts) {
    PerformerParty party({});
    const std::vector<Schedule> schedules = chain(1, 4);
    std::uint32_t sent[] = {11, 22}, received = 0;
    started(party[1], schedules[1], {&sent[0]});
    velo_goal_run* const second = started(party[1], schedules[1], {&sent[1]});
    velo_goal_run_skip(party[0]);
    velo_goal_run* const run = started(party[0], schedules[0], {nullptr, &received});
    ASSERT_TRUE(party.until([&] { return velo_goal_run_is_over(run) && velo_goal_run_is_over(second); }));
    EXPECT_EQ(received, 22U);
    velo_goal_run_end(run);
    velo_goal_run_end(second);
}

// As persistent requests: started in any order, beside any number of runs that have numbers.
TEST_F(PerformerTest, runs_of_a_lane_meet_each_other_whatever_is_started_in_between) {
    PerformerParty party({});
    const std::vector<Schedule> schedules = chain(1, sizeof(std::uint32_t));
    // The first and the last one have the same context.
    std::vector<std::uint32_t> lanes;
    for (std::uint32_t i = 1; i <= 32769; ++i) {
        ASSERT_EQ(velo_goal_group_lane(party[0]), i);
        ASSERT_EQ(velo_goal_group_lane(party[1]), i);
        if (i <= 2 || i == 32769) lanes.push_back(i);
    }
    for (std::uint32_t round = 0; round < 5; ++round) {
        std::uint32_t sent[4], received[4] = {};
        std::vector<velo_goal_run*> runs;
        const auto start = [&](std::uint32_t rank, std::uint32_t which) {
            velo_goal_start start{};
            start.lane = which < lanes.size() ? lanes[which] : 0;
            sent[which] = 100 * round + which;
            runs.push_back(rank == 0 ? started(party[0], schedules[0], {nullptr, &received[which]}, start)
                                     : started(party[1], schedules[1], {&sent[which]}, start));
        };
        for (std::uint32_t which : {2, 0, 3, 1}) start(1, which);
        if (round % 2 == 0) party.settle();
        for (std::uint32_t which = 0; which < 4; ++which) start(0, which);
        ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
        for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
        for (std::uint32_t which = 0; which < 4; ++which) EXPECT_EQ(received[which], 100 * round + which);
        for (std::uint32_t i = 0; i < 32768; ++i)
            for (std::uint32_t rank = 0; rank < 2; ++rank) velo_goal_run_skip(party[rank]);
    }
}

TEST_F(PerformerTest, a_lane_has_no_room_for_large_tags) {
    PerformerParty party({});
    const Graph graph = graph_of(0, 2);
    velo_goal_send(graph.get(), {0, VELO_GOAL_NOWHERE}, 8, 1, 65536);
    const Schedule schedule = compiled(graph);
    velo_goal_start start{};
    start.lane = velo_goal_group_lane(party[0]);
    velo_goal_run* run = nullptr;
    EXPECT_EQ(velo_goal_run_start(party[0], schedule.get(), &start, &run), VELO_ERR_PARAMETER);
    EXPECT_EQ(run, nullptr);
}

velo_goal_request gatherv_of(const std::vector<velo_goal_block>& blocks) {
    velo_goal_request request{};
    request.operation = "gatherv";
    request.receives = blocks.data();
    request.receive_count = static_cast<std::uint32_t>(blocks.size());
    return request;
}

TEST_F(PerformerTest, a_schedule_that_is_kept_stays_when_the_group_has_forgotten_it) {
    PerformerParty party({});
    velo_goal_schedule *kept = nullptr, *other = nullptr;
    const std::vector<velo_goal_block> blocks = {{0, 0, 0, 4}, {1, 0, 4, 8}};
    const velo_goal_request request = gatherv_of(blocks);
    ASSERT_EQ(velo_goal_group_keep(party[0], &request, &kept), VELO_OK);
    const Schedule schedule(kept);
    velo_goal_request another{};
    another.operation = "bcast";
    for (another.bytes = 1; another.bytes <= 64; ++another.bytes)
        ASSERT_EQ(velo_goal_group_schedule(party[0], &another, &other), VELO_OK);
    std::uint32_t own = 7, gathered[3] = {};
    velo_goal_run* const run = started(party[0], schedule, {&own, gathered});
    velo_goal_request from_one{};
    from_one.operation = "gatherv";
    from_one.bytes = 8;
    ASSERT_EQ(velo_goal_group_schedule(party[1], &from_one, &other), VELO_OK);
    std::uint32_t two[] = {8, 9};
    void* const arguments[] = {two, nullptr};
    velo_goal_start start{};
    start.arguments = arguments;
    start.argument_count = 2;
    velo_goal_run* sender = nullptr;
    ASSERT_EQ(velo_goal_run_start(party[1], other, &start, &sender), VELO_OK);
    ASSERT_TRUE(party.until([&] { return velo_goal_run_is_over(run) && velo_goal_run_is_over(sender); }));
    velo_goal_run_end(run);
    velo_goal_run_end(sender);
    EXPECT_EQ(std::vector(gathered, gathered + 3), (std::vector<std::uint32_t>{7, 8, 9}));
}

TEST_F(PerformerTest, requests_are_alike_if_their_blocks_are) {
    PerformerParty party({});
    velo_goal_schedule* schedule = nullptr;
    const auto ask = [&](const std::vector<velo_goal_block>& blocks) {
        const velo_goal_request request = gatherv_of(blocks);
        return velo_goal_group_schedule(party[0], &request, &schedule);
    };
    const std::vector<velo_goal_block> blocks = {{0, 0, 0, 4}, {1, 0, 4, 8}},
                                       longer = {{0, 0, 0, 4}, {1, 0, 4, 9}},
                                       farther = {{0, 0, 0, 4}, {1, 0, 5, 8}};
    for (int again = 0; again < 3; ++again)
        for (const auto& list : {blocks, longer, farther}) EXPECT_EQ(ask(list), VELO_OK);
    EXPECT_EQ(party.state(0).compiled, 3U);
    // Of another number of ranks.
    EXPECT_EQ(ask({{0, 0, 0, 4}}), VELO_ERR_PARAMETER);
    EXPECT_EQ(ask({{0, 0, 0, 4}, {1, 0, 4, 8}, {2, 0, 12, 8}}), VELO_ERR_PARAMETER);
    const velo_goal_block nobody{2, 0, 0, 8};
    velo_goal_request exchange{};
    exchange.operation = "exchange";
    exchange.sends = &nobody;
    exchange.send_count = 1;
    EXPECT_EQ(velo_goal_group_schedule(party[0], &exchange, &schedule), VELO_ERR_PARAMETER);
}

TEST_F(PerformerTest, groups_of_the_same_processes_do_not_meet) {
    PerformerParty party({});
    const std::vector<Schedule> schedules = chain(1, 4);
    velo_goal_group* const other[] = {party.group(0, 9), party.group(1, 9)};
    std::uint32_t sent[] = {11, 22}, received[2] = {};
    std::vector<velo_goal_run*> runs{started(party[1], schedules[1], {&sent[0]}),
                                     started(other[1], schedules[1], {&sent[1]}),
                                     started(other[0], schedules[0], {nullptr, &received[1]}),
                                     started(party[0], schedules[0], {nullptr, &received[0]})};
    ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
    for (velo_goal_run* run : runs) velo_goal_run_end(run);
    EXPECT_EQ(received[0], 11U);
    EXPECT_EQ(received[1], 22U);
    velo_goal_group_close(other[0]);
    velo_goal_group_close(other[1]);
}

// A rank's schedule that calls functions 1 and 2 one after the other.
Schedule calling() {
    const Graph graph = graph_of(0, 1);
    const velo_goal_vertex one = velo_goal_call(graph.get(), 1);
    velo_goal_requires(graph.get(), velo_goal_call(graph.get(), 2), one);
    return compiled(graph);
}

TEST_F(PerformerTest, calls_and_the_end_are_told_within_progress_alone) {
    PerformerPartyConfig config;
    config.size = 1;
    PerformerParty party(config);
    const Schedule schedule = calling();
    struct Told {
        std::vector<int> what;
        PerformerParty* party;
        velo_goal_result result;
    } told{{}, &party, {}};
    velo_goal_start start{};
    start.context = &told;
    start.call = [](void* context, std::uint32_t function) {
        auto* t = static_cast<Told*>(context);
        t->what.push_back(static_cast<int>(function));
        velo_goal_progress(t->party->at(0));  // tells nothing meanwhile
        return VELO_OK;
    };
    start.done = [](void* context, velo_goal_run* run) {
        auto* t = static_cast<Told*>(context);
        EXPECT_TRUE(velo_goal_run_is_over(run));
        t->what.push_back(0);
        t->result = velo_goal_run_end(run);
    };
    velo_goal_run* const run = started(party[0], schedule, {}, start);
    EXPECT_TRUE(told.what.empty());
    EXPECT_FALSE(velo_goal_run_is_over(run));
    party.settle();
    EXPECT_EQ(told.what, (std::vector<int>{1, 2, 0}));
    EXPECT_EQ(told.result.status, VELO_OK);
    // Without functions to call there is nothing to wait for.
    velo_goal_run* const other = started(party[0], schedule);
    EXPECT_TRUE(velo_goal_run_is_over(other));
    velo_goal_run_end(other);
}

TEST_F(PerformerTest, a_call_that_fails_ends_its_run) {
    PerformerPartyConfig config;
    config.size = 1;
    PerformerParty party(config);
    unsigned calls = 0;
    velo_goal_start start{};
    start.context = &calls;
    start.call = [](void* context, std::uint32_t) {
        ++*static_cast<unsigned*>(context);
        return VELO_ERR_UNSUPPORTED;
    };
    velo_goal_run* const run = started(party[0], calling(), {}, start);
    party.settle();
    ASSERT_TRUE(velo_goal_run_is_over(run));
    const velo_goal_result result = velo_goal_run_end(run);
    EXPECT_EQ(result.status, VELO_ERR_UNSUPPORTED);
    EXPECT_EQ(result.vertex, 0U);
    EXPECT_EQ(result.peer, VELO_GOAL_ANY);
    EXPECT_EQ(calls, 1U);
}

// Words of letters after dots.
void join(void* context, const void* first, const void* second, void* result, std::uint64_t bytes) {
    ++*static_cast<unsigned*>(context);
    std::string both;
    for (const void* word : {first, second})
        std::ranges::remove_copy(std::string(static_cast<const char*>(word), bytes), std::back_inserter(both),
                                 '.');
    both.insert(0, bytes - both.size(), '.');
    std::memcpy(result, both.data(), bytes);
}

TEST_F(PerformerTest, operations_of_the_program_combine_in_order_within_progress_alone) {
    for (const char* algorithm : {"recursive_doubling", "reduce_bcast", "ring"}) {
        PerformerPartyConfig config;
        config.size = 5;
        PerformerParty party(config);
        std::vector<std::string> own(config.size), result(config.size, std::string(8, 'x'));
        std::vector<velo_goal_run*> runs;
        unsigned calls = 0;
        for (std::uint32_t rank = 0; rank < config.size; ++rank) {
            own[rank] = "......." + std::string(1, static_cast<char>('a' + rank));
            velo_goal_request request{};
            request.operation = "allreduce";
            request.algorithm = algorithm;
            request.bytes = request.element = 8;
            request.op = VELO_GOAL_OWN;
            request.type = VELO_GOAL_UINT;
            request.width = 8;
            request.ordered = true;
            velo_goal_schedule* schedule = nullptr;
            ASSERT_EQ(velo_goal_group_schedule(party[rank], &request, &schedule), VELO_OK);
            void* const arguments[] = {own[rank].data(), result[rank].data()};
            velo_goal_start start{};
            start.arguments = arguments;
            start.argument_count = 2;
            start.combine = join;
            start.context = &calls;
            velo_goal_run* run = nullptr;
            ASSERT_EQ(velo_goal_run_start(party[rank], schedule, &start, &run), VELO_OK);
            runs.push_back(run);
        }
        EXPECT_EQ(calls, 0U);  // not within a start
        party.settle();
        for (std::uint32_t rank = 0; rank < config.size; ++rank) {
            ASSERT_TRUE(velo_goal_run_is_over(runs[rank]));
            EXPECT_EQ(velo_goal_run_end(runs[rank]).status, VELO_OK);
            EXPECT_EQ(result[rank], "...abcde") << algorithm << ", rank " << rank;
        }
        EXPECT_GE(calls, 4U);
    }
}

TEST_F(PerformerTest, operations_of_the_program_know_neither_types_nor_pieces_and_need_a_function) {
    const velo_goal_piece whole{kSent, 8}, halves[] = {{kSent, 4}, {kReceived, 4}};
    velo_goal_combination c{VELO_GOAL_OWN, VELO_GOAL_FLOAT, 64, 1, &whole, &whole, &whole, 1, 1, 1};
    const Graph typed = graph_of(0, 1), split = graph_of(0, 1);
    velo_goal_combine(typed.get(), &c);
    EXPECT_EQ(refusal(typed), "rank 0: there is no operation own on float of 64 bits");
    c = {VELO_GOAL_OWN, VELO_GOAL_UINT, 8, 8, halves, &whole, &whole, 2, 1, 1};
    velo_goal_combine(split.get(), &c);
    EXPECT_EQ(refusal(split), "rank 0: an operation of the program's own has operands in pieces");
    c = {VELO_GOAL_OWN, VELO_GOAL_UINT, 8, 8, &whole, &whole, &whole, 1, 1, 1};
    const Graph right = graph_of(0, 2);
    velo_goal_combine(right.get(), &c);
    const Schedule schedule = compiled(right);
    PerformerParty party({});
    std::uint64_t word = 0;
    void* const arguments[] = {&word};
    velo_goal_start start{};
    start.arguments = arguments;
    start.argument_count = 1;
    velo_goal_run* run = nullptr;
    EXPECT_EQ(velo_goal_run_start(party[0], schedule.get(), &start, &run), VELO_ERR_PARAMETER);
    EXPECT_EQ(run, nullptr);
}

// Each rank calls what it likes, of `bytes`.
struct Asked {
    const char* operation;
    const char* algorithm;
    std::uint32_t root;
    velo_goal_operator op;
};

class DisagreementTest : public PerformerTest {
 protected:
    // How each has ended; the status of one that has not, when that is enough, is VELO_QUEUED.
    std::vector<velo_goal_result> results(
        PerformerParty& party, const std::vector<Asked>& all, std::uint64_t bytes,
        const std::function<bool()>& enough = [] { return false; }) {
        std::vector<velo_goal_run*> runs;
        std::vector<Bytes> memory(2 * party.size(), Bytes(bytes));
        for (std::uint32_t rank = 0; rank < party.size(); ++rank) {
            velo_goal_request request{};
            request.operation = all[rank].operation;
            request.algorithm = all[rank].algorithm;
            request.root = all[rank].root;
            request.bytes = bytes;
            request.op = all[rank].op;
            request.type = VELO_GOAL_UINT;
            request.width = 8;
            velo_goal_schedule* schedule = nullptr;
            EXPECT_EQ(velo_goal_group_schedule(party[rank], &request, &schedule), VELO_OK);
            void* const arguments[] = {memory[2 * rank].data(), memory[2 * rank + 1].data()};
            velo_goal_start start{};
            start.arguments = arguments;
            start.argument_count = 2;
            EXPECT_EQ(velo_goal_run_start(party[rank], schedule, &start, &runs.emplace_back()), VELO_OK);
        }
        const auto all_are_over = [&] { return std::ranges::all_of(runs, velo_goal_run_is_over); };
        for (int tries = 0; tries < 5000 && !all_are_over() && !enough(); ++tries) party.until(all_are_over);
        std::vector<velo_goal_result> results;
        for (velo_goal_run* run : runs)
            results.push_back(velo_goal_run_is_over(run) ? velo_goal_run_end(run)
                                                         : velo_goal_result{VELO_QUEUED, 0, 0, 0});
        return results;
    }
};

TEST_F(DisagreementTest, another_operation_at_a_member_is_an_error_and_is_named) {
    struct Case {
        Asked first, second;
        std::uint64_t bytes;
        const char* told;
    };
    const Case cases[] = {
        {{"bcast", "linear", 0, {}},
         {"allreduce", "ring", 0, VELO_GOAL_ADD},
         8,
         "rank 1 of group 0 is in allreduce (ring, add), and rank 0 in bcast (linear, root 0), as run 0: "},
        {{"bcast", "linear", 0, {}},
         {"allreduce", "ring", 0, VELO_GOAL_ADD},
         50000,
         "rank 1 of group 0 is in allreduce (ring, add), and rank 0 in bcast (linear, root 0), as run 0: "},
        {{"allreduce", "ring", 0, VELO_GOAL_MAX},
         {"allreduce", "ring", 0, VELO_GOAL_ADD},
         8,
         "rank 1 of group 0 is in allreduce (ring, add), and rank 0 in allreduce (ring, max), as run 0: "},
        {{"gather", "linear", 1, {}},
         {"reduce", "binomial", 1, VELO_GOAL_ADD},
         8,
         "rank 1 of group 0 is in reduce (binomial, add, root 1), and rank 0 in gather (linear, root 1), as "
         "run 0: "},
    };
    for (const Case& c : cases) {
        PerformerParty party({});
        const auto found = results(party, {c.first, c.second}, c.bytes);
        EXPECT_EQ(found[1].status, VELO_ERR_PROTOCOL) << c.told;
        EXPECT_EQ(found[1].rank + found[1].peer, 1U);  // by the one of the other
        EXPECT_NE(found[0].status, VELO_QUEUED) << c.told;
        EXPECT_TRUE(std::ranges::any_of(party.logged(1),
                                        [&](const auto& line) { return line.starts_with(c.told); }) ||
                    found[1].rank == 0)
            << c.told;
        // What follows is not concerned.
        const Asked sum{"allreduce", nullptr, 0, VELO_GOAL_ADD};
        for (const velo_goal_result& result : results(party, {sum, sum}, 8))
            EXPECT_EQ(result.status, VELO_OK);
    }
}

// Each waits for the other to send.
TEST_F(DisagreementTest, a_run_without_progress_is_told_with_what_it_waits_for) {
    PerformerPartyConfig config;
    config.stall_warning = 1;
    PerformerParty party(config);
    const auto has_told = [&party](std::uint32_t rank) {
        const std::string told = "rank " + std::to_string(rank) +
                                 " of group 0: no progress in bcast (linear, root " +
                                 std::to_string(1 - rank) +
                                 "), run 0, for 1 s: 0 of 1 operations are over; waits at operation 0: ";
        return std::ranges::any_of(party.logged(rank),
                                   [&](const auto& line) { return line.starts_with(told); });
    };
    const auto both = [&] { return has_told(0) && has_told(1); };
    for (const velo_goal_result& result :
         results(party, {{"bcast", "linear", 1, {}}, {"bcast", "linear", 0, {}}}, 8, both))
        EXPECT_EQ(result.status, VELO_QUEUED);
    EXPECT_TRUE(both()) << ::testing::PrintToString(party.logged(0))
                        << ::testing::PrintToString(party.logged(1));
}

// Rank 0 waits for ranks 1 and 2, rank 2 sends nothing.
TEST_F(PerformerTest, a_process_that_ends_ends_the_runs_that_wait_for_it) {
    PerformerPartyConfig config;
    config.size = 3;
    PerformerParty party(config);
    const Graph graph = graph_of(0, 3);
    velo_goal_receive(graph.get(), kReceived, 4, 1, 0);
    const velo_goal_vertex lost = velo_goal_receive(graph.get(), kReceived, 4, 2, 0);
    velo_goal_requires(graph.get(), velo_goal_receive(graph.get(), kReceived, 4, 1, 1), lost);
    std::uint32_t received = 0;
    const Schedule schedule = compiled(graph);
    velo_goal_run* const run = started(party[0], schedule, {nullptr, &received});
    party.settle();
    EXPECT_FALSE(velo_goal_run_is_over(run));
    party.close(2);
    ASSERT_TRUE(party.until([&] { return velo_goal_run_is_over(run); }));
    const velo_goal_result result = velo_goal_run_end(run);
    EXPECT_EQ(result.status, VELO_ERR_UNREACHABLE);
    EXPECT_EQ(result.vertex, lost);
    EXPECT_EQ(result.peer, 2U);
    EXPECT_EQ(party.state(0).failed, 1U);
    // Whoever asks afterwards is told at once.
    velo_goal_run* const later = started(party[0], schedule, {nullptr, &received});
    EXPECT_TRUE(velo_goal_run_is_over(later));
    EXPECT_EQ(velo_goal_run_end(later).peer, 2U);
    // So is who has something for it, of which it would take a header only.
    const Graph sending = graph_of(0, 3);
    velo_goal_send(sending.get(), {0, VELO_GOAL_NOWHERE}, 100000, 2, 0);
    velo_goal_run* const sender = started(party[0], compiled(sending));
    party.settle();
    ASSERT_TRUE(velo_goal_run_is_over(sender));
    EXPECT_EQ(velo_goal_run_end(sender).status, VELO_ERR_UNREACHABLE);
}

TEST_F(PerformerTest, a_message_of_another_length_ends_the_run_and_what_comes_later_is_dropped) {
    for (const std::uint64_t bytes : {2U, 6U, 5000U}) {
        PerformerParty party({});
        const Graph graph = graph_of(0, 2);
        velo_goal_receive(graph.get(), kReceived, 4, 1, 3);
        velo_goal_receive(graph.get(), kReceived, 4, 1, 99);  // nobody sends it
        const Schedule schedule = compiled(graph);
        Bytes sent(bytes), received(8);
        velo_goal_run* const run = started(party[0], schedule, {nullptr, received.data()});
        velo_goal_run* const sender = started(party[1], chain(3, bytes)[1], {sent.data()});
        ASSERT_TRUE(party.until([&] { return velo_goal_run_is_over(run) && velo_goal_run_is_over(sender); }));
        const velo_goal_result result = velo_goal_run_end(run);
        EXPECT_EQ(result.status, VELO_ERR_MISMATCH);
        EXPECT_EQ(result.vertex, 0U);
        EXPECT_EQ(result.peer, 1U);
        EXPECT_EQ(velo_goal_run_end(sender).status, VELO_OK);
        party.settle();
        EXPECT_EQ(party.state(0).messages.pool_used_bytes, 0U);
        EXPECT_EQ(party.state(0).messages.headers, 0U);
    }
}

// Large messages whose receivers announce them.
class AnnouncedTest : public ::testing::Test {
 protected:
    static constexpr std::uint64_t kLarge = 100'000;
    enum Way : std::uint8_t { kOneWay, kBothWays };

    AnnouncedTest() {
        for (std::size_t i = 0; i < kLarge; ++i) sent_[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
    // Rank 0 sends, rank 1 receives, and likewise in the other direction. Then each waits for `calls` calls.
    static Schedule exchange(std::uint32_t rank, Way way, std::uint64_t bytes = kLarge, unsigned calls = 0) {
        const Graph graph = graph_of(rank, 2);
        if (rank == 0 || way == kBothWays) velo_goal_send(graph.get(), kSent, bytes, 1 - rank, 5);
        if (rank == 1 || way == kBothWays) velo_goal_receive(graph.get(), kReceived, bytes, 1 - rank, 5);
        for (; calls > 0; --calls) velo_goal_call(graph.get(), calls);
        return compiled(graph);
    }
    static void progress(PerformerParty& party, std::uint32_t rank) {
        for (int i = 0; i < 1000; ++i) velo_goal_progress(party.at(rank));
    }
    static velo_messenger_state messages(const PerformerParty& party, std::uint32_t rank) {
        return party.state(rank).messages;
    }

    Bytes sent_ = Bytes(kLarge), received_[2] = {Bytes(kLarge), Bytes(kLarge)};
};

// The receiver has started its run, and does nothing more until the end. The sender comes later, or earlier.
TEST_F(AnnouncedTest, the_sender_copies_to_a_process_that_computes) {
    for (const bool sender_first : {false, true}) {
        PerformerParty party({});
        std::ranges::fill(received_[1], std::byte{0});
        const auto send = [&] { return started(party[0], exchange(0, kOneWay), {sent_.data()}); };
        velo_goal_run* sender = sender_first ? send() : nullptr;
        velo_goal_run* const receiver =
            started(party[1], exchange(1, kOneWay), {nullptr, received_[1].data()});
        progress(party, 0);
        if (sender == nullptr) sender = send();
        progress(party, 0);
        EXPECT_TRUE(velo_goal_run_is_over(sender));
        EXPECT_EQ(received_[1], sent_);
        EXPECT_EQ(messages(party, 1).announced, 1U);
        EXPECT_EQ(messages(party, 0).placed, 1U);
        EXPECT_EQ(velo_performer_counter(party.at(1), "announced_receives"), 1U);
        EXPECT_EQ(velo_performer_counter(party.at(0), "placed_messages"), 1U);
        EXPECT_EQ(velo_performer_counter(party.at(0), "schedule_runs"), 1U);
        EXPECT_FALSE(velo_goal_run_is_over(receiver));
        party.settle();
        ASSERT_TRUE(velo_goal_run_is_over(receiver));
        EXPECT_EQ(velo_goal_run_end(receiver).status, VELO_OK);
        EXPECT_EQ(velo_goal_run_end(sender).status, VELO_OK);
    }
}

TEST_F(AnnouncedTest, who_waits_copies_for_who_computes_also_if_both_have_something_to_copy) {
    PerformerParty party({});
    velo_goal_run* runs[2];
    for (std::uint32_t rank = 0; rank < 2; ++rank)
        runs[rank] = started(party[rank], exchange(rank, kBothWays), {sent_.data(), received_[rank].data()});
    progress(party, 0);
    EXPECT_TRUE(velo_goal_run_is_over(runs[0]));
    EXPECT_EQ(received_[0], sent_);
    EXPECT_EQ(received_[1], sent_);
    EXPECT_FALSE(velo_goal_run_is_over(runs[1]));
    party.settle();
    for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
}

// Who starts late finds the other's data and fetches them, but leaves it to the other to fetch its own.
TEST_F(AnnouncedTest, who_starts_late_does_not_copy_what_the_other_has_to) {
    PerformerParty party({});
    velo_goal_run* runs[2];
    runs[0] = started(party[0], exchange(0, kBothWays), {sent_.data(), received_[0].data()});
    velo_goal_progress(party.at(1));  // the announcement is there
    std::ranges::fill(received_[0], std::byte{0});
    runs[1] = started(party[1], exchange(1, kBothWays), {sent_.data(), received_[1].data()});
    EXPECT_EQ(received_[1], sent_);
    EXPECT_EQ(received_[0], Bytes(kLarge));
    party.settle();
    EXPECT_EQ(received_[0], sent_);
    for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
}

// Its run has failed, and its memory is the program's again.
TEST_F(AnnouncedTest, nothing_is_written_to_a_receive_that_has_been_withdrawn) {
    PerformerParty party({});
    velo_goal_start start{};
    start.call = [](void*, std::uint32_t) { return VELO_ERR_UNSUPPORTED; };
    velo_goal_run* const receiver =
        started(party[1], exchange(1, kOneWay, kLarge, 1), {nullptr, received_[1].data()}, start);
    progress(party, 1);
    ASSERT_TRUE(velo_goal_run_is_over(receiver));
    EXPECT_EQ(velo_goal_run_end(receiver).status, VELO_ERR_UNSUPPORTED);
    ASSERT_EQ(messages(party, 1).announced, 1U);
    progress(party, 0);
    velo_goal_run* const sender = started(party[0], exchange(0, kOneWay), {sent_.data()});
    progress(party, 0);
    EXPECT_EQ(messages(party, 0).placed, 0U);
    EXPECT_EQ(received_[1], Bytes(kLarge));
    ASSERT_TRUE(party.until([&] { return velo_goal_run_is_over(sender); }));
    EXPECT_EQ(velo_goal_run_end(sender).status, VELO_OK);
    EXPECT_EQ(received_[1], Bytes(kLarge));
}

TEST_F(AnnouncedTest, a_message_of_another_length_is_not_copied) {
    PerformerParty party({});
    velo_goal_run* const receiver = started(party[1], exchange(1, kOneWay), {nullptr, received_[1].data()});
    progress(party, 0);
    velo_goal_run* const sender = started(party[0], exchange(0, kOneWay, kLarge - 1), {sent_.data()});
    EXPECT_EQ(messages(party, 0).placed, 0U);
    party.settle();
    ASSERT_TRUE(velo_goal_run_is_over(receiver) && velo_goal_run_is_over(sender));
    EXPECT_EQ(velo_goal_run_end(receiver).status, VELO_ERR_MISMATCH);
    EXPECT_EQ(velo_goal_run_end(sender).status, VELO_OK);
}

TEST_F(AnnouncedTest, nothing_is_announced_where_no_memory_can_be_reached) {
    PerformerPartyConfig config;
    config.single_copy = "copy";
    PerformerParty party(config);
    velo_goal_run* const receiver = started(party[1], exchange(1, kOneWay), {nullptr, received_[1].data()});
    progress(party, 0);
    velo_goal_run* const sender = started(party[0], exchange(0, kOneWay), {sent_.data()});
    party.settle();
    EXPECT_EQ(messages(party, 1).announced, 0U);
    EXPECT_EQ(velo_goal_run_end(receiver).status, VELO_OK);
    EXPECT_EQ(velo_goal_run_end(sender).status, VELO_OK);
    EXPECT_EQ(received_[1], sent_);
}

// Here: because the page may not be written. The receiver can fetch afterwards.
TEST_F(AnnouncedTest, the_receiver_fetches_what_its_sender_may_not_write) {
    PerformerParty party({});
    constexpr std::size_t kPage = 4096, kPages = (kLarge + kPage - 1) / kPage;
    void* const memory =
        mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    velo_goal_run* const receiver = started(party[1], exchange(1, kOneWay), {nullptr, memory});
    progress(party, 0);
    ASSERT_EQ(mprotect(memory, kPages * kPage, PROT_READ), 0);
    velo_goal_run* const sender = started(party[0], exchange(0, kOneWay), {sent_.data()});
    progress(party, 0);
    EXPECT_FALSE(velo_goal_run_is_over(sender));
    EXPECT_EQ(messages(party, 0).placed, 0U);
    ASSERT_EQ(mprotect(memory, kPages * kPage, PROT_READ | PROT_WRITE), 0);
    party.settle();
    ASSERT_TRUE(velo_goal_run_is_over(receiver) && velo_goal_run_is_over(sender));
    EXPECT_EQ(velo_goal_run_end(receiver).status, VELO_OK);
    EXPECT_EQ(velo_goal_run_end(sender).status, VELO_OK);
    EXPECT_EQ(std::memcmp(memory, sent_.data(), kLarge), 0);
    munmap(memory, kPages * kPage);
}

// Those that have no cell left are fetched as ever.
TEST_F(AnnouncedTest, so_many_receives_are_announced_at_a_time) {
    constexpr std::uint32_t kReceives = 100;
    PerformerParty party({});
    Graph graphs[2] = {graph_of(0, 2), graph_of(1, 2)};
    for (std::uint32_t i = 0; i < kReceives; ++i) {
        velo_goal_send(graphs[0].get(), kSent, kLarge, 1, i);
        velo_goal_receive(graphs[1].get(), {i * kLarge, 1}, kLarge, 0, i);
    }
    Bytes received(kReceives * kLarge);
    velo_goal_run* const receiver = started(party[1], compiled(graphs[1]), {nullptr, received.data()});
    party.settle();
    EXPECT_GT(messages(party, 1).announced, 0U);
    EXPECT_LT(messages(party, 1).announced, kReceives / 2);
    velo_goal_run* const sender = started(party[0], compiled(graphs[0]), {sent_.data()});
    progress(party, 0);
    EXPECT_EQ(messages(party, 0).placed, messages(party, 1).announced);
    party.settle();
    EXPECT_EQ(velo_goal_run_end(receiver).status, VELO_OK);
    EXPECT_EQ(velo_goal_run_end(sender).status, VELO_OK);
    for (std::uint32_t i = 0; i < kReceives; ++i)
        ASSERT_EQ(std::memcmp(&received[i * kLarge], sent_.data(), kLarge), 0) << i;
    // All cells are free again.
    velo_goal_run* const again = started(party[1], exchange(1, kOneWay), {nullptr, received_[1].data()});
    EXPECT_EQ(messages(party, 1).announced, messages(party, 0).placed + 1);
    velo_goal_run* const last = started(party[0], exchange(0, kOneWay), {sent_.data()});
    party.settle();
    EXPECT_EQ(velo_goal_run_end(again).status, VELO_OK);
    EXPECT_EQ(velo_goal_run_end(last).status, VELO_OK);
}

// Two messages with one key: only their order tells them apart.
TEST_F(AnnouncedTest, receives_that_could_be_taken_for_each_other_are_not_announced) {
    PerformerParty party({});
    Graph graphs[2] = {graph_of(0, 2), graph_of(1, 2)};
    for (std::uint64_t i = 0; i < 2; ++i) {
        velo_goal_send(graphs[0].get(), {i * kLarge / 2, 0}, kLarge / 2, 1, 7);
        velo_goal_receive(graphs[1].get(), {i * kLarge / 2, 1}, kLarge / 2, 0, 7);
    }
    velo_goal_run* const receiver = started(party[1], compiled(graphs[1]), {nullptr, received_[1].data()});
    velo_goal_run* const sender = started(party[0], compiled(graphs[0]), {sent_.data()});
    party.settle();
    EXPECT_EQ(messages(party, 1).announced, 0U);
    EXPECT_EQ(velo_goal_run_end(receiver).status, VELO_OK);
    EXPECT_EQ(velo_goal_run_end(sender).status, VELO_OK);
    EXPECT_EQ(received_[1], sent_);
}

// Both receives are withdrawn: from the one that has ended, and from the one that has not.
TEST_F(AnnouncedTest, a_sender_that_ends_ends_the_run) {
    PerformerPartyConfig config;
    config.size = 3;
    PerformerParty party(config);
    const Graph graph = graph_of(1, 3);
    velo_goal_receive(graph.get(), kReceived, kLarge, 0, 5);
    velo_goal_receive(graph.get(), kSent, kLarge, 2, 5);
    velo_goal_run* const run = started(party[1], compiled(graph), {received_[0].data(), received_[1].data()});
    party.settle();
    EXPECT_EQ(messages(party, 1).announced, 2U);
    party.close(0);
    ASSERT_TRUE(party.until([&] { return velo_goal_run_is_over(run); }));
    const velo_goal_result result = velo_goal_run_end(run);
    EXPECT_EQ(result.status, VELO_ERR_UNREACHABLE);
    EXPECT_EQ(result.peer, 0U);
    const Graph sending = graph_of(2, 3);
    velo_goal_send(sending.get(), kSent, kLarge, 1, 5);
    velo_goal_run* const late = started(party[2], compiled(sending), {sent_.data()});
    ASSERT_TRUE(party.until([&] { return velo_goal_run_is_over(late); }));
    EXPECT_EQ(velo_goal_run_end(late).status, VELO_OK);
    EXPECT_EQ(received_[0], Bytes(kLarge));
}

// A chain of four: each receives twice from the one before, and hands both on to the next.
TEST_F(PerformerTest, a_failed_run_ends_at_all_who_wait_for_it_and_each_is_told_where) {
    PerformerPartyConfig config;
    config.size = 4;
    for (const bool starts_late : {false, true}) {
        PerformerParty party(config);
        std::vector<Schedule> schedules;
        std::vector<Bytes> memory(4, Bytes(8));
        for (std::uint32_t rank = 0; rank < 4; ++rank) {
            const Graph graph = graph_of(rank, 4);
            for (std::uint32_t tag = 0; tag < 2; ++tag) {
                velo_goal_vertex had = VELO_GOAL_NO_VERTEX;
                // What rank 0 sends first is longer than rank 1 expects.
                if (rank > 0) had = velo_goal_receive(graph.get(), {4 * tag, 0}, 4, rank - 1, tag);
                if (rank == 3) continue;
                const std::uint64_t bytes = rank == 0 && tag == 0 ? 5 : 4;
                const velo_goal_vertex sent = velo_goal_send(graph.get(), {0, 0}, bytes, rank + 1, tag);
                if (rank > 0) velo_goal_requires(graph.get(), sent, had);
            }
            schedules.push_back(compiled(graph));
        }
        std::vector<velo_goal_run*> runs(4, nullptr);
        const auto start = [&](std::uint32_t rank) {
            runs[rank] = started(party[rank], schedules[rank], {memory[rank].data()});
        };
        for (std::uint32_t rank = 0; rank < 4; ++rank)
            if (rank != 2 || !starts_late) start(rank);
        party.settle();
        if (starts_late) {
            EXPECT_FALSE(velo_goal_run_is_over(runs[3]));
            start(2);
        }
        ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
        EXPECT_EQ(velo_goal_run_end(runs[0]).status, VELO_OK);
        for (std::uint32_t rank = 1; rank < 4; ++rank) {
            SCOPED_TRACE(rank);
            const velo_goal_result result = velo_goal_run_end(runs[rank]);
            EXPECT_EQ(result.status, VELO_ERR_MISMATCH);
            EXPECT_EQ(result.rank, 1U);
            EXPECT_EQ(result.vertex, 0U);
            EXPECT_EQ(result.peer, 0U);
            EXPECT_TRUE(party.fatal(rank).empty());
        }
        // The next run is not concerned.
        velo_goal_request barrier{};
        barrier.operation = "barrier";
        for (std::uint32_t rank = 0; rank < 4; ++rank) {
            velo_goal_schedule* schedule = nullptr;
            const velo_goal_start nothing{};
            EXPECT_EQ(velo_goal_group_schedule(party[rank], &barrier, &schedule), VELO_OK);
            EXPECT_EQ(velo_goal_run_start(party[rank], schedule, &nothing, &runs[rank]), VELO_OK);
        }
        ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
        for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
    }
}

// The second rank of three fails in its third run. The first one knows nothing of it and goes on; what it
// sends for later runs looks like what comes late.
TEST_F(PerformerTest, a_lane_ends_with_its_first_run_that_fails_and_no_other_lane_does) {
    PerformerPartyConfig config;
    config.size = 3;
    PerformerParty party(config);
    std::vector<Schedule> schedules;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        const Graph graph = graph_of(rank, 3);
        velo_goal_vertex had = VELO_GOAL_NO_VERTEX;
        if (rank > 0) had = velo_goal_receive(graph.get(), {0, 0}, 4, rank - 1, 7);
        const velo_goal_vertex called = velo_goal_call(graph.get(), 0);
        if (rank > 0) velo_goal_requires(graph.get(), called, had);
        if (rank < 2)
            velo_goal_requires(graph.get(), velo_goal_send(graph.get(), {0, 0}, 4, rank + 1, 7), called);
        schedules.push_back(compiled(graph));
    }
    constexpr unsigned kLanes = 2, kFails = 3, kRuns = 6;
    bool fails = false;
    std::uint32_t lanes[kLanes][3], data[kLanes][3];
    for (auto& lane : lanes)
        for (std::uint32_t rank = 0; rank < 3; ++rank) lane[rank] = velo_goal_group_lane(party[rank]);
    for (std::uint32_t number = 0; number < kRuns; ++number) {
        SCOPED_TRACE(number);
        velo_goal_run* runs[kLanes][3];
        const auto start = [&](unsigned lane, std::uint32_t rank) {
            velo_goal_start how{};
            how.lane = lanes[lane][rank];
            how.lane_number = number;
            how.context = &fails;
            if (lane == 0 && rank == 1)
                how.call = [](void* context, std::uint32_t) {
                    return *static_cast<bool*>(context) ? VELO_ERR_UNSUPPORTED : VELO_OK;
                };
            data[lane][rank] = rank == 0 ? 100 * number + lane : 0;
            runs[lane][rank] = started(party[rank], schedules[rank], {&data[lane][rank]}, how);
        };
        fails = number == kFails;
        // The last one to start has the others' news before, or hears of it while it waits.
        for (unsigned lane = 0; lane < kLanes; ++lane) start(lane, 0);
        if (number % 2 == 0) party.settle();
        for (std::uint32_t rank : {2 - number % 2, 1 + number % 2})
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                start(lane, rank);
                party.settle();
            }
        ASSERT_TRUE(party.until([&] {
            return std::ranges::all_of(
                runs, [](auto& lane) { return std::ranges::all_of(lane, velo_goal_run_is_over); });
        }));
        for (std::uint32_t rank = 0; rank < 3; ++rank) {
            const velo_goal_result result = velo_goal_run_end(runs[0][rank]);
            const bool failed = rank > 0 && number >= kFails;
            EXPECT_EQ(result.status, failed ? VELO_ERR_UNSUPPORTED : VELO_OK);
            if (failed) {
                EXPECT_EQ(result.rank, 1U);
            } else {
                EXPECT_EQ(data[0][rank], 100 * number);
            }
            EXPECT_EQ(velo_goal_run_end(runs[1][rank]).status, VELO_OK);
            EXPECT_EQ(data[1][rank], 100 * number + 1);
        }
    }
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(party.state(rank).messages.pool_used_bytes, 0U);
        EXPECT_TRUE(party.fatal(rank).empty());
    }
}

// Rank 0 has 1000 messages for rank 1, which wait for a call that fails.
TEST_F(PerformerTest, who_waits_is_told_once) {
    PerformerParty party({});
    const Graph from = graph_of(0, 2), to = graph_of(1, 2);
    const velo_goal_vertex fails = velo_goal_call(from.get(), 0);
    for (std::uint32_t tag = 0; tag < 1000; ++tag) {
        velo_goal_requires(from.get(), velo_goal_send(from.get(), kSent, 0, 1, tag), fails);
        velo_goal_receive(to.get(), kReceived, 0, 0, tag);
    }
    const Schedule schedules[] = {compiled(from), compiled(to)};
    velo_goal_start start{};
    start.call = [](void*, std::uint32_t) { return VELO_ERR_UNSUPPORTED; };
    for (unsigned round = 0; round < 3; ++round) {
        velo_goal_run* const waits = started(party[1], schedules[1], {nullptr, nullptr});
        velo_goal_run* const failed = started(party[0], schedules[0], {nullptr}, start);
        ASSERT_TRUE(
            party.until([&] { return velo_goal_run_is_over(waits) && velo_goal_run_is_over(failed); }));
        EXPECT_EQ(velo_goal_run_end(failed).status, VELO_ERR_UNSUPPORTED);
        const velo_goal_result result = velo_goal_run_end(waits);
        EXPECT_EQ(result.status, VELO_ERR_UNSUPPORTED);
        EXPECT_EQ(result.rank, 0U);
        EXPECT_EQ(party.state(0).told, round + 1);
    }
}

TEST_F(PerformerTest, the_end_of_a_run_that_is_never_started_does_not_reach_a_later_group) {
    PerformerParty party({});
    const Graph from = graph_of(0, 2);
    velo_goal_requires(from.get(), velo_goal_send(from.get(), kSent, 4, 1, 1), velo_goal_call(from.get(), 0));
    velo_goal_start start{};
    start.call = [](void*, std::uint32_t) { return VELO_ERR_UNSUPPORTED; };
    std::uint32_t sent = 9, received = 0;
    velo_goal_group* groups[] = {party.group(0, 5), party.group(1, 5)};
    velo_goal_run* const failed = started(groups[0], compiled(from), {&sent}, start);
    party.settle();
    ASSERT_TRUE(velo_goal_run_is_over(failed));
    velo_goal_run_end(failed);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        velo_goal_group_close(groups[rank]);
        groups[rank] = party.group(rank, 5);
    }
    const std::vector<Schedule> schedules = chain(1, 4);
    std::vector<velo_goal_run*> runs{started(groups[0], schedules[0], {nullptr, &received}),
                                     started(groups[1], schedules[1], {&sent})};
    ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
    for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
    EXPECT_EQ(received, 9U);
    for (velo_goal_group* group : groups) velo_goal_group_close(group);
}

// Rank 0 fails in a run whose message is late, and then takes part in one whose message looks like it and
// comes early.
class AfterFailureTest : public ::testing::Test {
 protected:
    static velo_goal_start failing() {
        velo_goal_start start{};
        start.call = [](void*, std::uint32_t) { return VELO_ERR_UNSUPPORTED; };
        return start;
    }
    void fail_at_first(velo_goal_group* group) {
        const Graph graph = graph_of(0, 2);
        velo_goal_receive(graph.get(), kReceived, 4, 1, 1);
        velo_goal_call(graph.get(), 0);
        std::uint32_t nothing = 0;
        velo_goal_run* const run = started(group, compiled(graph), {nullptr, &nothing}, failing());
        ASSERT_TRUE(party_.until([&] { return velo_goal_run_is_over(run); }));
        EXPECT_EQ(velo_goal_run_end(run).status, VELO_ERR_UNSUPPORTED);
    }
    // Of both, with an id that other groups of theirs have had.
    void open_both() {
        for (const std::uint32_t rank : {0U, 1U}) {
            std::uint64_t name = 0;
            groups_[rank] = party_.group(rank, 5);
            EXPECT_EQ(velo_goal_new_name(party_.at(rank), 1, 5, &name), VELO_OK);
            velo_goal_group_name(groups_[rank], name);
        }
    }
    void close(std::uint32_t rank) { velo_goal_group_close(groups_[rank]); }
    void send(velo_goal_group* group, std::uint32_t word) {
        velo_goal_run* const run = started(group, chain_[1], {&word});
        ASSERT_TRUE(party_.until([&] { return velo_goal_run_is_over(run); }));
        EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
        party_.settle();
    }
    void receive(velo_goal_group* group, std::uint32_t word) {
        std::uint32_t received = 0;
        velo_goal_run* const run = started(group, chain_[0], {nullptr, &received});
        ASSERT_TRUE(party_.until([&] { return velo_goal_run_is_over(run); })) << word;
        EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
        EXPECT_EQ(received, word);
    }

    PerformerParty party_{{}};
    velo_goal_group* groups_[2] = {};
    const std::vector<Schedule> chain_ = chain(1, 4);
};

TEST_F(AfterFailureTest, a_run_whose_number_looks_the_same_gets_what_is_its_own) {
    for (std::uint32_t turn = 0; turn < 10; ++turn) {
        fail_at_first(party_[0]);
        send(party_[1], 100 + turn);
        for (std::uint32_t rank = 0; rank < 2; ++rank)
            for (std::uint32_t i = 1; i < 32768; ++i) velo_goal_run_skip(party_[rank]);
        send(party_[1], 200 + turn);
        receive(party_[0], 200 + turn);
        for (std::uint32_t rank = 0; rank < 2; ++rank)
            for (std::uint32_t i = 1; i < 32768; ++i) velo_goal_run_skip(party_[rank]);
    }
    EXPECT_EQ(party_.state(0).messages.pool_used_bytes, 0U);
}

TEST_F(AfterFailureTest, a_group_with_the_same_id_gets_what_is_its_own) {
    for (std::uint32_t turn = 0; turn < 300; ++turn) {
        open_both();
        fail_at_first(groups_[0]);
        close(0);
        send(groups_[1], 100 + turn);
        close(1);
        open_both();
        send(groups_[1], 200 + turn);
        receive(groups_[0], 200 + turn);
        for (const std::uint32_t rank : {0U, 1U}) close(rank);
    }
    EXPECT_EQ(party_.state(0).messages.pool_used_bytes, 0U);
}

TEST_F(AfterFailureTest, a_group_with_the_same_id_does_not_hear_late_that_a_run_has_ended) {
    open_both();
    close(0);
    const Graph graph = graph_of(1, 2);
    velo_goal_requires(graph.get(), velo_goal_send(graph.get(), kSent, 4, 0, 3),
                       velo_goal_call(graph.get(), 0));
    std::uint32_t nothing = 0;
    velo_goal_run* const run = started(groups_[1], compiled(graph), {&nothing}, failing());
    ASSERT_TRUE(party_.until([&] { return velo_goal_run_is_over(run); }));
    EXPECT_EQ(velo_goal_run_end(run).status, VELO_ERR_UNSUPPORTED);
    party_.settle();
    EXPECT_EQ(party_.state(1).told, 1U);
    close(1);
    open_both();
    send(groups_[1], 7);
    receive(groups_[0], 7);
    for (const std::uint32_t rank : {0U, 1U}) close(rank);
}

TEST_F(PerformerTest, what_is_wrong_with_a_graph_is_said_when_it_is_compiled) {
    Graph graph = graph_of(0, 2);
    velo_goal_scratch(graph.get(), 64);
    velo_goal_send(graph.get(), {60, VELO_GOAL_SCRATCH}, 8, 1, 0);
    EXPECT_EQ(refusal(graph), "rank 0: operation 0 (send 8b to 1) goes beyond the scratchpad of 64 bytes");
    graph = graph_of(0, 2);
    velo_goal_send(graph.get(), {0, 19}, 8, 1, 0);
    EXPECT_EQ(refusal(graph), "rank 0: operation 0 (send 8b to 1) uses space 19");
    graph = graph_of(0, 2);
    velo_goal_receive(graph.get(), kReceived, 8, 2, 0);
    EXPECT_EQ(refusal(graph), "rank 0: operation 0 receives from rank 2, but there are 2 ranks");
    graph = graph_of(0, 2);
    velo_goal_send(graph.get(), kSent, 8, 1, VELO_GOAL_MOST_TAG + 1);
    EXPECT_EQ(refusal(graph), "rank 0: operation 0 (send 8b to 1 tag 2147483648) has a tag above 2^31 - 1");
    graph = graph_of(0, 2);
    const velo_goal_vertex a = velo_goal_call(graph.get(), 0), b = velo_goal_call(graph.get(), 0);
    velo_goal_requires(graph.get(), a, b);
    velo_goal_requires(graph.get(), b, a);
    EXPECT_NE(refusal(graph).find("cycle"), std::string::npos);
    velo_goal_graph* none = nullptr;
    EXPECT_EQ(velo_goal_graph_new(2, 2, &none), VELO_ERR_PARAMETER);
    EXPECT_EQ(none, nullptr);
}

TEST_F(PerformerTest, a_start_that_is_refused_takes_no_number) {
    PerformerParty party({});
    const std::vector<Schedule> schedules = chain(1, 4);
    std::uint32_t sent = 7, received = 0;
    velo_goal_start start{};
    velo_goal_run* run = nullptr;
    EXPECT_EQ(velo_goal_run_start(party[0], schedules[0].get(), &start, &run), VELO_ERR_PARAMETER);
    EXPECT_EQ(velo_goal_run_start(party[1], schedules[0].get(), &start, &run), VELO_ERR_PARAMETER);
    EXPECT_EQ(run, nullptr);
    std::vector<velo_goal_run*> runs{started(party[1], schedules[1], {&sent}),
                                     started(party[0], schedules[0], {nullptr, &received})};
    ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
    for (velo_goal_run* each : runs) velo_goal_run_end(each);
    EXPECT_EQ(received, 7U);
}

TEST_F(PerformerTest, so_many_schedules_are_kept_and_the_one_used_last_stays) {
    PerformerPartyConfig config;
    config.size = 1;
    PerformerParty party(config);
    const auto use = [&](std::uint64_t bytes) {
        velo_goal_request request{};
        request.operation = "bcast";
        request.bytes = bytes;
        velo_goal_schedule* schedule = nullptr;
        EXPECT_EQ(velo_goal_group_schedule(party[0], &request, &schedule), VELO_OK);
        return party.state(0).compiled;
    };
    for (std::uint64_t bytes = 1; bytes <= 64; ++bytes) EXPECT_EQ(use(bytes), bytes);
    EXPECT_EQ(use(1), 64U);
    EXPECT_EQ(use(65), 65U);  // instead of 2
    EXPECT_EQ(use(1), 65U);
    EXPECT_EQ(use(3), 65U);
    EXPECT_EQ(use(2), 66U);
    velo_goal_request unknown{};
    unknown.operation = "bcast";
    unknown.algorithm = "carrier pigeon";
    velo_goal_schedule* schedule = nullptr;
    EXPECT_EQ(velo_goal_group_schedule(party[0], &unknown, &schedule), VELO_ERR_UNSUPPORTED);
}

TEST_F(PerformerTest, data_of_nobody_is_moved_all_the_same) {
    PerformerParty party({});
    std::vector<velo_goal_run*> runs;
    std::vector<Schedule> schedules;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        const Graph graph = graph_of(rank, 2);
        const velo_goal_place nowhere{0, VELO_GOAL_NOWHERE};
        velo_goal_send(graph.get(), nowhere, 20000, 1 - rank, 0);
        velo_goal_receive(graph.get(), nowhere, 20000, VELO_GOAL_ANY, VELO_GOAL_ANY);
        schedules.push_back(compiled(graph));
        runs.push_back(started(party[rank], schedules[rank]));
    }
    ASSERT_TRUE(party.until([&] { return std::ranges::all_of(runs, velo_goal_run_is_over); }));
    for (velo_goal_run* run : runs) EXPECT_EQ(velo_goal_run_end(run).status, VELO_OK);
}

// Each process has two threads with a group each, and both make progress.
TEST_F(PerformerTest, threads_start_runs_side_by_side) {
    PerformerPartyConfig config;
    config.threads = true;
    config.slots_per_peer = 64;
    PerformerParty party(config);
    constexpr std::uint32_t kRuns = 300;
    std::vector<velo_goal_group*> groups;
    for (std::uint32_t rank = 0; rank < 2; ++rank)
        for (std::uint32_t id = 1; id <= 2; ++id) groups.push_back(party.group(rank, id));
    std::atomic<unsigned> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < groups.size(); ++t) {
        threads.emplace_back([&, t] {
            velo_performer* const performer = party.at(static_cast<std::uint32_t>(t / 2));
            const auto rank = static_cast<std::uint32_t>(t / 2);
            for (std::uint32_t i = 0; i < kRuns; ++i) {
                // Small; large and announced in both directions, and in one.
                velo_goal_request request{};
                request.operation = i % 3 < 2 ? "allreduce" : "bcast";
                request.bytes = i % 3 == 0 ? 2048 : 65536;
                request.op = VELO_GOAL_MAX;
                request.type = VELO_GOAL_UINT;
                request.width = 32;
                request.root = 1;
                const std::size_t count = request.bytes / 4;
                std::vector<std::uint32_t> in(count, i + rank), out(in);
                void* const arguments[] = {in.data(), out.data()};
                velo_goal_start start{};
                start.arguments = arguments;
                start.argument_count = 2;
                velo_goal_schedule* schedule = nullptr;
                velo_goal_run* run = nullptr;
                wrong += velo_goal_group_schedule(groups[t], &request, &schedule) != VELO_OK;
                wrong += velo_goal_run_start(groups[t], schedule, &start, &run) != VELO_OK;
                while (!velo_goal_run_is_over(run)) {
                    velo_goal_progress(performer);
                    std::this_thread::yield();
                }
                wrong += velo_goal_run_end(run).status != VELO_OK;
                wrong += std::ranges::count(out, i + 1) != static_cast<std::ptrdiff_t>(count);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0U);
    for (velo_goal_group* group : groups) velo_goal_group_close(group);
}

}  // namespace
}  // namespace velo::test
