// Boards: what no correct member writes is told.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <iterator>
#include <random>
#include <string>

#include "../shared/temporary_directory.h"
#include "board_room.h"
#include "collectives/board/store.h"
#include "platform/failure.h"

namespace velo::board {
namespace {

// What the other one finds: a text. `status` VELO_OK: of some failure.
std::string failure_of(const std::function<void()>& action, velo_status status = VELO_ERR_PROTOCOL) {
    try {
        action();
    } catch (const Failure& failure) {
        if (status != VELO_OK) EXPECT_EQ(failure.status(), status);
        return failure.what();
    }
    return "nothing";
}

TEST(BoardLiesTest, another_number_of_bytes_is_told) {
    Room room({2, 8, 8, 64});
    std::uint64_t value[2] = {};
    room.member(0)->bcast(0, reinterpret_cast<std::byte*>(value), 16);
    auto reader = room.member(1);
    const std::string text =
        failure_of([&] { reader->bcast(0, reinterpret_cast<std::byte*>(value), 8); }, VELO_ERR_MISMATCH);
    EXPECT_NE(text.find("rank 0 has 16 bytes where this rank has 8"), std::string::npos) << text;
}

TEST(BoardLiesTest, who_waits_for_a_member_that_has_ended_fails_and_so_do_those_who_wait_for_him) {
    Room room({3, 8, 8, 64});
    room.has_ended = [](void*, std::uint32_t member) { return member == 0; };
    std::uint64_t value = 0;
    const auto wait = [&](std::uint32_t me) {
        return failure_of([&] { room.member(me)->bcast(0, reinterpret_cast<std::byte*>(&value), 8); },
                          VELO_ERR_REMOTE);
    };
    EXPECT_EQ(wait(1), "the board of board 1, run 0: rank 0 has ended, as one that is killed");
    EXPECT_EQ(wait(2),
              "the board of board 2, run 0: rank 1 has found an error in run 0, and a line of it says which");
}

TEST(BoardLiesTest, an_address_that_cannot_be_read_or_that_nobody_has_asked_for_is_told) {
    constexpr std::uint32_t kBytes = Direct::kLeast;
    const auto told = [](bool has_tried, std::uint64_t bytes_given, velo_status status) {
        Room room({2, 8, 8, kBytes});
        room.choose({"cma", kBytes});
        auto giver = room.member(0), reader = room.member(1);
        Words block(kBytes / 4);
        std::uint32_t run = 0;
        if (has_tried) {
            giver->bcast(0, bytes(block), kBytes);
            reader->bcast(0, bytes(block), kBytes);
            run = 1;
        }
        const Whole nowhere{64, bytes_given};
        std::memcpy(room.line(0, run).payload, &nowhere, sizeof nowhere);
        room.line(0, run).word.store(word_of_bcast(run, kBytes));
        return failure_of([&] { reader->bcast(0, bytes(block), kBytes); }, status);
    };
    const auto holds = [](const std::string& text, const char* what) {
        EXPECT_NE(text.find(what), std::string::npos) << text;
    };
    const std::string unreadable = told(true, kBytes, VELO_ERR_RESOURCE);
    holds(unreadable, "the block of rank 0 cannot be read out of its memory (Bad address)");
    holds(unreadable, "btl_velo_single_copy_mechanism copy");
    holds(told(false, kBytes, VELO_ERR_PROTOCOL), "the line of rank 0 has an address that nobody asked for");
    holds(told(true, 2 * kBytes, VELO_ERR_MISMATCH), "rank 0 has 32768 bytes where this rank has 16384");
}

// Two operations that publish as much. What each of two members finds; of one that need not wait nothing.
struct Disagreement {
    std::function<void(Member&, std::byte*)> first, second;
    std::string at_first, at_second;
};

TEST(BoardLiesTest, another_operation_of_the_same_size_is_told_with_both) {
    constexpr Reduction kMost{goal::Operator::kMax, goal::Type::kUint, 32};
    const auto bcast = [](std::uint32_t root) {
        return [root](Member& member, std::byte* data) { member.bcast(root, data, 8); };
    };
    const auto reduce = [](std::uint32_t root) {
        return [root](Member& member, std::byte* data) { member.reduce(kSum, root, data, data + 8, 8); };
    };
    const auto allreduce = [](const Reduction& by) {
        return [by](Member& member, std::byte* data) { member.allreduce(by, data, data + 8, 8); };
    };
    const auto allgather = [](Member& member, std::byte* data) { member.allgather(data, data + 8, 8); };
    const auto alltoall = [](Member& member, std::byte* data) { member.alltoall(data, data + 16, 8); };
    const auto barrier = [](Member& member, std::byte*) { member.barrier(); };
    const auto twice = [](Member& member, std::byte* data) {
        for (int i = 0; i < 2; ++i) member.bcast(0, data, 8);
    };
    const Disagreement all[] = {
        // Each waits for the other.
        {reduce(0), bcast(0), "this rank is in reduce (add) of root 0, and rank 1 in bcast of root 0",
         "this rank is in bcast of root 0, and rank 0 in reduce (add) of root 0"},
        {bcast(1), bcast(0), "this rank is in bcast of root 1, and rank 1 in bcast of root 0",
         "this rank is in bcast of root 0, and rank 0 in bcast of root 1"},
        // Each gives to the other.
        {allreduce(kSum), allreduce(kMost), "this rank is in allreduce (add), and rank 1 in allreduce (max)",
         "this rank is in allreduce (max), and rank 0 in allreduce (add)"},
        {allgather, alltoall, "this rank is in allgather, and rank 1 in alltoall",
         "this rank is in alltoall, and rank 0 in allgather"},
        // One need not wait, and has gone on, or not; with and without a word where the other looks.
        {bcast(0), reduce(1), "nothing",
         "this rank is in reduce (add) of root 1, and rank 0 in bcast of root 0"},
        {bcast(0), barrier, "nothing", "this rank is in barrier, and rank 0 in bcast of root 0"},
        {twice, reduce(1), "nothing", "this rank is in reduce (add) of root 1, and rank 0 in bcast."},
        {twice, barrier, "nothing", "this rank is in barrier, and rank 0 in another operation before"},
    };
    for (const Disagreement& one : all) {
        Room room({2, 8, 8, 64});
        std::string found[2];
        const auto call = [&](Member& member, std::uint32_t me) {
            std::byte data[64] = {};
            found[me] = failure_of([&] { (me == 0 ? one.first : one.second)(member, data); });
        };
        if (one.at_first == "nothing")
            for (const std::uint32_t me : {0U, 1U}) call(*room.member(me), me);
        else
            room.all(call);
        EXPECT_NE(found[0].find(one.at_first), std::string::npos) << found[0];
        EXPECT_NE(found[1].find(one.at_second), std::string::npos) << found[1];
    }
}

TEST(BoardLiesTest, who_waits_for_a_member_that_has_found_an_error_does_not_wait_for_ever) {
    Room room({3, 8, 8, 64});
    std::string found[3];
    room.all([&](Member& member, std::uint32_t me) {
        std::byte data[16] = {};
        found[me] = failure_of(
            [&] {
                me == 2 ? member.reduce(kSum, 2, data, data + 8, 8) : member.bcast(1, data, 8);
                member.barrier();
            },
            VELO_OK);
    });
    EXPECT_NE(found[2].find("run 0: this rank is in reduce (add) of root 2, and rank "), std::string::npos)
        << found[2];
    EXPECT_NE(found[0], "nothing");
    EXPECT_NE(found[1].find("run 1: rank "), std::string::npos) << found[1];
    EXPECT_NE(found[1].find(" has found an error in run "), std::string::npos) << found[1];
}

TEST(BoardLiesTest, a_signature_that_nobody_has_is_put_into_words) {
    for (std::uint32_t signature = 0; signature < 1U << Signature::kBits; ++signature)
        EXPECT_NE(describe(signature), "");
}

TEST(BoardLiesTest, an_impossible_word_is_told) {
    for (const std::uint64_t wrong : {~std::uint64_t{0}, word_of_bcast(3, 8), word_of_bcast(8, 8),
                                      word_of_bcast(0, 8) - 1, std::uint64_t{2}}) {
        Room room({2, 8, 8, 64});
        room.line(0, 0).word.store(wrong);
        auto reader = room.member(1);
        std::uint64_t value = 0;
        const std::string text =
            failure_of([&] { reader->bcast(0, reinterpret_cast<std::byte*>(&value), 8); });
        EXPECT_NE(text.find("an impossible word in the line of rank 0"), std::string::npos) << wrong << text;
    }
}

TEST(BoardLiesTest, an_impossible_position_is_told) {
    Room room({2, 2, 2, 64}, 10);
    auto root = room.member(0);
    std::uint64_t value = 0;
    for (int i = 0; i < 2; ++i) root->bcast(0, reinterpret_cast<std::byte*>(&value), 8);
    for (const std::uint64_t wrong :
         {std::uint64_t{9}, std::uint64_t{15} + Board::kMostSilent, ~std::uint64_t{0}}) {
        room.progress(1).finished.store(wrong);
        const std::string text = failure_of([&] { root->bcast(0, reinterpret_cast<std::byte*>(&value), 8); });
        EXPECT_NE(text.find("an impossible position of rank 1"), std::string::npos) << wrong << text;
    }
}

TEST(BoardLiesTest, a_board_of_another_shape_or_layout_is_refused) {
    Room room({2, 8, 8, 64});
    const BoardContext around{[](void*) {}, [](void*, int, const char*) {}, nullptr, nullptr, "b", 0, false};
    EXPECT_THROW(Member(room.memory(), (Shape{2, 4, 4, 64}), 0, around), Failure);
    EXPECT_THROW(Member(room.memory(), (Shape{2, 8, 8, 64}), 2, around), Failure);
    EXPECT_THROW(Member(room.memory(), (Shape{2, 8, 8, 63}), 0, around), Failure);
    EXPECT_THROW(Member(room.memory(), (Shape{2, 8, 9, 64}), 0, around), Failure);
    EXPECT_THROW(Member(room.memory().first(1000), (Shape{2, 8, 8, 64}), 0, around), Failure);
    std::memset(room.memory().data(), 1, 8);
    EXPECT_THROW(Member(room.memory(), (Shape{2, 8, 8, 64}), 0, around), Failure);
}

// A store with a board in use and two that rest, as it lies before who writes where it must not.
struct Overwritten {
    static constexpr Shape kShape{2, 8, 8, 64}, kOther{2, 8, 8, 128};
    static constexpr std::size_t kPlacesAt = 4096;

    Overwritten() {
        const Store::Taken first = store.take({1, 0}, kShape);
        memory = first.memory.data() - place(0).offset;
        boards = first.memory.data();
        for (std::uint64_t number = 1; number < 3; ++number) {
            const std::uint32_t taken = store.take({1, number}, number == 1 ? kShape : kOther).place;
            for (int member = 0; member < 2; ++member) store.leave(taken);
        }
    }
    StoreHeader& header() { return *reinterpret_cast<StoreHeader*>(file.data()); }
    Place& place(std::uint32_t index) { return reinterpret_cast<Place*>(file.data() + kPlacesAt)[index]; }
    std::uint64_t& word(std::size_t at) { return *reinterpret_cast<std::uint64_t*>(file.data() + at); }
    // Takes and leaves boards that are there, that rest, and new ones. What is refused is thrown.
    void use() {
        for (const std::uint64_t number : {1, 2, 3, 4, 5, 0}) {
            const Store::Taken taken = store.take({1, number}, number % 3 == 2 ? kOther : kShape);
            if (taken.memory.empty()) continue;
            EXPECT_GE(taken.memory.data(), boards);
            EXPECT_LE(taken.memory.data() + taken.memory.size(), memory + file.bytes());
            (void)view(taken.memory.data(), taken.memory.size(), number % 3 == 2 ? kOther : kShape, 0);
            for (int member = 0; member < 2; ++member) store.leave(taken.place);
        }
    }

    test::TemporaryDirectory directory;
    Store store = Store::create(directory.path(), 4, kShape);
    platform::SharedFile file = platform::SharedFile::open(store.address(), 0);
    std::byte *memory = nullptr, *boards = nullptr;
};

TEST(BoardLiesTest, a_place_of_a_board_outside_of_the_boards_is_told_and_nothing_is_written_there) {
    const std::uint64_t bytes = Overwritten().place(1).bytes;
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{4096}, bytes + 1,
                                       std::uint64_t{1} << 40, ~std::uint64_t{0} - bytes + 1}) {
        Overwritten found;
        found.place(1).offset = offset;
        const std::string text = failure_of([&] { found.use(); });
        EXPECT_NE(text.find("a place of a board"), std::string::npos) << offset << text;
        EXPECT_EQ(found.header().magic, StoreHeader::kMagic);
        EXPECT_EQ(found.place(1).offset, offset);
    }
    Overwritten short_of_one;
    short_of_one.place(1).bytes = 64;
    EXPECT_NE(failure_of([&] { short_of_one.use(); }).find("a place of a board"), std::string::npos);
    Overwritten endless;
    endless.header().end = ~std::uint64_t{0} - 4095;
    EXPECT_NE(failure_of([&] { endless.use(); }).find("an end"), std::string::npos);
}

// All words but the lock, which nobody would give back.
TEST(BoardLiesTest, whatever_one_word_of_a_store_is_nothing_is_written_outside_of_the_boards) {
    constexpr std::size_t kFirst = offsetof(StoreHeader, taken), kOfPlaces = 3 * sizeof(Place);
    static_assert(kFirst % 8 == 0 && sizeof(StoreHeader) - kFirst > 16);
    std::mt19937_64 random(1);
    std::uint32_t refused = 0;
    for (int round = 0; round < 500; ++round) {
        Overwritten found;
        const std::size_t which = random() % (2 + kOfPlaces / 8);
        std::uint64_t& word =
            found.word(which < 2 ? kFirst + 8 * which : Overwritten::kPlacesAt + 8 * (which - 2));
        const std::uint64_t values[] = {0,        ~std::uint64_t{0},
                                        word + 1, word ^ std::uint64_t{1} << random() % 64,
                                        random(), random() % 8 * 4096};
        word = values[random() % std::size(values)];
        try {
            found.use();
        } catch (const Failure&) {
            ++refused;
        }
        EXPECT_EQ(found.header().magic, StoreHeader::kMagic);
    }
    EXPECT_GT(refused, 100U);
}

}  // namespace
}  // namespace velo::board
