// Schedules over engines leave what the same schedules leave interpreted without any: random programs and
// collective operations, alone and several at once.
#include <algorithm>
#include <map>
#include <random>

#include "collectives/goal/program.h"
#include "goal/party.h"
#include "performer_runs.h"

namespace velo::test {
namespace {

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

}  // namespace
}  // namespace velo::test
