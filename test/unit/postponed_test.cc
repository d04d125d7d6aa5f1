// Gets one behind the other outside of progress: the first one copies at once, the others when the process
// polls.
#include "engine/large/postponed.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "engine_party.h"

namespace velo::test {
namespace {

class PostponedTest : public ::testing::Test {
 protected:
    static constexpr std::size_t kBytes = 16384, kGets = 4;

    // From the memory of the second, which is the same process.
    velo_status get(std::size_t number) {
        return velo_get_deposited(
            party_[0].engine, party_[0].peers[1], 0, targets_[number].data(),
            reinterpret_cast<std::uint64_t>(source_.data()), kBytes,
            [](void* ended, velo_status status, std::uint64_t) {
                static_cast<std::vector<velo_status>*>(ended)->push_back(status);
            },
            &ended_);
    }

    PostponedTest() { targets_.fill(std::string(kBytes, '\0')); }

    PartyConfig config_{.routes = "reference 512 staged 0 both never"};
    Party party_{config_};
    const std::string source_ = pattern(kBytes, 1);
    std::array<std::string, kGets> targets_;
    std::vector<velo_status> ended_;
};

TEST_F(PostponedTest, the_first_copies_at_once_and_those_behind_it_one_by_one_when_the_process_polls) {
    EXPECT_EQ(get(0), VELO_OK);
    ASSERT_EQ(ended_.size(), 1U);
    for (std::size_t i = 1; i < kGets; ++i) EXPECT_EQ(get(i), VELO_QUEUED);
    EXPECT_EQ(ended_.size(), 1U);
    for (std::size_t i = 1; i < kGets; ++i) {
        velo_progress(party_[0].engine);
        ASSERT_EQ(ended_.size(), 1 + i);
        EXPECT_EQ(ended_.back(), VELO_OK);
        EXPECT_EQ(targets_[i], source_);
    }
}

TEST_F(PostponedTest, after_a_poll_the_next_is_a_first_one_again) {
    EXPECT_EQ(get(0), VELO_OK);
    velo_progress(party_[0].engine);
    EXPECT_EQ(get(1), VELO_OK);
    EXPECT_EQ(ended_.size(), 2U);
}

TEST_F(PostponedTest, in_a_callback_of_a_poll_none_waits) {
    party_[0].on_message = [this](const Received&) {
        EXPECT_EQ(get(0), VELO_OK);
        EXPECT_EQ(get(1), VELO_OK);
    };
    party_.send(1, 0, 1, "a message");
    party_.settle();
    EXPECT_EQ(ended_.size(), 2U);
}

}  // namespace
}  // namespace velo::test
