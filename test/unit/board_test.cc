// Boards: every operation gives what its definition says, whatever the window, the chunks and the number of
// the run.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "board_room.h"

namespace velo::board {
namespace {

// One operation, chosen by the round, with `count` words a block.
void operate(Member& member, std::uint32_t me, std::uint32_t all, std::uint32_t round, std::uint32_t count) {
    const std::uint32_t root = round / 11 % all, size = 4 * count;
    const bool in_place = round / 3 % 2 == 1;
    const auto sum_of = [&](std::uint32_t begin, std::uint32_t end, std::uint32_t offset) {
        Words sum(count);
        for (std::uint32_t rank = begin; rank < end; ++rank)
            for (std::uint32_t i = 0; i < count; ++i) sum[i] += word(round, rank, offset + i);
        return sum;
    };
    const auto blocks_of = [&](const std::function<Words(std::uint32_t)>& block) {
        Words joined;
        for (std::uint32_t rank = 0; rank < all; ++rank) {
            const Words one = block(rank);
            joined.insert(joined.end(), one.begin(), one.end());
        }
        return joined;
    };
    Words one = words(round, me, count), many = words(round, me, count * all);
    Words to(count, 7), to_many(std::size_t{count} * all, 7);
    const std::byte* from = in_place ? nullptr : bytes(one);
    switch (round % 11) {
        case 0:
            return member.barrier();
        case 1:
            if (me == root) to = one;
            member.bcast(root, bytes(to), size);
            EXPECT_EQ(to, words(round, root, count));
            return;
        case 2:
            if (in_place) to = one;
            member.reduce(kSum, root, in_place && me == root ? nullptr : bytes(one), bytes(to), size);
            if (me == root) {
                EXPECT_EQ(to, sum_of(0, all, 0));
            }
            return;
        case 3:
            if (in_place) to = one;
            member.allreduce(kSum, from, bytes(to), size);
            EXPECT_EQ(to, sum_of(0, all, 0));
            return;
        case 4:
            if (in_place) to = one;
            member.scan(kSum, from, bytes(to), size);
            EXPECT_EQ(to, sum_of(0, me + 1, 0));
            return;
        case 5:
            if (in_place) to = one;
            member.exscan(kSum, from, bytes(to), size);
            if (me > 0) {
                EXPECT_EQ(to, sum_of(0, me, 0));
            }
            return;
        case 6:
            if (in_place) std::copy(one.begin(), one.end(), to_many.begin() + me * count);
            member.gather(root, in_place && me == root ? nullptr : bytes(one), bytes(to_many), size);
            if (me == root) {
                EXPECT_EQ(to_many, blocks_of([&](std::uint32_t rank) { return words(round, rank, count); }));
            }
            return;
        case 7:
            member.scatter(root, bytes(many), in_place && me == root ? nullptr : bytes(to), size);
            if (!in_place || me != root) {
                EXPECT_EQ(to, slice(words(round, root, count * all), me, count));
            }
            return;
        case 8:
            if (in_place) std::copy(one.begin(), one.end(), to_many.begin() + me * count);
            member.allgather(from, bytes(to_many), size);
            EXPECT_EQ(to_many, blocks_of([&](std::uint32_t rank) { return words(round, rank, count); }));
            return;
        case 9:
            if (in_place) to_many = many;
            member.alltoall(in_place ? nullptr : bytes(many), bytes(to_many), size);
            EXPECT_EQ(to_many, blocks_of([&](std::uint32_t rank) {
                          return slice(words(round, rank, count * all), me, count);
                      }));
            return;
        default:
            if (in_place) to_many = many;
            // Rank 0 gets nothing, and rank 1 what would be its.
            const std::uint32_t first = me == 1 ? 0 : me, blocks = all == 1  ? 1
                                                                   : me == 0 ? 0
                                                                   : me == 1 ? 2
                                                                             : 1;
            member.reduce_scatter(kSum, in_place ? nullptr : bytes(many), bytes(to_many),
                                  std::uint64_t{size} * all, first * size, (first + blocks) * size);
            for (std::uint32_t block = 0; block < blocks; ++block) {
                EXPECT_EQ(slice(to_many, block, count), sum_of(0, all, (first + block) * count));
            }
    }
}

struct Case {
    Shape shape;
    std::uint64_t first_run;
    Direct::Choice choice{};
};

class BoardTest : public testing::TestWithParam<Case> {};

TEST_P(BoardTest, every_operation_gives_what_its_definition_says_however_late_readers_are) {
    Room room(GetParam().shape, GetParam().first_run);
    room.choose(GetParam().choice);
    const std::uint32_t rounds = room.shape().members > 4 ? 66 : 132;
    room.all([&](Member& member, std::uint32_t me) {
        std::mt19937 random(me);
        // In a line, in a chunk, in several.
        const std::uint32_t whole = room.shape().chunk / 4;
        const std::uint32_t counts[] = {1, 14, 15, whole, whole + 3, 2 * whole + 1, 9 * whole + 2};
        for (std::uint32_t round = 0; round < rounds; ++round) {
            if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
            operate(member, me, room.shape().members, round, counts[round / 7 % 7]);
        }
    });
    EXPECT_EQ(room.said(), "");
}

constexpr std::uint64_t kBeforeWrap = Word::kRuns - 50;

INSTANTIATE_TEST_SUITE_P(shapes, BoardTest,
                         testing::Values(Case{{2, 8, 3, 4096}, 0}, Case{{2, 1, 1, 64}, 0},
                                         Case{{3, 40, 3, 4096}, 0}, Case{{9, 32, 2, 2048}, 7},
                                         Case{{3, 1, 1, 64}, kBeforeWrap}, Case{{3, 3, 2, 128}, kBeforeWrap},
                                         Case{{4, 8, 8, 1024}, 5}, Case{{9, 2, 2, 512}, 0},
                                         Case{{17, 8, 1, 1024}, kBeforeWrap}));
INSTANTIATE_TEST_SUITE_P(direct, BoardTest,
                         testing::Values(Case{{2, 8, 3, 4096}, 0, {"cma", Direct::kLeast}},
                                         Case{{3, 3, 2, 4096}, kBeforeWrap, {"cma", Direct::kLeast}},
                                         Case{{3, 8, 8, 4096}, 0, {"cma", 0}}));

// Blocks that are long enough to be read out of the memory of who gives them.
class BoardDirectTest : public testing::Test {
 protected:
    static constexpr std::uint32_t kMembers = 3, kCount = Direct::kLeast / 4, kBytes = 4 * kCount;
    static constexpr std::uint32_t kRounds = 77;  // of `operate`: all of them, with several roots

    static void operate_all(
        Room& room, const std::function<void(Member&, std::uint32_t)>& more = [](Member&, std::uint32_t) {}) {
        room.all([&](Member& member, std::uint32_t me) {
            for (std::uint32_t round = 0; round < kRounds; ++round)
                operate(member, me, kMembers, round, kCount);
            more(member, me);
        });
    }
    Room room{{kMembers, 8, 8, 4096}};
};

TEST_F(BoardDirectTest, blocks_are_read_from_their_giver_once_all_readers_have_tried_that) {
    room.choose({"cma", kBytes});
    const Totals before = totals();
    operate_all(room, [](Member& member, std::uint32_t me) {
        const Totals then = member.counted();
        Words mine = words(5, me, kCount), all(std::size_t{kMembers} * kCount);
        member.allgather(bytes(mine), bytes(all), kBytes);
        EXPECT_EQ(all, [] {
            Words joined;
            for (std::uint32_t rank = 0; rank < kMembers; ++rank)
                for (const std::uint32_t word : words(5, rank, kCount)) joined.push_back(word);
            return joined;
        }());
        EXPECT_EQ(member.counted().direct - then.direct, kMembers - 1);
        EXPECT_EQ(member.counted().published - then.published, 1U);
    });
    EXPECT_GT(totals().direct - before.direct, std::uint64_t{kMembers} * kMembers);
    EXPECT_EQ(room.said(), "");
}

TEST_F(BoardDirectTest, unless_the_user_says_from_where_only_blocks_that_each_go_to_another_one_of_many_are) {
    for (const std::uint32_t members : {2U, 3U}) {
        const Direct direct({"cma", 0}, members);
        const bool many = members == 3;
        EXPECT_FALSE(direct.gives(VELO_BOARD_ALLTOALL, Direct::kLeast - 1));
        EXPECT_EQ(direct.gives(VELO_BOARD_ALLTOALL, Direct::kLeast), many);
        EXPECT_FALSE(direct.gives(VELO_BOARD_SCATTER, Direct::kLeastSpread - 1));
        EXPECT_EQ(direct.gives(VELO_BOARD_SCATTER, Direct::kLeastSpread), many);
        EXPECT_FALSE(direct.gives(VELO_BOARD_BCAST, 1U << 30));
    }
}

TEST_F(BoardDirectTest, nothing_is_where_the_user_wants_no_single_copy_or_longer_blocks) {
    const Totals before = totals();
    for (const Direct::Choice& choice : {Direct::Choice{}, Direct::Choice{"cma", kBytes + 1}}) {
        Room room({kMembers, 8, 8, 4096});
        room.choose(choice);
        operate_all(room);
    }
    EXPECT_EQ(totals().direct - before.direct, 0U);
}

TEST_F(BoardDirectTest, a_run_that_goes_in_lines_has_no_address) {
    const Totals before = totals();
    Room room({4, 8, 8, 64});  // 16 bytes of each block, 48 of a line
    room.choose({"cma", kBytes});
    room.all([&](Member& member, std::uint32_t me) {
        for (const std::uint32_t round : {7U, 9U, 9U, 18U, 20U}) operate(member, me, 4, round, kCount);
    });
    EXPECT_EQ(totals().direct - before.direct, 0U);
}

TEST_F(BoardDirectTest, a_member_that_reads_nobody_is_given_chunks) {
    std::vector<std::thread> threads;
    std::array<std::uint64_t, kMembers> direct{};
    std::array<std::unique_ptr<Member>, kMembers> members;
    for (std::uint32_t me = 0; me < kMembers; ++me) {
        room.choose({me == 0 ? "copy" : "cma", kBytes});
        members[me] = room.member(me);
    }
    for (std::uint32_t me = 0; me < kMembers; ++me)
        threads.emplace_back([&, me] {
            for (std::uint32_t round = 0; round < 2 * kRounds; ++round)
                operate(*members[me], me, kMembers, round, kCount);
            direct[me] = members[me]->counted().direct;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(direct[0], 0U);
    EXPECT_GT(direct[1], 0U);  // of rank 2, in gathers of which it is the root
    EXPECT_GT(direct[2], 0U);
}

TEST_F(BoardDirectTest, the_giver_goes_on_when_all_have_read) {
    Room two({2, 8, 8, 4096});
    two.choose({"cma", kBytes});
    auto giver = two.member(0), reader = two.member(1);
    Words given = words(0, 0, kCount), read(kCount);
    giver->bcast(0, bytes(given), kBytes);  // in chunks
    reader->bcast(0, bytes(read), kBytes);
    std::atomic<bool> is_back{false};
    given = words(1, 0, kCount);
    std::thread gives([&] {
        giver->bcast(0, bytes(given), kBytes);
        is_back = true;
        given.assign(kCount, 0);
    });
    while (giver->counted().long_waits == 0) std::this_thread::yield();
    EXPECT_FALSE(is_back);
    reader->bcast(0, bytes(read), kBytes);
    gives.join();
    EXPECT_EQ(read, words(1, 0, kCount));
    EXPECT_EQ(reader->counted().direct, 1U);
}

TEST(BoardLimitsTest, a_root_is_as_far_ahead_as_the_window_and_then_waits_for_the_slowest) {
    Room room({3, 4, 4, 64});
    auto root = room.member(0);
    std::uint64_t value = 1;
    for (int i = 0; i < 4; ++i) root->bcast(0, reinterpret_cast<std::byte*>(&value), sizeof value);
    EXPECT_EQ(root->counted().published, 4U);
    EXPECT_EQ(root->counted().credit_waits, 0U);

    auto fast = room.member(1), slow = room.member(2);
    std::uint64_t read = 0;
    for (int i = 0; i < 4; ++i) fast->bcast(0, reinterpret_cast<std::byte*>(&read), sizeof read);
    std::thread waits([&] { root->bcast(0, reinterpret_cast<std::byte*>(&value), sizeof value); });
    while (root->counted().credit_waits == 0) std::this_thread::yield();
    EXPECT_EQ(room.progress(0).finished.load(), 4U);
    for (int i = 0; i < 2; ++i) slow->bcast(0, reinterpret_cast<std::byte*>(&read), sizeof read);
    waits.join();
    EXPECT_EQ(room.progress(0).finished.load(), 5U);
}

TEST(BoardLimitsTest, two_who_wait_for_each_other_take_turns_with_two_lines_beside_the_window) {
    Room room({2, 8, 8, 64});
    room.all([](Member& member, std::uint32_t me) {
        for (int i = 0; i < 4; ++i) member.barrier();
        std::uint32_t value = me + 1, sum = 0;
        member.allreduce(kSum, reinterpret_cast<std::byte*>(&value), reinterpret_cast<std::byte*>(&sum), 4);
        EXPECT_EQ(sum, 3U);
        member.bcast(1, reinterpret_cast<std::byte*>(&value), 4);
        EXPECT_EQ(value, 2U);
    });
    for (const std::uint32_t writer : {0U, 1U}) {
        for (std::uint32_t slot = 0; slot < 8; ++slot)
            EXPECT_EQ(room.line(writer, slot).word.load(), writer == 1 && slot == 5 ? word_of_bcast(5, 4) : 0)
                << slot;
        EXPECT_EQ(room.line(writer, 8).word.load(),
                  Word::pack(4, 4, Signature::kind_of(Signature::of(VELO_BOARD_ALLREDUCE, kSum.op, 0))));
        EXPECT_EQ(room.line(writer, 9).word.load(),
                  Word::pack(3, 0, Signature::kind_of(Signature::of(VELO_BOARD_BARRIER, {}, 0))));
    }
}

TEST(BoardLimitsTest, who_exchanges_several_pieces_gives_some_before_it_waits_for_the_first) {
    Room room({2, 16, 8, 64});
    const std::uint32_t count = 10 * room.shape().chunk / 4;
    const auto gather = [&](Member& member) {
        Words one = words(1, member.me(), count), all(std::size_t{2} * count);
        member.allgather(bytes(one), bytes(all), 4 * count);
        EXPECT_EQ(slice(all, 0, count), words(1, 0, count));
        EXPECT_EQ(slice(all, 1, count), words(1, 1, count));
    };
    const auto first = room.member(0), second = room.member(1);
    std::thread thread([&] { gather(*first); });
    while (first->counted().long_waits == 0) std::this_thread::yield();
    EXPECT_EQ(first->counted().published, 4U);
    gather(*second);
    thread.join();
    // What is seen of the other one in a run is credit enough.
    EXPECT_EQ(first->counted().credit_waits + second->counted().credit_waits, 0U);
}

TEST(BoardLimitsTest, sums_of_floats_are_those_of_the_ranks_in_their_order_bit_by_bit) {
    constexpr std::uint32_t kMembers = 6, kCount = 100;
    const auto value = [](std::uint32_t rank, std::uint32_t i) {
        return std::ldexp(1.0 + rank * 0.3125 + i * 0.001, static_cast<int>((rank * 37 + i) % 60) - 30);
    };
    double expected[kCount];
    for (std::uint32_t i = 0; i < kCount; ++i) {
        expected[i] = value(0, i);
        for (std::uint32_t rank = 1; rank < kMembers; ++rank) expected[i] += value(rank, i);
    }
    Room room({kMembers, 2, 2, 256});
    room.all([&](Member& member, std::uint32_t me) {
        const Reduction sum{goal::Operator::kAdd, goal::Type::kFloat, 64};
        double mine[kCount], all[kCount];
        for (std::uint32_t i = 0; i < kCount; ++i) mine[i] = value(me, i);
        for (int round = 0; round < 20; ++round) {
            member.allreduce(sum, reinterpret_cast<std::byte*>(mine), reinterpret_cast<std::byte*>(all),
                             sizeof all);
            EXPECT_EQ(std::memcmp(all, expected, sizeof all), 0);
            member.reduce(sum, 3, reinterpret_cast<std::byte*>(mine), reinterpret_cast<std::byte*>(all),
                          sizeof all);
            if (me == 3) {
                EXPECT_EQ(std::memcmp(all, expected, sizeof all), 0);
            }
        }
    });
}

TEST(BoardLimitsTest, a_line_that_nobody_has_written_for_as_long_as_numbers_go_is_none_that_lies) {
    Room room({2, 8, 8, 64});
    struct Late {
        Room& room;
        int calls = 0;
    } late{room};
    const auto publish_at_last = [](void* context) {
        auto& l = *static_cast<Late*>(context);
        if (++l.calls == 100) l.room.line(0, 0).word.store(word_of_bcast(0, 8));
    };
    room.line(0, 0).word.store(word_of_bcast(Word::kRuns / 4, 8));  // three quarters of all ago
    Member reader(room.memory(), room.shape(), 1,
                  {publish_at_last, [](void*, int, const char*) {}, nullptr, &late, "b", 0, false});
    std::uint64_t value = 1;
    reader.bcast(0, reinterpret_cast<std::byte*>(&value), 8);
    EXPECT_EQ(late.calls, 100);
    EXPECT_EQ(value, 0U);
}

// Of all writers, the result among them; who writes none forgets nothing of theirs.
TEST(BoardLimitsTest, lines_are_forgotten_long_before_their_runs_come_again) {
    constexpr std::uint32_t kWindow = 64;
    constexpr std::uint64_t kEnd = 3 * Word::kForget, kOldRun = kEnd - Word::kForget + 20,
                            kYoungRun = kEnd - kWindow + 30, kNextRun = kEnd + 40;
    for (const std::uint32_t members : {2U, 3U, 9U}) {
        Room room({members, kWindow, 8, 128}, kEnd - 3);
        const auto writers = static_cast<std::uint32_t>(room.shape().writers());
        for (std::uint32_t writer = 0; writer < writers; ++writer)
            for (const std::uint64_t run : {kOldRun, kYoungRun, kNextRun})
                room.line(writer, run % kWindow).word.store(word_of_bcast(run, 8));
        room.all([](Member& member, std::uint32_t) {
            for (int i = 0; i < 6; ++i) member.barrier();
        });
        for (std::uint32_t writer = 0; writer < writers; ++writer) {
            EXPECT_EQ(room.line(writer, kOldRun % kWindow).word.load(), 0U) << writer << " of " << members;
            for (const std::uint64_t run : {kYoungRun, kNextRun})
                EXPECT_EQ(room.line(writer, run % kWindow).word.load(), word_of_bcast(run, 8));
        }
    }
}

TEST(BoardLimitsTest, boards_that_rest_before_their_runs_come_again_begin_anew) {
    const Shape shape{2, 8, 8, 64};
    for (const std::uint64_t first : {Word::kForget - 9, Word::kForget - 8}) {
        Room room(shape, first);
        room.line(1, 5).word.store(word_of_bcast(5, 8));
        lay_out_again(room.memory().data(), shape);
        const bool anew = first + shape.window >= Word::kForget;
        EXPECT_EQ(view(room.memory().data(), room.memory().size(), shape, 0).run(),
                  anew ? 0 : first + shape.window);
        EXPECT_EQ(room.line(1, 5).word.load(), anew ? 0 : word_of_bcast(5, 8));
        EXPECT_EQ(room.progress(1).finished.load(), anew ? 0 : first + shape.window);
    }
}

TEST(BoardLimitsTest, a_long_wait_names_the_slowest) {
    Room room({3, 2, 2, 64});
    auto root = room.member(0, 1'000'000), fast = room.member(1), slow = room.member(2);
    std::uint64_t value = 0;
    std::byte* data = reinterpret_cast<std::byte*>(&value);
    for (int i = 0; i < 2; ++i) root->bcast(0, data, 8);
    for (int i = 0; i < 2; ++i) fast->bcast(0, data, 8);
    slow->bcast(0, data, 8);
    root->bcast(0, data, 8);
    std::thread waits([&] { root->bcast(0, data, 8); });
    while (room.said().empty()) std::this_thread::yield();
    slow->bcast(0, data, 8);
    waits.join();
    EXPECT_NE(room.said().find("run 3 waits for rank 2, which is at 1"), std::string::npos) << room.said();
}

TEST(BoardLimitsTest, who_waits_makes_progress_for_the_rest_of_its_process) {
    struct Process {
        std::unique_ptr<Member> other;
        std::uint64_t value;
    };
    for (const bool crowded : {false, true}) {
        Room room({2, 2, 2, 64});
        Process process{room.member(0), 7};
        const auto progress = [](void* context) {
            auto& p = *static_cast<Process*>(context);
            p.other->bcast(0, reinterpret_cast<std::byte*>(&p.value), 8);
        };
        Member waits(room.memory(), room.shape(), 1,
                     {progress, [](void*, int, const char*) {}, nullptr, &process, "b", 0, crowded});
        std::uint64_t value = 0;
        waits.bcast(0, reinterpret_cast<std::byte*>(&value), 8);
        EXPECT_EQ(value, 7U);
        EXPECT_EQ(process.other->counted().published, 1U);
        EXPECT_EQ(waits.counted().long_waits, 1U);
    }
}

TEST(BoardLimitsTest, what_members_have_counted_stays_when_they_are_gone) {
    const Totals before = totals();
    Room room({2, 8, 8, 64});
    room.all([](Member& member, std::uint32_t) {
        for (int i = 0; i < 10; ++i) member.barrier();
    });
    const Totals after = totals();
    EXPECT_EQ(after.boards - before.boards, 2U);
    EXPECT_EQ(after.published - before.published, 20U);
    EXPECT_EQ(after.picked_up - before.picked_up, 20U);
}

}  // namespace
}  // namespace velo::board
