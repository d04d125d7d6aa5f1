// Runs of a board whose members share one thread: nothing there waits.
#include <gtest/gtest.h>

#include <cstring>

#include "board_room.h"
#include "collectives/board/backed_places.h"
#include "collectives/board/runs.h"

namespace velo::board {
namespace {

class BoardRunsTest : public testing::Test {
 protected:
    static constexpr std::uint32_t kChunk = 256;
    Runs runs(std::uint32_t me) {
        return {room_.memory(), room_.shape(), me,
                BoardContext{[](void*) {}, [](void*, int, const char*) {}, nullptr, nullptr,
                             "board " + std::to_string(me), 0, true, nullptr}};
    }
    static Step bcast(std::uint32_t me, const std::byte* data, std::uint64_t bytes) {
        Step step;
        step.signature = Signature::of(VELO_BOARD_BCAST, {}, 0);
        step.gives = me == 0;
        step.data = data;
        step.bytes = bytes;
        step.end = me == 0 ? 0 : 1;
        return step;
    }

    Room room_{{3, 2, 2, kChunk}};
};

TEST_F(BoardRunsTest, a_reader_has_what_has_been_given_without_waiting) {
    Runs giver = runs(0), reader = runs(1);
    Words given(2 * kChunk / 4, 7), taken(given.size(), 0);
    const Step give = bcast(0, bytes(given), 2 * kChunk), take = bcast(1, nullptr, 2 * kChunk);
    EXPECT_TRUE(reader.give(take)) << "it has nothing to give";
    EXPECT_FALSE(reader.has_all(take));
    for (std::uint32_t run = 0; run < 2; ++run) {
        ASSERT_TRUE(giver.give(give));
        ASSERT_TRUE(giver.has_all(give));
        giver.board().finish();
        EXPECT_EQ(giver.is_over(give), run == 1);
        ASSERT_TRUE(reader.has_all(take));
        reader.cut(2 * kChunk, kChunk, [&](std::uint64_t offset, std::uint32_t part) {
            EXPECT_EQ(offset, run * kChunk);
            std::memcpy(bytes(taken) + offset, reader.pick_up(0, part), part);
        });
        reader.board().finish();
        EXPECT_EQ(reader.is_over(take), run == 1);
        if (run == 0) EXPECT_TRUE(reader.give(take));
    }
    EXPECT_EQ(taken, given);
    EXPECT_EQ(giver.counts().counted().published, 2U);
    EXPECT_EQ(reader.counts().counted().picked_up, 2U);
    EXPECT_EQ(reader.counts().counted().requests, 1U) << "one operation";
}

TEST_F(BoardRunsTest, who_is_ahead_of_its_readers_has_to_wait_for_the_slowest) {
    Runs giver = runs(0);
    Words given(kChunk / 4, 7);
    const Step step = bcast(0, bytes(given), kChunk);
    int operations = 0;
    for (; operations < 100 && giver.give(step); ++operations) {
        giver.board().finish();
        EXPECT_TRUE(giver.is_over(step));
    }
    EXPECT_LT(operations, 100);
    EXPECT_FALSE(giver.give(step));
    EXPECT_EQ(giver.counts().counted().credit_waits, 1U) << "of that operation";
    EXPECT_NE(giver.slowest().member, 0U);
    EXPECT_NO_THROW(giver.check(step));
}

TEST_F(BoardRunsTest, what_all_members_count_is_summed_beyond_their_end) {
    const Totals before = totals();
    {
        Runs giver = runs(0);
        std::uint64_t word = 7;
        giver.board().begin(Signature::of(VELO_BOARD_BCAST, {}, 0));
        giver.publish(reinterpret_cast<const std::byte*>(&word), sizeof word);
        EXPECT_EQ(totals().published, before.published + 1);
    }
    EXPECT_EQ(totals().published, before.published + 1);
    EXPECT_EQ(totals().boards, before.boards + 1);
}

TEST_F(BoardRunsTest, blocks_for_all_others_share_a_chunk) {
    Runs member = runs(0);
    const Parts one(member.board(), Contribution::kOne), blocks(member.board(), Contribution::kBlocks),
        spread(member.board(), Contribution::kSpread);
    EXPECT_EQ(one.most, kChunk);
    EXPECT_EQ(spread.most, kChunk);
    EXPECT_LE(2 * blocks.most, kChunk);
    EXPECT_EQ(blocks.most % Shape::kLeastPart, 0U);
    EXPECT_EQ(blocks.published(8), 16U);
    EXPECT_EQ(spread.published(8), 8U);
    EXPECT_EQ(one.of_run(kChunk + 3, 1), 3U);
}

TEST_F(BoardRunsTest, all_places_of_a_board_without_a_store_have_memory) {
    Runs member = runs(0);
    BackedPlaces places(member.board(), nullptr);
    EXPECT_TRUE(places.provide({100 * kChunk, Writers::kAllAndResult}));
}

}  // namespace
}  // namespace velo::board
