// Transfers of two processes whose messages are carried by the test: by no mechanism, so through mailboxes.
#include "engine/large/large.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "unit/node_process.h"

namespace velo::engine {
namespace {

using test::NodeProcess;

class LargeTest : public testing::Test {
 protected:
    LargeTest() : to_two_(one_.expect(two_)), to_one_(two_.expect(one_)) {}

    rma::Completion completion() {
        return {[](void* argument, velo_status status, std::uint64_t result) {
                    static_cast<std::vector<std::pair<velo_status, std::uint64_t>>*>(argument)->push_back(
                        {status, result});
                },
                &done_};
    }
    static std::uint64_t address_of(const void* data) { return reinterpret_cast<std::uint64_t>(data); }

    void carry_all() { one_.carry_all(two_, to_one_, to_two_); }
    using Done = std::vector<std::pair<velo_status, std::uint64_t>>;
    Done take_done() { return std::exchange(done_, {}); }

    NodeProcess one_{10, "static"}, two_{11, "static"};
    Peer& to_two_;
    Peer& to_one_;
    Done done_;
};

TEST_F(LargeTest, get_and_put_go_through_the_mailbox_where_no_mechanism_reaches) {
    std::string source(300'000, 's'), target(source.size(), 't');
    EXPECT_EQ(
        one_.large().get(to_two_, {target.data(), address_of(source.data()), source.size(), completion()}),
        VELO_QUEUED);
    carry_all();
    EXPECT_EQ(take_done(), (Done{{VELO_OK, 0}}));
    EXPECT_EQ(target, source);

    source.assign(source.size(), 'p');
    EXPECT_EQ(two_.large().put(to_one_, source.data(), address_of(target.data()), 1000, completion()),
              VELO_QUEUED);
    carry_all();
    EXPECT_EQ(take_done(), (Done{{VELO_OK, 0}}));
    EXPECT_EQ(target, std::string(1000, 'p') + std::string(299'000, 's'));
    EXPECT_EQ(one_.observer().counts.rma_mailbox_bytes, 300'000U);
    EXPECT_EQ(two_.observer().counts.rma_mailbox_bytes, 1000U);
}

TEST_F(LargeTest, an_atomic_that_is_none_is_not_counted) {
    alignas(8) std::uint64_t word = 7;
    EXPECT_EQ(one_.large().atomic(to_two_, VELO_ATOMIC_ADD, 8, address_of(&word), 5, 0, completion()),
              VELO_QUEUED);
    EXPECT_EQ(one_.large().atomic(to_two_, VELO_ATOMIC_ADD, 3, address_of(&word), 5, 0, completion()),
              VELO_ERR_UNSUPPORTED);
    carry_all();
    EXPECT_EQ(take_done(), (Done{{VELO_OK, 7}}));
    EXPECT_EQ(word, 12U);
    EXPECT_EQ(one_.observer().counts.atomics, 1U);
}

TEST_F(LargeTest, a_staged_get_takes_what_is_in_the_ring_and_gets_the_rest) {
    const std::string source(20'000, 's');
    std::string target(source.size(), 't');
    const std::uint64_t deposit = two_.large().begin_deposit(to_one_, source.data(), source.size());
    ASSERT_NE(deposit, 0U);
    two_.large().store_deposit(deposit);
    const Get get{target.data(), address_of(source.data()), source.size(), completion()};
    EXPECT_EQ(one_.large().get_deposited(to_two_, VELO_DEPOSIT_NUMBER(deposit), get), VELO_OK);
    EXPECT_EQ(take_done(), (Done{{VELO_OK, 0}}));
    EXPECT_EQ(target, source);
    EXPECT_TRUE(one_.posted.empty());
    two_.large().end_deposit(to_one_, deposit);

    target.assign(source.size(), 't');
    one_.idle().run(0);  // a poll: the next get is carried out at once, too
    EXPECT_EQ(one_.large().get_deposited(to_two_, 0, get), VELO_QUEUED) << "none was announced";
    carry_all();
    EXPECT_EQ(take_done(), (Done{{VELO_OK, 0}}));
    EXPECT_EQ(target, source);
}

TEST_F(LargeTest, the_transfers_of_a_peer_that_departs_fail_when_the_upper_layer_may_be_told) {
    std::string source(10, 's'), target(10, 't');
    const Get get{target.data(), address_of(source.data()), source.size(), completion()};
    EXPECT_EQ(one_.large().get(to_two_, get), VELO_QUEUED);
    ++to_two_.copying;
    one_.departures().mark_ended(to_two_);
    one_.departures().look_at_all();
    EXPECT_FALSE(to_two_.departed) << "its memory is being read";
    --to_two_.copying;
    one_.departures().look_at_all();
    EXPECT_EQ(take_done(), (Done{{VELO_ERR_REMOTE, 0}}));
    EXPECT_EQ(one_.large().get(to_two_, get), VELO_ERR_REMOTE);
    EXPECT_NE(one_.logged.find("has ended without MPI_Finalize, as if killed: "), std::string::npos);
    EXPECT_EQ(one_.logged.find("has ended"), one_.logged.rfind("has ended")) << "once: " << one_.logged;
}

}  // namespace
}  // namespace velo::engine
