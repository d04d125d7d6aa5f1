// Receives of large messages that are announced: either side may copy.
#include <sys/mman.h>

#include <algorithm>

#include "performer_runs.h"

namespace velo::test {
namespace {

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

}  // namespace
}  // namespace velo::test
