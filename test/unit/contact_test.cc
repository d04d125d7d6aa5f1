// Doorbells of a policy that opens windows on demand, on memory of its own.
#include "engine/peers/contact.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "platform/failure.h"
#include "unit/lone_domain.h"

namespace velo::engine {
namespace {

class ContactTest : public testing::Test, private IdleHost {
 protected:
    bool is_quiet() const override { return true; }
    void look_around() override {}

    std::atomic<std::uint32_t> rings_{0};
    std::atomic<std::uint64_t> bits_{0};
    fabric::shm::Doorbell bell_{&rings_, &bits_, test::LoneDomain::kPeers};
    test::LoneDomain domain_{"lazy"};
    std::optional<Domain> none_;
    platform::OptionalMutex mutex_{false};
    std::unique_ptr<fabric::shm::SegmentHeader> own_ = std::make_unique<fabric::shm::SegmentHeader>();
    Idle idle_{*this, mutex_, *own_, 0, true};
    Contact contact_{mutex_, idle_, bell_, domain_.domain(), none_};
};

TEST_F(ContactTest, a_bell_is_answered_once_with_what_the_policy_grants) {
    EXPECT_EQ(contact_.run(false), 0);
    bell_.ring(1);
    EXPECT_TRUE(contact_.has_rung());
    EXPECT_EQ(contact_.run(false), 1);
    EXPECT_FALSE(contact_.has_rung());
    EXPECT_FALSE(domain_.carried.empty());
    EXPECT_EQ(contact_.run(false), 0);
}

TEST_F(ContactTest, a_bell_that_no_correct_peer_rings_is_an_offence) {
    bell_.ring(1);
    contact_.run(false);
    bell_.ring(1);
    EXPECT_THROW(contact_.run(false), Failure);
}

TEST_F(ContactTest, what_an_ended_peer_has_rung_is_not_answered) {
    bell_.ring(1);
    contact_.ended(domain_[1]);
    EXPECT_EQ(contact_.run(false), 0);
    EXPECT_TRUE(domain_.carried.empty());
}

}  // namespace
}  // namespace velo::engine
