// The partial trace of thesis section 6.7 (Figure 6.4), through the production policy: two credit slots, an
// intended quota of 10. The events of two further senders, which the thesis does not list, bring the number
// of available slots and the intended quota to where the trace has them.
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

TEST_F(Section67, IsReproducedEventByEvent) {
    ASSERT_EQ(state(), "1,1,1|10 0 0 2");

    // Block 1: regular.
    EXPECT_EQ(retrieve(1), SentList{credit(kSender, 4)});
    EXPECT_EQ(state(), "1,1,4|10 0 0 5");

    // Block 2: regular, with 2 slots available. The threshold is the grant: 2, not 4.
    others_retrieved("122211");
    ASSERT_EQ(policy_.available(), 1U);
    EXPECT_EQ(retrieve(1), SentList{credit(kSender, 2)});
    EXPECT_EQ(state(), "1,4,2|10 0 0 6");

    // Block 3: regular.
    others_retrieved("111");
    EXPECT_EQ(retrieve(1), SentList{credit(kSender, 4)});
    EXPECT_EQ(state(), "4,2,4|10 0 0 9");

    // Block 4: regular, after the intended quota went down.
    others_retrieved("12111221122122212221121122212222212");
    ASSERT_EQ(policy_.intended(kSender), 7U);
    EXPECT_EQ(retrieve(4), SentList{credit(kSender, 3)});
    EXPECT_EQ(state(), "2,4,3|7 0 0 8");

    // Block 5: piggybacked, first below the threshold, then with an adjustment by deficit.
    EXPECT_EQ(retrieve(1), SentList{});
    EXPECT_EQ(send(), 1U);
    EXPECT_EQ(state(), "2,4,3|7 0 1 8");
    others_retrieved("2121122212222");
    ASSERT_EQ(policy_.intended(kSender), 4U);
    EXPECT_EQ(retrieve(1), SentList{});
    EXPECT_EQ(send(), 1U);
    EXPECT_EQ(state(), "4,3,2|4 0 0 8");

    // Block 6: piggybacked, with an adjustment by excess.
    EXPECT_EQ(retrieve(3), SentList{});
    EXPECT_EQ(send(), 3U);
    EXPECT_EQ(state(), "4,3,2|4 0 3 8");
    EXPECT_EQ(retrieve(1), SentList{});
    EXPECT_EQ(send(), 0U);
    EXPECT_EQ(state(), "4,2,2|4 0 0 7");

    // Block 7: regular, after a piggybacked credit.
    EXPECT_EQ(retrieve(1), SentList{});
    EXPECT_EQ(send(), 1U);
    EXPECT_EQ(state(), "4,2,2|4 0 1 7");
    EXPECT_EQ(retrieve(4), SentList{credit(kSender, 2)});
    EXPECT_EQ(state(), "2,2,2|4 0 0 5");

    // Block 8: regular.
    EXPECT_EQ(retrieve(2), SentList{credit(kSender, 2)});
    EXPECT_EQ(state(), "2,2,2|4 0 0 5");
}

}  // namespace
}  // namespace velo::flow
