// Groups, lanes and runs: which messages meet, which schedules are kept, what is told when.
#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "performer_runs.h"

namespace velo::test {
namespace {

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
