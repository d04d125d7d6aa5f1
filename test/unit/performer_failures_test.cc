// Runs that cannot go on: operations that differ, processes that end, calls that fail, and what comes late.
#include <algorithm>

#include "performer_runs.h"

namespace velo::test {
namespace {

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

}  // namespace
}  // namespace velo::test
