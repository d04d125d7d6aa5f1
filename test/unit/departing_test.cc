// Peers that end while others go on: what they held is free again, and so is the place of a process of
// another job.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "engine_party.h"

namespace velo::test {
namespace {

constexpr std::size_t kGuest = 2;  // among the peers of the hosts: what comes after their own two

PartyConfig hosts(const std::string& policy) {
    PartyConfig config;
    config.flow_control = policy.c_str();
    config.spare_peers = 1;
    return config;
}

// A process of another job that has met the first host.
class Guest {
 public:
    Guest(Party& party, const std::string& policy, std::uint64_t name)
        : party_(party), job_(config_of(policy, name)) {
        party_[0].peers.resize(kGuest + 1);
        party_[0].peers[kGuest] = meet(party_[0], member());
        member().peers[0] = meet(member(), party_[0]);
    }
    Member& member() { return job_[0]; }
    velo_status tell(std::string contents) { return job_.send(0, 0, 1, std::move(contents)); }
    // As much as goes at once, so that nothing is left behind.
    int tell_all_that_goes() {
        int told = 0;
        while (velo_send_now(member().engine, member().peers[0], 1, "more", 4, nullptr, 0) == VELO_OK && told < 20)
            ++told;
        return told;
    }
    void settle() {
        for (int idle = 0; idle < 3;) idle = party_.step() + job_.step() == 0 ? idle + 1 : 0;
    }
    void end() { velo_engine_close(std::exchange(member().engine, nullptr)); }

 private:
    static PartyConfig config_of(const std::string& policy, std::uint64_t name) {
        PartyConfig config = hosts(policy);
        config.size = 1;
        config.first_name = name;
        return config;
    }
    Party& party_;
    Party job_;
};

template <typename Condition>
bool comes_true(Party& party, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < deadline) party.step();
    return condition();
}

std::size_t mapped_segments() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.find("/dev/shm/#") != std::string::npos ? 1 : 0;
    return count;
}

class DepartingTest : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(EveryPolicy, DepartingTest, ::testing::ValuesIn(policies()),
                         [](const auto& info) { return info.param; });

TEST_P(DepartingTest, one_place_serves_any_number_of_processes_one_after_the_other) {
    Party party(hosts(GetParam()));
    const std::size_t mapped = mapped_segments();
    std::size_t first_queued = 0;
    for (std::uint64_t round = 1; round <= 40; ++round) {
        SCOPED_TRACE(round);
        Guest guest(party, GetParam(), 1000 + round);
        const std::size_t queued_before = party.queued();
        for (unsigned i = 0; i < 8; ++i) {
            guest.tell(pattern(300, i));
            party.send(0, kGuest, 1, pattern(300, i));
        }
        // The next one finds what the first one did.
        const std::size_t queued = party.queued() - queued_before;
        if (round == 1) first_queued = queued;
        ASSERT_EQ(queued, first_queued);
        guest.settle();
        ASSERT_EQ(guest.member().received.size(), 8U);
        ASSERT_EQ(party[0].received.size(), 8U);
        // Ends with messages under way in both directions, and some that wait.
        for (unsigned i = 0; i < 30; ++i) party.send(0, kGuest, 1, pattern(300, i));
        const auto more = static_cast<std::size_t>(guest.tell_all_that_goes());
        guest.end();
        ASSERT_TRUE(comes_true(party, [&] { return party[0].gone.size() == round; }));
        EXPECT_EQ(party[0].gone.back(), 1000 + round);
        EXPECT_EQ(party[0].received.size(), 8 + more) << "what it has sent comes in any case";
        ASSERT_TRUE(comes_true(party, [&] { return party.queued() == party.completed(); }));
        party[0].received.clear();
        // The hosts have each other as before.
        party.send(1, 0, 1, pattern(500, 3));
        ASSERT_TRUE(comes_true(party, [&] { return party[0].received.size() == 1; }));
        party[0].received.clear();
        ASSERT_TRUE(comes_true(party, [&] { return mapped_segments() <= mapped + 2; }))
            << "its memory is given back";
    }
    EXPECT_TRUE(party[0].fatal.empty()) << party[0].fatal.front();
}

TEST_P(DepartingTest, what_is_sent_to_a_process_that_is_gone_is_lost_and_its_memory_out_of_reach) {
    Party party(hosts(GetParam()));
    Guest guest(party, GetParam(), 1001);
    guest.tell("hello");
    guest.settle();
    guest.end();
    ASSERT_TRUE(comes_true(party, [&] { return !party[0].gone.empty(); }));
    Guest next(party, GetParam(), 1002);

    party[0].peers[kGuest] = velo_peer_nobody(party[0].engine);
    for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(party.send(0, kGuest, 1, pattern(700, i)), VELO_OK);
    std::uint64_t word = 0;
    const auto done = [](void*, velo_status, std::uint64_t) { ADD_FAILURE() << "there is nobody"; };
    const auto address = reinterpret_cast<std::uint64_t>(&word);
    velo_peer* nobody = party[0].peers[kGuest];
    EXPECT_EQ(velo_get(party[0].engine, nobody, &word, address, 8, done, nullptr), VELO_ERR_REMOTE);
    EXPECT_EQ(velo_atomic_start(party[0].engine, nobody, VELO_ATOMIC_ADD, 8, address, 1, 0, done, nullptr),
              VELO_ERR_REMOTE);

    next.settle();
    EXPECT_TRUE(next.member().received.empty());
    EXPECT_TRUE(party[0].fatal.empty());
}

// Peers of the own job keep their places. What they held does not stay with them.
TEST_P(DepartingTest, peers_that_have_ended_leave_their_slots_to_those_that_go_on) {
    std::size_t delayed[2];
    for (bool they_were_busy : {false, true}) {
        PartyConfig config;
        config.size = 6;
        config.slots_per_peer = 40;
        config.lazy_slots = 100;
        config.lazy_peers = 6;
        config.preposted_buffers = 40;
        config.flow_control = GetParam().c_str();
        Party party(config);
        for (unsigned i = 0; they_were_busy && i < 100; ++i) {
            for (std::size_t from = 1; from <= 4; ++from) party.send(from, 0, 1, pattern(300, i));
            party.settle();
        }
        for (std::size_t gone = 1; gone <= 4; ++gone)
            velo_engine_close(std::exchange(party[gone].engine, nullptr));
        for (int i = 0; i < 40'000; ++i) velo_progress(party[0].engine);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        for (int i = 0; i < 400'000; ++i) velo_progress(party[0].engine);
        const std::size_t before = party.queued();
        for (unsigned i = 0; i < 2000; ++i) {
            party.send(5, 0, 1, pattern(300, i));
            if (i % 6 == 0) {
                velo_progress(party[0].engine);
                velo_progress(party[5].engine);
            }
        }
        delayed[they_were_busy] = party.queued() - before;
        while (party.queued() != party.completed())
            velo_progress(party[0].engine), velo_progress(party[5].engine);
        EXPECT_TRUE(party[0].fatal.empty());
    }
    EXPECT_LE(delayed[1], delayed[0] + delayed[0] / 10 + 20);
    RecordProperty("delayed", std::to_string(delayed[0]) + " " + std::to_string(delayed[1]));
}

}  // namespace
}  // namespace velo::test
