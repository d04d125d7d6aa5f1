// Who waits for a late leader too often joins the group, and leaves it when the leader has long been in time.
#include "collectives/multicast/attachment.h"

#include <gtest/gtest.h>

namespace velo::multicast {
namespace {

using Change = Attachment::Change;
constexpr std::uint64_t kLimit = 800'000;

// One run, for which the leader is so late.
Change run(Attachment& attachment, std::uint64_t start_ns, std::uint64_t late_ns) {
    EXPECT_TRUE(attachment.entered(start_ns));
    Change change = Change::kNone;
    if (attachment.deadline() <= start_ns + late_ns) change = attachment.tick(attachment.deadline());
    const Change then = attachment.led(start_ns + late_ns);
    return change != Change::kNone ? change : then;
}

TEST(Attachment, a_process_joins_while_it_waits_for_the_fourth_late_run) {
    Attachment attachment({});
    for (unsigned late = 0; late < 3; ++late)
        EXPECT_EQ(run(attachment, 10'000'000ULL * late, kLimit), Change::kNone);
    EXPECT_TRUE(attachment.entered(50'000'000));
    EXPECT_EQ(attachment.deadline(), 50'000'000 + kLimit);
    EXPECT_EQ(attachment.tick(50'000'000 + kLimit - 1), Change::kNone);
    EXPECT_EQ(attachment.tick(50'000'000 + kLimit), Change::kJoin);
    EXPECT_TRUE(attachment.attached());
    EXPECT_EQ(attachment.deadline(), kNever);
    EXPECT_EQ(attachment.tick(90'000'000), Change::kNone) << "a run is late once";
    EXPECT_EQ(attachment.led(90'000'000), Change::kNone);
    EXPECT_EQ(attachment.late(), 4U);
}

TEST(Attachment, less_than_the_limit_is_not_late) {
    Attachment attachment({});
    for (unsigned i = 0; i < 5000; ++i)
        EXPECT_EQ(run(attachment, 1'000'000ULL * i, kLimit - 1), Change::kNone);
    EXPECT_EQ(attachment.late(), 0U);
}

TEST(Attachment, runs_in_time_make_up_for_late_ones_only_all_together) {
    Attachment attachment({.detach_after = 10});
    for (unsigned i = 0; i < 50; ++i)
        EXPECT_EQ(run(attachment, 1'000'000ULL * i, i % 11 == 0 ? kLimit : 0), Change::kNone);
    EXPECT_EQ(attachment.late(), 5U);
    Attachment another({.detach_after = 10});
    for (unsigned i = 0; i < 28; ++i) run(another, 1'000'000ULL * i, i % 9 == 0 ? kLimit : 0);
    EXPECT_TRUE(another.attached());
}

TEST(Attachment, a_process_leaves_slowly_and_a_late_run_begins_the_count_anew) {
    Attachment attachment({.detach_after = 10});
    for (unsigned i = 0; i < 4; ++i) run(attachment, 10'000'000ULL * i, kLimit);
    ASSERT_TRUE(attachment.attached());
    std::uint64_t now = 100'000'000;
    for (unsigned i = 0; i < 9; ++i) EXPECT_EQ(run(attachment, now += 1'000'000, 0), Change::kNone);
    EXPECT_EQ(run(attachment, now += 1'000'000, kLimit), Change::kNone);
    for (unsigned i = 0; i < 9; ++i) EXPECT_EQ(run(attachment, now += 1'000'000, 0), Change::kNone);
    EXPECT_EQ(run(attachment, now += 1'000'000, 0), Change::kLeave);
    EXPECT_FALSE(attachment.attached());
    EXPECT_EQ(attachment.joins(), 1U);
    EXPECT_EQ(attachment.leaves(), 1U);
    // From the beginning.
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(run(attachment, now += 10'000'000, kLimit), Change::kNone);
    EXPECT_EQ(run(attachment, now += 10'000'000, kLimit), Change::kJoin);
}

TEST(Attachment, static_never_joins) {
    Attachment attachment({.dynamic = false});
    for (unsigned i = 0; i < 100; ++i)
        EXPECT_EQ(run(attachment, 10'000'000ULL * i, 5'000'000), Change::kNone);
    EXPECT_EQ(attachment.late(), 100U);
    EXPECT_EQ(attachment.joins(), 0U);
}

TEST(Attachment, an_attached_process_goes_ahead_of_its_leader_by_a_window_at_most) {
    Attachment attachment({.window = 4});
    for (unsigned i = 0; i < 4; ++i) EXPECT_TRUE(attachment.entered(i));
    EXPECT_FALSE(attachment.entered(4));
    EXPECT_EQ(attachment.tick(kLimit + 3), Change::kJoin) << "all four are late";
    attachment.led(kLimit + 5);
    EXPECT_TRUE(attachment.entered(kLimit + 6));
    EXPECT_EQ(attachment.deadline(), kLimit + 6 + kLimit);
}

TEST(Attachment, a_leader_that_comes_first_is_in_time) {
    Attachment attachment({});
    for (unsigned i = 0; i < 20; ++i) attachment.led(0);
    for (unsigned i = 0; i < 20; ++i) EXPECT_TRUE(attachment.entered(1'000'000'000));
    EXPECT_EQ(attachment.deadline(), kNever);
    EXPECT_EQ(attachment.late(), 0U);
}

}  // namespace
}  // namespace velo::multicast
