// The policy lazy in the engine: connections with the first packet, turns, peers that do not answer.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "engine_party.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();  // GCC has no header for it
#endif

namespace velo::test {
namespace {

PartyConfig config(std::size_t size) {
    PartyConfig config;
    config.size = size;
    config.flow_control = "lazy";
    return config;
}

// What this process has allocated, and its segments; each is counted by the allocator and the kernel, not by
// the engine.
std::size_t memory_in_use() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    std::size_t bytes = __sanitizer_get_current_allocated_bytes();
#else
    struct mallinfo2 heap = mallinfo2();
    std::size_t bytes = heap.uordblks + heap.hblkhd;
#endif
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0;
        if (line.find("/dev/shm/#") != std::string::npos &&
            std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2)
            bytes += end - begin;
    }
    return bytes;
}

std::size_t memory_of_an_engine_with(std::size_t peers) {
    PartyConfig one = config(1);
    one.absent = peers;
    one.lazy_slots = 1024;
    one.lazy_peers = 64;
    const std::size_t before = memory_in_use();
    Party party(one);
    return memory_in_use() - before;
}

TEST(LazyEngineTest, a_peer_that_is_never_spoken_to_costs_88_bytes_and_a_bit) {
    constexpr std::size_t kMore = 30'000, kPages = 8 * 4096;  // large blocks are whole pages
    const std::size_t grown = memory_of_an_engine_with(2 * kMore) - memory_of_an_engine_with(kMore);
    EXPECT_LE(grown, 88 * kMore + kMore / 8 + kPages);
    EXPECT_GE(grown, 64 * kMore) << "the directory alone takes as much: this has not measured it";
}

TEST(LazyEngineTest, a_peer_that_is_never_spoken_to_is_not_mapped) {
    std::size_t before = mapped_segments();
    Party party(config(6));
    EXPECT_EQ(mapped_segments() - before, 6U) << "each its own";
    party.send(0, 1, 1, "one way");
    party.settle();
    EXPECT_EQ(party[1].received.size(), 1U);
    EXPECT_EQ(mapped_segments() - before, 8U) << "the two that spoke map each other";
}

// A process of another job may end when it has what it wanted, and before its last question was seen.
TEST(LazyEngineTest, a_question_of_a_peer_that_has_ended_is_not_answered_and_no_error) {
    for (bool descriptor_taken : {false, true}) {
        PartyConfig small = config(3);
        small.lazy_slots = 3;
        small.lazy_peers = 1;
        Party party(small);
        velo_send question{};
        question.done = [](velo_send*, velo_status) {};
        ASSERT_EQ(velo_send_start(party[1].engine, party[1].peers[0], &question), VELO_QUEUED);
        velo_progress(party[1].engine);
        velo_engine_close(std::exchange(party[1].engine, nullptr));
        // The lowest free numbers are those that the engine has given back.
        std::vector<std::ifstream> files(descriptor_taken ? 8 : 0);
        for (std::ifstream& file : files) file.open("/dev/null");
        for (int i = 0; i < 100; ++i) {
            velo_progress(party[0].engine);
            velo_progress(party[2].engine);
        }
        EXPECT_TRUE(party[0].fatal.empty()) << party[0].fatal.front();
        // The window that was meant for it is free again.
        party.send(2, 0, 1, pattern(500, 7));
        for (int i = 0; i < 300 && party[0].received.empty(); ++i) {
            velo_progress(party[0].engine);
            velo_progress(party[2].engine);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        ASSERT_EQ(party[0].received.size(), 1U);
        EXPECT_EQ(party[0].received.front().data, pattern(500, 7));
    }
}

TEST(LazyEngineTest, more_active_peers_than_windows_take_turns) {
    PartyConfig small = config(6);
    small.lazy_slots = 3;
    small.lazy_peers = 2;
    small.report = "json";
    Party party(small);
    for (unsigned i = 0; i < 240; ++i) {
        for (std::size_t from = 0; from < 6; ++from)
            for (std::size_t to = 0; to < 6; ++to)
                if (from != to) party.send(from, to, 1, pattern(150, i));
        if (i % 7 == 0) party.step();
    }
    party.settle();
    for (std::size_t rank = 0; rank < 6; ++rank) {
        EXPECT_EQ(party[rank].received.size(), 5U * 240) << rank;
        EXPECT_TRUE(party[rank].fatal.empty());
    }
    EXPECT_EQ(party.queued(), party.completed());
    for (std::size_t rank = 1; rank < 6; ++rank)
        velo_engine_close(std::exchange(party[rank].engine, nullptr));
    ::testing::internal::CaptureStderr();
    velo_engine_close(std::exchange(party[0].engine, nullptr));
    std::string text = ::testing::internal::GetCapturedStderr();
    auto report = nlohmann::json::parse(text.substr(text.find('{')));
    EXPECT_EQ(report["per_rank"].size(), 6U);
    EXPECT_GT(report["total"]["releases"], 30U);
    EXPECT_GT(report["total"]["hellos"], 40U);
}

TEST(LazyEngineTest, a_peer_that_is_asked_to_give_way_and_does_not_look_is_passed_over) {
    PartyConfig small = config(4);
    small.lazy_peers = 2;
    Party party(small);
    party.send(1, 0, 1, "the oldest");
    party.settle();
    party.send(2, 0, 1, "the second");
    party.settle();
    party[0].received.clear();
    party.send(3, 0, 1, "the third wants in");
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (party[0].received.empty() && std::chrono::steady_clock::now() < deadline)
        for (std::size_t rank : {0U, 2U, 3U}) velo_progress(party[rank].engine);
    ASSERT_EQ(party[0].received.size(), 1U)
        << "the oldest one computes, the second one should have been asked";
    EXPECT_EQ(party[0].received[0].data, "the third wants in");
    party.settle();
    EXPECT_EQ(party.queued(), party.completed());
}

TEST(LazyEngineTest, peers_that_have_ended_give_their_windows_back) {
    PartyConfig small = config(5);
    small.lazy_peers = 2;
    Party party(small);
    for (std::size_t gone : {1U, 2U}) {
        party.send(gone, 0, 1, "a window there");
        party.send(0, gone, 1, "and one here");
    }
    party.settle();
    for (std::size_t gone : {1U, 2U}) velo_engine_close(std::exchange(party[gone].engine, nullptr));
    party[0].received.clear();
    for (std::size_t late : {3U, 4U}) {
        party.send(late, 0, 1, pattern(300, 1));
        party.send(0, late, 1, pattern(300, 2));
    }
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (party.completed() < party.queued() && std::chrono::steady_clock::now() < deadline)
        for (std::size_t rank : {0U, 3U, 4U}) velo_progress(party[rank].engine);
    EXPECT_EQ(party.queued(), party.completed());
    for (std::size_t rank : {0U, 3U, 4U}) velo_progress(party[rank].engine);
    EXPECT_EQ(party[0].received.size(), 2U);
    EXPECT_EQ(party[3].received.size() + party[4].received.size(), 2U);
}

TEST(LazyEngineTest, memory_is_read_before_the_first_message) {
    Party party(config(2));
    std::string theirs = pattern(3000, 1), mine(3000, '\0');
    int done = 0;
    velo_status status = velo_get(
        party[0].engine, party[0].peers[1], mine.data(), reinterpret_cast<std::uint64_t>(theirs.data()),
        mine.size(), [](void* count, velo_status, std::uint64_t) { ++*static_cast<int*>(count); }, &done);
    EXPECT_TRUE(status == VELO_OK || status == VELO_QUEUED);
    party.settle();
    EXPECT_EQ(done, 1);
    EXPECT_EQ(mine, theirs);
}

}  // namespace
}  // namespace velo::test
