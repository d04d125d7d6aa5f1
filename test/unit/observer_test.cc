// What the observer makes of events: counters, and the lines of the log on stalls.
#include "engine/observe/observer.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "unit/lone_domain.h"

namespace velo::engine {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// A network that has yet to send what it took.
class HoldingLink final : public fabric::Link {
 public:
    fabric::Carried carry(const fabric::Burst&) override { return {0, 0}; }
    bool carry_packet(const fabric::MessageView&, std::uint8_t, std::uint32_t, bool, bool) override {
        return false;
    }
    void prepare(std::uint32_t) override {}
    bool holds_some() const override { return true; }
    void carry_control(wire::PacketKind, std::uint32_t) override {}
};

class ObserverTest : public testing::Test {
 protected:
    void watch(const char* policy) {
        log_.config.stall_warning = 2;
        log_.config.trace = "";
        domain_ = std::make_unique<test::LoneDomain>(policy);
        observer_ = std::make_unique<Observer>(
            Observer::Watched{log_.config, mutex_, domain_->domain(), none_, domain_->peers()});
    }
    // The lines since the last call have that part.
    bool logged(const char* part) { return log_.take().find(part) != std::string::npos; }
    Peer& peer(flow::PeerIndex index) { return (*domain_)[index]; }

    test::KeptLog log_;
    platform::OptionalMutex mutex_{false};
    const std::optional<Domain> none_;
    std::unique_ptr<test::LoneDomain> domain_;
    std::unique_ptr<Observer> observer_;
};

TEST_F(ObserverTest, a_stall_that_is_told_again_is_one) {
    watch("static");
    observer_->stalled(peer(0), 1 * kSecond);
    observer_->stalled(peer(0), 2 * kSecond);
    EXPECT_TRUE(observer_->looks());
    EXPECT_EQ(observer_->counts.stalls, 1U);
    observer_->resumed(peer(0), 4 * kSecond);
    observer_->resumed(peer(0), 9 * kSecond);
    EXPECT_FALSE(observer_->looks());
    EXPECT_EQ(peer(0).stall.total_ns, 3 * kSecond);
}

TEST_F(ObserverTest, a_warning_says_what_is_waited_for) {
    watch("static");
    observer_->stalled(peer(0), 1);
    observer_->look(1 + kSecond);
    EXPECT_EQ(log_.take(), "");
    observer_->look(1 + 2 * kSecond);
    EXPECT_TRUE(logged("for 2 s: 0 bytes wait for credits (0 credits left"));

    watch("none");
    observer_->stalled(peer(0), 1);
    observer_->look(1 + 2 * kSecond);
    EXPECT_TRUE(logged("wait for a free slot (no credits are counted"));

    watch("static");
    peer(1).link.open(std::make_unique<HoldingLink>());
    observer_->stalled(peer(1), 1);
    observer_->look(1 + 2 * kSecond);
    EXPECT_TRUE(logged("wait for the network"));
}

TEST_F(ObserverTest, the_end_of_a_stall_is_logged_if_there_was_a_warning) {
    watch("static");
    observer_->stalled(peer(0), 1);
    observer_->resumed(peer(0), 1 + kSecond);
    EXPECT_EQ(log_.take(), "");
    observer_->stalled(peer(0), 1);
    observer_->look(1 + 3 * kSecond);
    log_.take();
    observer_->resumed(peer(0), 1 + 5 * kSecond);
    EXPECT_TRUE(logged("were sent after 5 s"));
}

TEST_F(ObserverTest, its_state_is_that_of_one_peer_or_of_all) {
    watch("static");
    observer_->describe("an engine");
    observer_->dump(&peer(1), 7);
    const std::string one = log_.take();
    EXPECT_TRUE(one.starts_with("7 an engine\n7 peer 1: credits 0, queued 0 bytes;")) << one;
    EXPECT_EQ(one.find("peer 2"), std::string::npos);
    observer_->dump(nullptr, 7);
    EXPECT_TRUE(logged("peer 2"));
}

}  // namespace
}  // namespace velo::engine
