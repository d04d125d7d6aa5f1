// What is kept of the questions of probes, and what of them is forgotten when.
#include "messaging/peeks.h"

#include <gtest/gtest.h>

namespace velo::messaging {
namespace {

using State = Peek::State;

matching::Key key_of(std::int32_t tag) {
    return {1, 2, tag};
}

// With as many questions as there may be, all in that state.
Peeks full(State state) {
    Peeks peeks;
    for (std::size_t tag = 0; tag < Peeks::kMost; ++tag)
        peeks.of(key_of(static_cast<std::int32_t>(tag)))->state = state;
    return peeks;
}

std::size_t known_of(Peeks& peeks) {
    std::size_t known = 0;
    for (std::size_t tag = 0; tag <= Peeks::kMost; ++tag)
        known += peeks.find(key_of(static_cast<std::int32_t>(tag))) != nullptr;
    return known;
}

TEST(PeeksTest, a_pattern_has_one_question) {
    Peeks peeks;
    EXPECT_EQ(peeks.find(key_of(3)), nullptr);
    peeks.of(key_of(3))->state = State::kAsked;
    EXPECT_EQ(peeks.of(key_of(3))->state, State::kAsked);
    EXPECT_EQ(peeks.of(key_of(4))->state, State::kNothing);
}

TEST(PeeksTest, of_too_many_one_that_is_answered_goes_and_none_that_is_waited_for) {
    for (State answered : {State::kNothing, State::kSeen}) {
        Peeks peeks = full(answered);
        EXPECT_NE(peeks.of(key_of(Peeks::kMost)), nullptr);
        EXPECT_EQ(known_of(peeks), Peeks::kMost);
    }
    for (State waited_for : {State::kAsked, State::kTaking, State::kTaken}) {
        Peeks peeks = full(waited_for);
        EXPECT_EQ(peeks.of(key_of(Peeks::kMost)), nullptr);
        peeks.find(key_of(7))->state = State::kSeen;
        EXPECT_NE(peeks.of(key_of(Peeks::kMost)), nullptr);
        EXPECT_EQ(peeks.find(key_of(7)), nullptr);
    }
}

TEST(PeeksTest, whatever_the_order_of_probes_each_keeps_a_chance) {
    Peeks peeks = full(State::kSeen);
    for (int more = 0; more < 1000; ++more)
        peeks.of(key_of(static_cast<std::int32_t>(Peeks::kMost) + more))->state = State::kSeen;
    std::size_t late = 0;
    for (int more = 900; more < 1000; ++more)
        late += peeks.find(key_of(static_cast<std::int32_t>(Peeks::kMost) + more)) != nullptr;
    EXPECT_GT(late, 10U);
    EXPECT_LT(late, Peeks::kMost) << "not simply the latest ones";
}

TEST(PeeksTest, a_message_that_has_left_is_seen_no_more) {
    Peeks peeks;
    for (std::int32_t tag : {1, 2, 3})
        *peeks.of(key_of(tag)) = {key_of(tag), State::kSeen, {}, 10, 5, nullptr};
    peeks.find(key_of(2))->id = 6;
    peeks.find(key_of(3))->state = State::kTaking;
    peeks.forget(5);
    EXPECT_EQ(peeks.find(key_of(1)), nullptr);
    EXPECT_NE(peeks.find(key_of(2)), nullptr);
    EXPECT_NE(peeks.find(key_of(3)), nullptr) << "it is answered in any case";
}

TEST(PeeksTest, what_is_being_taken_outlives_the_holding_and_ends_with_the_peer) {
    Peeks peeks;
    peeks.of(key_of(1))->state = State::kSeen;
    peeks.of(key_of(2))->state = State::kTaking;
    peeks.stop();
    EXPECT_EQ(peeks.find(key_of(1)), nullptr);
    EXPECT_EQ(peeks.find(key_of(2))->state, State::kTaking);
    peeks.depart();
    ASSERT_EQ(peeks.find(key_of(2))->state, State::kTaken);
    EXPECT_EQ(peeks.end(peeks.find(key_of(2))), nullptr);
    EXPECT_TRUE(peeks.empty());
}

}  // namespace
}  // namespace velo::messaging
