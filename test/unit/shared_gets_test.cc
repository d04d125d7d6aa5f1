// Gets that two processes carry out together: both sides in one process, on memory that is its own.
#include "engine/large/shared_gets.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit/lone_domain.h"

namespace velo::engine {
namespace {

struct FakeTransfers final : SharedGetsHost {
    bool is_quiet() const override { return quiet; }
    void failed(Peer&, int error) override { errors.push_back(error); }
    bool quiet = true;
    std::vector<int> errors;
};

struct OwnMemory final : singlecopy::RemoteMemory {
    int read(void* local, std::uint64_t remote, std::size_t bytes) override {
        std::memcpy(local, reinterpret_cast<const void*>(remote), bytes);
        return error;
    }
    int write(const void* local, std::uint64_t remote, std::size_t bytes) override {
        std::memcpy(reinterpret_cast<void*>(remote), local, bytes);
        return 0;
    }
    int error = 0;
};

struct NeverIdle final : IdleHost {
    bool is_quiet() const override { return false; }
    void look_around() override {}
};

class SharedGetsTest : public testing::Test {
 protected:
    static constexpr std::size_t kBytes = std::size_t{1} << 20;

    Get get() {
        return {target_.data(),
                reinterpret_cast<std::uint64_t>(source_.data()),
                kBytes,
                {[](void* argument, velo_status status, std::uint64_t) {
                     static_cast<std::vector<velo_status>*>(argument)->push_back(status);
                 },
                 &done_}};
    }
    // The peer's view of the get of that ticket, in the cell of this process.
    rma::Help help(std::uint32_t ticket) {
        const auto first = rma::cell_of(ticket) < fabric::shm::kGetCells ? rma::Share::First::kInitiator
                                                                         : rma::Share::First::kPeer;
        return {rma::Share(cells_.data() + rma::cell_of(ticket), rma::generation_of(ticket), kBytes, first),
                &memory_, reinterpret_cast<const std::byte*>(source_.data()),
                reinterpret_cast<std::uint64_t>(target_.data())};
    }
    void carry_out(std::uint32_t ticket) {
        SharedGets::Lock lock(mutex_);
        EXPECT_EQ(gets_.carry_out(lock, peer(), gets_.get(ticket, get(), &memory_)), VELO_QUEUED);
    }
    Peer& peer() { return domain_[0]; }
    std::vector<velo_status> take_done() { return std::exchange(done_, {}); }

    std::string source_ = std::string(kBytes, 's'), target_ = std::string(kBytes, 't');
    std::vector<velo_status> done_;
    OwnMemory memory_;
    test::LoneDomain domain_{"none"};
    platform::OptionalMutex mutex_{false};
    NeverIdle never_idle_;
    std::unique_ptr<fabric::shm::SegmentHeader> own_ = std::make_unique<fabric::shm::SegmentHeader>();
    Idle idle_{never_idle_, mutex_, *own_, 0, true};
    std::vector<rma::ShareCell> cells_ = std::vector<rma::ShareCell>(fabric::shm::kShareCells);
    FakeTransfers host_;
    SharedGets gets_{host_, mutex_, idle_, cells_.data(), own_->getting};
};

using Done = std::vector<velo_status>;

TEST_F(SharedGetsTest, a_get_that_nobody_helps_with_is_done_at_the_next_poll) {
    const auto ticket = gets_.open(kBytes, SharedGets::First::kInitiator);
    ASSERT_TRUE(ticket);
    carry_out(*ticket);
    EXPECT_TRUE(gets_.any() && idle_.is_wanted());
    gets_.run(false);
    EXPECT_EQ(take_done(), Done{VELO_OK});
    EXPECT_EQ(target_, source_);
    EXPECT_FALSE(gets_.any());
    EXPECT_EQ(peer().copying, 0U);
    EXPECT_EQ(own_->getting, 0U);
}

TEST_F(SharedGetsTest, an_announced_get_that_the_peer_has_begun_ends_with_its_part) {
    const auto ticket = gets_.open(kBytes, SharedGets::First::kPeer);
    ASSERT_TRUE(ticket);
    rma::Help its = help(*ticket);
    const auto first = its.share.claim_back();
    ASSERT_TRUE(first);
    carry_out(*ticket);
    gets_.run(false);
    EXPECT_EQ(take_done(), Done{});
    EXPECT_NE(target_, source_);
    gets_.help_now(peer(), its, *first);
    gets_.run(false);
    EXPECT_EQ(take_done(), Done{VELO_OK});
    EXPECT_EQ(target_, source_);
}

TEST_F(SharedGetsTest, each_of_both_kinds_has_cells_of_its_own_and_a_closed_one_is_used_again) {
    std::vector<std::uint32_t> tickets;
    while (const auto ticket = gets_.open(kBytes, SharedGets::First::kInitiator)) tickets.push_back(*ticket);
    EXPECT_EQ(tickets.size(), fabric::shm::kGetCells);
    EXPECT_TRUE(gets_.open(kBytes, SharedGets::First::kPeer));
    gets_.close(tickets[3]);
    const auto again = gets_.open(kBytes, SharedGets::First::kInitiator);
    ASSERT_TRUE(again);
    EXPECT_EQ(rma::cell_of(*again), rma::cell_of(tickets[3]));
    EXPECT_NE(*again, tickets[3]) << "whoever comes late with the old ticket finds nothing";
}

TEST_F(SharedGetsTest, a_peer_that_ends_leaves_its_part_undone) {
    const auto ticket = gets_.open(kBytes, SharedGets::First::kInitiator);
    rma::Help its = help(*ticket);
    ASSERT_TRUE(its.share.claim_back());
    carry_out(*ticket);
    peer().ending = true;
    gets_.run(false);
    EXPECT_EQ(take_done(), Done{VELO_ERR_REMOTE});
    EXPECT_EQ(host_.errors, std::vector<int>{0});
}

TEST_F(SharedGetsTest, what_is_under_way_with_a_departed_peer_is_handed_out) {
    const auto ticket = gets_.open(kBytes, SharedGets::First::kInitiator);
    carry_out(*ticket);
    rma::Help given = help(*ticket);
    given.completion = get().completion;
    gets_.help_when_idle(given);
    std::vector<rma::Completion> lost;
    gets_.depart(peer(), &memory_, &lost);
    ASSERT_EQ(lost.size(), 2U);
    EXPECT_EQ(lost[0].status, VELO_OK) << "it was complete";
    EXPECT_FALSE(gets_.any());
}

TEST_F(SharedGetsTest, help_waits_for_a_quiet_mailbox_and_for_nobody_who_is_gone) {
    const auto ticket = gets_.open(kBytes, SharedGets::First::kPeer);
    rma::Help given = help(*ticket);
    given.completion = get().completion;
    host_.quiet = false;
    gets_.help_when_idle(given);
    gets_.run(false);
    EXPECT_NE(target_, source_);
    host_.quiet = true;
    gets_.run(false);
    EXPECT_EQ(target_, source_);
    EXPECT_EQ(take_done(), Done{VELO_OK});
    gets_.help_when_idle(given);
    gets_.give_no_help();
    EXPECT_FALSE(gets_.any());
}

TEST_F(SharedGetsTest, a_refusal_of_the_system_is_told) {
    memory_.error = EPERM;
    carry_out(*gets_.open(kBytes, SharedGets::First::kInitiator));
    gets_.run(false);
    EXPECT_EQ(take_done(), Done{VELO_ERR_REMOTE});
    EXPECT_EQ(host_.errors, std::vector<int>{EPERM});
}

}  // namespace
}  // namespace velo::engine
