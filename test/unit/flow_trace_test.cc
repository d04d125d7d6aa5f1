// A trace as that of thesis section 6.7 (Figure 6.4), through the production policy: two credit slots, an
// intended quota of 10, then 7 and 4, which two further senders bring about. The lots of the figure add up to
// more than quotas of 10, 7 and 4 allow; those of the policy do not (design/flow-control.md, A19).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "flow_testing.h"

namespace velo::flow {
namespace {

using SentList = std::vector<Sent>;

class Section67 : public ::testing::Test {
 protected:
    static constexpr PeerIndex kSender = 0;  // even share 10; the two others 9 each

    // Thresholds | intended retrieved piggybacked current.
    std::string state() const {
        std::string text = std::to_string(policy_.threshold(kSender, 0)) + "," +
                           std::to_string(policy_.threshold(kSender, 1)) + "," +
                           std::to_string(policy_.threshold(kSender, 2)) + "|";
        return text + std::to_string(policy_.intended(kSender)) + " " +
               std::to_string(policy_.peer(kSender).retrieved) + " " +
               std::to_string(policy_.piggybacked(kSender)) + " " +
               std::to_string(policy_.peer(kSender).current);
    }
    void SetUp() override {
        for (PeerIndex q = 0; q < 3; ++q) policy_.open_window(q, 100);
    }
    SentList retrieve(std::uint32_t count) {
        retrieve_data(policy_, kSender, count, out_);
        return out_.take();
    }
    std::uint32_t send() {
        const std::uint32_t credits = policy_.piggyback(kSender, out_);
        EXPECT_EQ(out_.take(), SentList{});
        EXPECT_EQ(policy_.violation(), "");
        return credits;
    }
    // One packet of sender 1 or 2 for each digit.
    void others_retrieved(const std::string& digits) {
        for (char digit : digits) retrieve_data(policy_, static_cast<PeerIndex>(digit - '0'), 1, out_);
        out_.take();
    }

    DynamicPolicy policy_{config_of(3, 28, 2)};
    Recorder out_;
};

TEST_F(Section67, ShowsEachOfItsAdjustments) {
    ASSERT_EQ(state(), "1,1,1|10 0 0 2");

    // Regular. The third lot is one less than T(10): the three add up to 11.
    EXPECT_EQ(retrieve(1), SentList{credit(kSender, 4)});
    EXPECT_EQ(state(), "1,1,4|10 0 0 5");
    EXPECT_EQ(retrieve(1), SentList{credit(kSender, 4)});
    EXPECT_EQ(state(), "1,4,4|10 0 0 8");
    EXPECT_EQ(retrieve(1), SentList{credit(kSender, 3)});
    EXPECT_EQ(state(), "4,4,3|10 0 0 10");

    // Regular, after the intended quota went down.
    others_retrieved("111112111112211111112111111212");
    ASSERT_EQ(policy_.intended(kSender), 7U);
    EXPECT_EQ(retrieve(4), SentList{credit(kSender, 2)});
    EXPECT_EQ(state(), "4,3,2|7 0 0 8");

    // Piggybacked, first below the threshold, then with an adjustment by deficit.
    EXPECT_EQ(retrieve(1), SentList{});
    EXPECT_EQ(send(), 1U);
    EXPECT_EQ(state(), "4,3,2|7 0 1 8");
    EXPECT_EQ(retrieve(3), SentList{});
    EXPECT_EQ(send(), 2U);
    EXPECT_EQ(state(), "3,2,3|7 0 0 7");

    // Piggybacked, with an adjustment by excess: two have left early of a lot of one.
    others_retrieved("11121221121212221221");
    ASSERT_EQ(policy_.intended(kSender), 4U);
    for (const char* after : {"3,2,3|4 0 1 7", "3,2,3|4 0 2 7"}) {
        EXPECT_EQ(retrieve(1), SentList{});
        EXPECT_EQ(send(), 1U);
        EXPECT_EQ(state(), after);
    }
    EXPECT_EQ(retrieve(1), SentList{});
    EXPECT_EQ(send(), 0U);
    EXPECT_EQ(state(), "3,3,1|4 0 0 6");

    // Regular, down to the quota.
    EXPECT_EQ(retrieve(3), SentList{credit(kSender, 1)});
    EXPECT_EQ(state(), "3,1,1|4 0 0 4");
    EXPECT_EQ(retrieve(3), SentList{credit(kSender, 2)});
    EXPECT_EQ(state(), "1,1,2|4 0 0 3");
}

}  // namespace
}  // namespace velo::flow
