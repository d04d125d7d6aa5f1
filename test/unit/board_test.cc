// Boards: members as threads over one memory. Every operation gives what its definition says, whatever the
// window, the chunks and the number of the run; what no correct member writes is told.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../shared/temporary_directory.h"
#include "api/velo_board.h"
#include "board/member.h"
#include "platform/failure.h"

namespace velo::board {
namespace {

struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{kSpacing}); }
};

class Room {
 public:
    explicit Room(const Shape& shape, std::uint64_t first_run = 0)
        : shape_(shape),
          bytes_(Offsets::of(shape).end),
          memory_(static_cast<std::byte*>(::operator new[](bytes_, std::align_val_t{kSpacing}))) {
        std::memset(memory_.get(), 0, bytes_);
        lay_out(memory_.get(), shape, first_run);
    }

    std::unique_ptr<Member> member(std::uint32_t me, std::uint64_t warning_ns = 0) {
        return std::make_unique<Member>(
            memory(), shape_, me,
            Surroundings{[](void*) {}, &Room::hear, nullptr, this, "board " + std::to_string(me), warning_ns, true});
    }
    std::span<std::byte> memory() { return {memory_.get(), bytes_}; }
    const Shape& shape() const { return shape_; }
    Line<>& line(std::uint32_t writer, std::uint32_t slot) {
        return reinterpret_cast<Line<>*>(memory_.get() +
                                         Offsets::of(shape_).lines)[writer * shape_.lines() + slot];
    }
    Progress<>& progress(std::uint32_t member) {
        return reinterpret_cast<Progress<>*>(memory_.get() + Offsets::of(shape_).progress)[member];
    }
    // What has been logged first; empty: nothing.
    std::string said() const { return has_said_.load() ? said_ : std::string(); }

    // Each in a thread of its own.
    void all(const std::function<void(Member&, std::uint32_t)>& body) {
        std::vector<std::thread> threads;
        for (std::uint32_t me = 0; me < shape_.members; ++me)
            threads.emplace_back([&, me] { body(*member(me), me); });
        for (std::thread& thread : threads) thread.join();
    }

 private:
    static void hear(void* context, const char* line) {
        auto& room = *static_cast<Room*>(context);
        if (room.has_said_.load()) return;
        room.said_ = line;
        room.has_said_.store(true);
    }

    Shape shape_;
    std::size_t bytes_;
    std::unique_ptr<std::byte, Free> memory_;
    std::string said_;
    std::atomic<bool> has_said_{false};
};

using Words = std::vector<std::uint32_t>;

// What a rank gives in a round: known to all.
std::uint32_t word(std::uint32_t round, std::uint32_t rank, std::uint32_t index) {
    return (round * 2654435761U) ^ (rank * 40503U + index * 97U);
}
Words words(std::uint32_t round, std::uint32_t rank, std::uint32_t count) {
    Words all(count);
    for (std::uint32_t i = 0; i < count; ++i) all[i] = word(round, rank, i);
    return all;
}
std::byte* bytes(Words& words) {
    return reinterpret_cast<std::byte*>(words.data());
}
Words slice(const Words& all, std::uint32_t block, std::uint32_t count) {
    return {all.begin() + block * count, all.begin() + (block + 1) * count};
}

constexpr Reduction kSum{goal::Operator::kAdd, goal::Type::kUint, 32};

constexpr std::uint64_t word_of_bcast(std::uint64_t run, std::uint32_t bytes) {
    return Word::pack(run, bytes, Signature::kind_of(Signature::of(Operation::kBcast, {}, 0)));
}

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
};

class BoardTest : public testing::TestWithParam<Case> {};

TEST_P(BoardTest, every_operation_gives_what_its_definition_says_however_late_readers_are) {
    Room room(GetParam().shape, GetParam().first_run);
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
                                         Case{{3, 1, 1, 64}, kBeforeWrap}, Case{{3, 3, 2, 128}, kBeforeWrap},
                                         Case{{4, 8, 8, 1024}, 5}, Case{{9, 2, 2, 512}, 0},
                                         Case{{17, 8, 1, 1024}, kBeforeWrap}));

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
                  Word::pack(4, 4, Signature::kind_of(Signature::of(Operation::kAllreduce, kSum.op, 0))));
        EXPECT_EQ(room.line(writer, 9).word.load(),
                  Word::pack(3, 0, Signature::kind_of(Signature::of(Operation::kBarrier, {}, 0))));
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

// What the other one finds: a text.
std::string failure_of(const std::function<void()>& action, velo_status status = VELO_ERR_PROTOCOL) {
    try {
        action();
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.status(), status);
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
        found[me] = failure_of([&] {
            me == 2 ? member.reduce(kSum, 2, data, data + 8, 8) : member.bcast(1, data, 8);
            member.barrier();
        });
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
                  {publish_at_last, [](void*, const char*) {}, nullptr, &late, "b", 0, false});
    std::uint64_t value = 1;
    reader.bcast(0, reinterpret_cast<std::byte*>(&value), 8);
    EXPECT_EQ(late.calls, 100);
    EXPECT_EQ(value, 0U);
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
    for (const std::uint64_t wrong : {std::uint64_t{9}, std::uint64_t{15}, ~std::uint64_t{0}}) {
        room.progress(1).finished.store(wrong);
        const std::string text = failure_of([&] { root->bcast(0, reinterpret_cast<std::byte*>(&value), 8); });
        EXPECT_NE(text.find("an impossible position of rank 1"), std::string::npos) << wrong << text;
    }
}

TEST(BoardLiesTest, a_board_of_another_shape_or_layout_is_refused) {
    Room room({2, 8, 8, 64});
    const Surroundings around{[](void*) {}, [](void*, const char*) {}, nullptr, nullptr, "b", 0, false};
    EXPECT_THROW(Member(room.memory(), (Shape{2, 4, 4, 64}), 0, around), Failure);
    EXPECT_THROW(Member(room.memory(), (Shape{2, 8, 8, 64}), 2, around), Failure);
    EXPECT_THROW(Member(room.memory(), (Shape{2, 8, 8, 63}), 0, around), Failure);
    EXPECT_THROW(Member(room.memory(), (Shape{2, 8, 9, 64}), 0, around), Failure);
    EXPECT_THROW(Member(room.memory().first(1000), (Shape{2, 8, 8, 64}), 0, around), Failure);
    std::memset(room.memory().data(), 1, 8);
    EXPECT_THROW(Member(room.memory(), (Shape{2, 8, 8, 64}), 0, around), Failure);
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
                     {progress, [](void*, const char*) {}, nullptr, &process, "b", 0, crowded});
        std::uint64_t value = 0;
        waits.bcast(0, reinterpret_cast<std::byte*>(&value), 8);
        EXPECT_EQ(value, 7U);
        EXPECT_EQ(process.other->counted().published, 1U);
        EXPECT_EQ(waits.counted().long_waits, 1U);
    }
}

// Through the C interface, in files.
struct Opened {
    explicit Opened(const char* directory) {
        config.size = 2;
        config.window = config.chunks = 4;
        config.chunk = 64;
        config.directory = directory;
        config.name = "b";
        config.progress = [](void*) {};
        config.log = [](void* context, const char* line) { static_cast<Opened*>(context)->said += line; };
        config.context = this;
    }

    velo_board_config config{};
    char error[512] = "";
    std::string said;
};

TEST(BoardInterfaceTest, a_board_is_opened_by_its_address_and_outlives_its_maker) {
    test::TemporaryDirectory directory;
    Opened o(directory.path().c_str());
    velo_board *made = nullptr, *opened = nullptr, *late = nullptr;
    char address[VELO_BOARD_ADDRESS];
    ASSERT_EQ(velo_board_create(&o.config, &made, o.error, sizeof o.error), VELO_OK) << o.error;
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
    velo_board_address(made, address);
    o.config.rank = 1;
    ASSERT_EQ(velo_board_open(&o.config, address, &opened, o.error, sizeof o.error), VELO_OK) << o.error;
    velo_goal_request request{};
    request.bytes = 40;
    char text[40] = "what the root has written", found[40] = "";
    EXPECT_EQ(velo_board_run(made, VELO_BOARD_BCAST, &request, nullptr, text), VELO_OK);
    velo_board_close(made);
    EXPECT_EQ(velo_board_open(&o.config, address, &late, o.error, sizeof o.error), VELO_ERR_UNREACHABLE);
    EXPECT_EQ(velo_board_run(opened, VELO_BOARD_BCAST, &request, nullptr, found), VELO_OK);
    EXPECT_STREQ(found, text);
    velo_board_close(opened);
}

// Each event in a word.
struct Traced : Opened {
    explicit Traced(const char* directory) : Opened(directory) {
        config.progress = [](void* context) {
            auto& traced = *static_cast<Traced*>(context);
            if (traced.meanwhile) std::exchange(traced.meanwhile, nullptr)();
        };
        config.trace = [](void* context, const velo_board_event* event) {
            constexpr const char* kSteps[] = {"begins", "waits for", "goes on", "ends"};
            auto& traced = *static_cast<Traced*>(context);
            traced.events.push_back(kSteps[event->step] + std::string(event->is_request ? " request " : " ") +
                                    std::to_string(event->operation) + " " + std::to_string(event->number));
        };
        config.context = this;
    }
    using Events = std::vector<std::string>;
    Events take() { return std::exchange(events, {}); }

    std::function<void()> meanwhile;
    Events events;
};

TEST(BoardInterfaceTest, a_trace_hears_of_each_operation_and_of_whom_it_waits_for) {
    using Events = Traced::Events;
    test::TemporaryDirectory directory;
    Traced root(directory.path().c_str()), reader(directory.path().c_str());
    velo_board *at_root = nullptr, *at_reader = nullptr;
    char address[VELO_BOARD_ADDRESS];
    ASSERT_EQ(velo_board_create(&root.config, &at_root, root.error, sizeof root.error), VELO_OK) << root.error;
    velo_board_address(at_root, address);
    reader.config.rank = 1;
    ASSERT_EQ(velo_board_open(&reader.config, address, &at_reader, reader.error, sizeof reader.error), VELO_OK)
        << reader.error;
    velo_goal_request request{};
    char data[40] = "", found[40] = "";
    request.bytes = 40;
    const auto send = [&] { velo_board_run(at_root, VELO_BOARD_BCAST, &request, nullptr, data); };
    send();
    EXPECT_EQ(root.take(), (Events{"begins 2 40", "ends 2 40"}));
    velo_board_run(at_reader, VELO_BOARD_BCAST, &request, nullptr, found);
    EXPECT_EQ(reader.take(), (Events{"begins 2 40", "ends 2 40"}));
    reader.meanwhile = send;
    velo_board_run(at_reader, VELO_BOARD_BCAST, &request, nullptr, found);
    EXPECT_EQ(reader.take(), (Events{"begins 2 40", "waits for 0 0", "goes on 0 0", "ends 2 40"}));

    void **place = nullptr, *context = nullptr;
    velo_status status = VELO_OK;
    velo_board_start(at_reader, VELO_BOARD_BCAST, &request, nullptr, found, &place);
    EXPECT_EQ(reader.take(), (Events{"begins request 2 40"}));
    root.take();
    velo_board_start(at_root, VELO_BOARD_BCAST, &request, nullptr, data, &place);
    EXPECT_EQ(root.take(), (Events{"begins request 2 40", "ends request 2 40"}));
    EXPECT_TRUE(velo_board_advance(at_reader, &context, &status));
    EXPECT_EQ(reader.take(), (Events{"ends request 2 40"}));
    velo_board_close(at_root);
    velo_board_close(at_reader);
}

TEST(BoardInterfaceTest, an_impossible_shape_and_a_failure_are_told) {
    test::TemporaryDirectory directory;
    Opened o(directory.path().c_str());
    velo_board *made = nullptr, *opened = nullptr;
    char address[VELO_BOARD_ADDRESS];
    o.config.chunks = 5;
    EXPECT_EQ(velo_board_create(&o.config, &made, o.error, sizeof o.error), VELO_ERR_PARAMETER);
    EXPECT_NE(std::string(o.error).find("shape"), std::string::npos) << o.error;
    o.config.chunks = 4;
    ASSERT_EQ(velo_board_create(&o.config, &made, o.error, sizeof o.error), VELO_OK) << o.error;
    velo_board_address(made, address);
    o.config.rank = 1;
    ASSERT_EQ(velo_board_open(&o.config, address, &opened, o.error, sizeof o.error), VELO_OK) << o.error;
    velo_goal_request request{};
    char data[16] = "";
    request.bytes = 8;
    EXPECT_EQ(velo_board_run(made, VELO_BOARD_BCAST, &request, nullptr, data), VELO_OK);
    request.bytes = 16;
    EXPECT_EQ(velo_board_run(opened, VELO_BOARD_BCAST, &request, nullptr, data), VELO_ERR_MISMATCH);
    EXPECT_NE(o.said.find("rank 0 has 8 bytes where this rank has 16"), std::string::npos) << o.said;
    request.root = 1;
    EXPECT_EQ(velo_board_run(opened, VELO_BOARD_BCAST, &request, nullptr, data), VELO_ERR_PROTOCOL)
        << "of no use any more";
    velo_board_close(made);
    velo_board_close(opened);
}

// --- requests

struct Closed {
    void operator()(velo_board* board) const { velo_board_close(board); }
};
using Handle = std::unique_ptr<velo_board, Closed>;

// All members of a board of requests, in one thread.
struct Party {
    Party(std::uint32_t members, std::uint32_t window, std::uint32_t chunk) : o(directory.path().c_str()) {
        o.config.size = members;
        o.config.window = o.config.chunks = window;
        o.config.chunk = chunk;
        o.config.stall_warning = 1;
        char address[VELO_BOARD_ADDRESS];
        for (; o.config.rank < members; ++o.config.rank) {
            velo_board* one = nullptr;
            if (all.empty())
                EXPECT_EQ(velo_board_create(&o.config, &one, o.error, sizeof o.error), VELO_OK) << o.error;
            else
                EXPECT_EQ(velo_board_open(&o.config, address, &one, o.error, sizeof o.error), VELO_OK)
                    << o.error;
            if (all.empty()) velo_board_address(one, address);
            all.emplace_back(one);
        }
    }

    test::TemporaryDirectory directory;
    Opened o;
    std::vector<Handle> all;
};

// One operation of `count` words a block at a member: what goes in, what has to come out.
struct Work {
    Work(velo_board_operation chosen, std::uint32_t round, std::uint32_t me, std::uint32_t all,
         std::uint32_t count, bool in_place)
        : operation(chosen), root(round % all) {
        const bool at_root = me == root;
        const auto in_blocks = [&](std::uint32_t rank) { return words(round, rank, count * all); };
        const auto sum = [&](std::uint32_t end, std::uint32_t offset) {
            Words total(count);
            for (std::uint32_t rank = 0; rank < end; ++rank)
                for (std::uint32_t i = 0; i < count; ++i) total[i] += word(round, rank, offset + i);
            return total;
        };
        Words joined;
        request.root = root;
        request.bytes = 4 * count;
        request.op = VELO_GOAL_ADD;
        request.type = VELO_GOAL_UINT;
        request.width = 32;
        from = words(round, me, count);
        to.assign(count, 7);
        switch (operation) {
            case VELO_BOARD_BCAST:
                if (at_root) to = from;
                expected = words(round, root, count);
                return;
            case VELO_BOARD_REDUCE:
                expected = at_root ? sum(all, 0) : to;
                request.in_place = in_place && at_root;
                break;
            case VELO_BOARD_ALLREDUCE:
                expected = sum(all, 0);
                request.in_place = in_place;
                break;
            case VELO_BOARD_SCAN:
                expected = sum(me + 1, 0);
                request.in_place = in_place;
                break;
            case VELO_BOARD_EXSCAN:
                request.in_place = in_place;
                expected = me > 0 ? sum(me, 0) : in_place ? from : to;
                break;
            case VELO_BOARD_GATHER:
            case VELO_BOARD_ALLGATHER:
                for (std::uint32_t rank = 0; rank < all; ++rank) {
                    const Words one = words(round, rank, count);
                    joined.insert(joined.end(), one.begin(), one.end());
                }
                to.assign(joined.size(), 7);
                if (operation == VELO_BOARD_GATHER && !at_root) {
                    expected = to;
                    return;
                }
                expected = joined;
                request.in_place = in_place;
                if (in_place) std::copy(from.begin(), from.end(), to.begin() + me * count);
                return;
            case VELO_BOARD_SCATTER:
                from = in_blocks(me);
                request.in_place = in_place && at_root;
                expected = request.in_place ? to : slice(in_blocks(root), me, count);
                return;
            case VELO_BOARD_ALLTOALL:
                from = in_blocks(me);
                to.assign(from.size(), 7);
                request.in_place = in_place;
                if (in_place) to = from;
                for (std::uint32_t rank = 0; rank < all; ++rank) {
                    const Words one = slice(in_blocks(rank), me, count);
                    expected.insert(expected.end(), one.begin(), one.end());
                }
                return;
            case VELO_BOARD_REDUCE_SCATTER:
            case VELO_BOARD_REDUCE_SCATTER_BLOCK:
                from = in_blocks(me);
                expected = sum(all, me * count);
                parts.assign(all, {0, 0, 0, 4 * count});
                if (operation == VELO_BOARD_REDUCE_SCATTER) {
                    request.bytes *= all;
                    request.sends = parts.data();
                    request.send_count = all;
                }
                return;
            default:
                expected = to;
                return;
        }
        if (request.in_place) to = from;
    }
    Work(const Work&) = delete;

    velo_board_operation operation;
    std::uint32_t root;
    velo_goal_request request{};
    std::vector<velo_goal_block> parts;
    Words from, to, expected;
    bool over = false;
};

class BoardRequestsTest : public testing::TestWithParam<std::uint32_t> {};

// Each member in its own time, in an order that the seed gives.
TEST_P(BoardRequestsTest, every_operation_ends_with_what_its_definition_says_whoever_begins_when) {
    for (const std::uint32_t members : {2U, 3U, 9U}) {
        std::mt19937 random(GetParam() * 31 + members);
        const std::uint32_t window = 1 + random() % 4, chunk = 64 << random() % 3, rounds = 60;
        Party party(members, window, chunk < 8 * members ? 128 : chunk);
        std::vector<std::vector<std::unique_ptr<Work>>> work(members);
        for (std::uint32_t round = 0; round < rounds; ++round) {
            const auto operation = static_cast<velo_board_operation>(1 + random() % 12);
            const std::uint32_t count = 1 + random() % (random() % 2 == 0 ? 2 : 16);
            const bool in_place = random() % 2 == 0;
            for (std::uint32_t me = 0; me < members; ++me)
                work[me].push_back(std::make_unique<Work>(operation, round, me, members, count, in_place));
            const auto& one = *work[0].back();
            if (velo_board_takes(party.all[0].get(), operation, &one.request)) continue;
            for (auto& of_member : work) of_member.pop_back();
        }
        std::vector<std::size_t> begun(members), ended(members);
        const auto all_over = [&] {
            for (std::uint32_t me = 0; me < members; ++me)
                if (ended[me] < work[me].size()) return false;
            return true;
        };
        for (std::uint64_t steps = 0; !all_over(); ++steps) {
            ASSERT_LT(steps, 1'000'000U) << "nobody gets on";
            const std::uint32_t me = random() % members;
            velo_board* board = party.all[me].get();
            void* context = nullptr;
            velo_status status = VELO_OK;
            if (begun[me] < work[me].size() && random() % 3 == 0) {
                Work& one = *work[me][begun[me]++];
                void** place = nullptr;
                ASSERT_EQ(velo_board_start(board, one.operation, &one.request, one.from.data(), one.to.data(),
                                           &place),
                          VELO_OK);
                if (place != nullptr)
                    *place = &one;
                else
                    context = &one;
            } else if (!velo_board_advance(board, &context, &status)) {
                continue;
            }
            if (context == nullptr) continue;
            ASSERT_EQ(status, VELO_OK) << party.o.said;
            Work& one = *static_cast<Work*>(context);
            ASSERT_EQ(&one, work[me][ended[me]].get()) << "out of their order";
            ++ended[me];
            EXPECT_EQ(one.to, one.expected)
                << "operation " << one.operation << " at " << me << " of " << members;
        }
        EXPECT_EQ(party.o.said, "");
    }
}

INSTANTIATE_TEST_SUITE_P(seeds, BoardRequestsTest, testing::Range(0U, 12U));

TEST(BoardRequestTest, it_does_not_matter_what_waits_in_between) {
    Party party(2, 4, 64);
    std::uint32_t value = 5, late = 0, now = 0;
    velo_goal_request request{};
    request.bytes = 4;
    void** place = nullptr;
    void* context = nullptr;
    velo_status status;
    velo_board *root = party.all[0].get(), *other = party.all[1].get();
    // The request comes first here, and last there.
    ASSERT_EQ(velo_board_start(other, VELO_BOARD_BCAST, &request, nullptr, &late, &place), VELO_OK);
    ASSERT_NE(place, nullptr);
    *place = &late;
    EXPECT_FALSE(velo_board_advance(other, &context, &status));
    EXPECT_EQ(velo_board_run(root, VELO_BOARD_BCAST, &request, nullptr, &value), VELO_OK);
    EXPECT_EQ(velo_board_run(other, VELO_BOARD_BCAST, &request, nullptr, &now), VELO_OK);
    EXPECT_EQ(now, 5U);
    value = 6;
    ASSERT_EQ(velo_board_start(root, VELO_BOARD_BCAST, &request, nullptr, &value, &place), VELO_OK);
    EXPECT_EQ(place, nullptr) << "a root need not wait";
    ASSERT_TRUE(velo_board_advance(other, &context, &status));
    EXPECT_EQ(context, &late);
    EXPECT_EQ(late, 6U);
}

TEST(BoardRequestTest, who_is_ahead_by_the_window_goes_on_when_half_of_it_is_free) {
    Party party(2, 4, 64);
    std::uint32_t values[6], found = 0;
    velo_goal_request request{};
    request.bytes = 4;
    void** place = nullptr;
    void* context = nullptr;
    velo_status status;
    velo_board *root = party.all[0].get(), *other = party.all[1].get();
    for (std::uint32_t i = 0; i < 6; ++i) {
        values[i] = i;
        ASSERT_EQ(velo_board_start(root, VELO_BOARD_BCAST, &request, nullptr, &values[i], &place), VELO_OK);
        EXPECT_EQ(place == nullptr, i < 4);
        if (place != nullptr) *place = &values[i];
    }
    const auto read_one = [&] {
        ASSERT_EQ(velo_board_start(other, VELO_BOARD_BCAST, &request, nullptr, &found, &place), VELO_OK);
        ASSERT_EQ(place, nullptr);
    };
    EXPECT_FALSE(velo_board_advance(root, &context, &status));
    read_one();
    EXPECT_FALSE(velo_board_advance(root, &context, &status)) << "one is not half";
    read_one();
    for (std::uint32_t i = 4; i < 6; ++i) {
        ASSERT_TRUE(velo_board_advance(root, &context, &status));
        EXPECT_EQ(context, &values[i]);
    }
    for (std::uint32_t i = 2; i < 6; ++i) read_one();
    EXPECT_EQ(found, 5U);
}

TEST(BoardRequestTest, of_many_members_each_has_fewer_chunks) {
    struct Case {
        std::uint32_t members, chunk, ahead;
    };
    for (const auto& [members, chunk, ahead] : {Case{2, 8192, 8}, {31, 8192, 4}, {64, 8192, 4}, {64, 65536, 1}}) {
        test::TemporaryDirectory directory;
        Opened o(directory.path().c_str());
        o.config.size = members;
        o.config.window = 64;
        o.config.chunks = 32;
        o.config.chunk = chunk;
        velo_board* root = nullptr;
        ASSERT_EQ(velo_board_create(&o.config, &root, o.error, sizeof o.error), VELO_OK) << o.error;
        velo_goal_request request{};
        request.bytes = 100;
        char data[100] = "";
        void** place = nullptr;
        std::uint32_t over = 0;
        for (; over < 64 && place == nullptr; ++over)
            ASSERT_EQ(velo_board_start(root, VELO_BOARD_BCAST, &request, nullptr, data, &place), VELO_OK);
        EXPECT_EQ(over - 1, ahead) << members << " members, chunks of " << chunk;
        velo_board_close(root);
    }
}

TEST(BoardRequestTest, another_number_of_bytes_ends_it_and_all_that_follow_with_an_error) {
    Party party(2, 4, 64);
    std::uint32_t value[4] = {}, next = 0;
    velo_goal_request request{};
    void** place = nullptr;
    void* context = nullptr;
    velo_status status;
    velo_board *root = party.all[0].get(), *other = party.all[1].get();
    request.bytes = 16;
    ASSERT_EQ(velo_board_start(root, VELO_BOARD_BCAST, &request, nullptr, value, &place), VELO_OK);
    request.bytes = 8;
    for (void* to : {static_cast<void*>(value), static_cast<void*>(&next)}) {
        ASSERT_EQ(velo_board_start(other, VELO_BOARD_BCAST, &request, nullptr, to, &place), VELO_OK);
        *place = to;
    }
    while (!velo_board_advance(other, &context, &status)) {
    }
    EXPECT_EQ(context, value);
    EXPECT_EQ(status, VELO_ERR_MISMATCH);
    EXPECT_NE(party.o.said.find("b, requests, run 0: rank 0 has 16 bytes where this rank has 8"),
              std::string::npos)
        << party.o.said;
    ASSERT_TRUE(velo_board_advance(other, &context, &status));
    EXPECT_EQ(context, &next);
    EXPECT_EQ(status, VELO_ERR_PROTOCOL);
    EXPECT_FALSE(velo_board_advance(other, &context, &status));
    // Calls that wait have another board.
    EXPECT_EQ(velo_board_run(root, VELO_BOARD_BCAST, &request, nullptr, value), VELO_OK);
    EXPECT_EQ(velo_board_run(other, VELO_BOARD_BCAST, &request, nullptr, value), VELO_OK);
}

TEST(BoardRequestTest, another_operation_of_the_same_size_is_told_with_both) {
    struct Call {
        velo_board_operation operation;
        velo_goal_operator op;
    };
    const auto outcome = [](Call first, Call second) {
        Party party(2, 4, 64);
        std::uint32_t from[2] = {}, to[4] = {};
        velo_goal_request request{};
        request.bytes = 4;
        request.type = VELO_GOAL_UINT;
        request.width = 32;
        void* context = nullptr;
        velo_status status[2] = {};
        const Call calls[] = {first, second};
        for (std::uint32_t me = 0; me < 2; ++me) {
            void** place = nullptr;
            request.op = calls[me].op;
            EXPECT_EQ(velo_board_start(party.all[me].get(), calls[me].operation, &request, from, to, &place),
                      VELO_OK);
            EXPECT_NE(place, nullptr);
            if (place != nullptr) *place = from;
        }
        for (std::uint32_t me = 0; me < 2; ++me)
            while (!velo_board_advance(party.all[me].get(), &context, &status[me])) {
            }
        EXPECT_EQ(status[0], VELO_ERR_PROTOCOL);
        EXPECT_EQ(status[1], VELO_ERR_PROTOCOL);
        return party.o.said;
    };
    const std::string one = outcome({VELO_BOARD_REDUCE, VELO_GOAL_ADD}, {VELO_BOARD_BCAST, VELO_GOAL_MAX});
    EXPECT_NE(
        one.find("requests, run 0: this rank is in reduce (add) of root 0, and rank 1 in bcast of root 0"),
        std::string::npos)
        << one;
    const std::string other =
        outcome({VELO_BOARD_ALLREDUCE, VELO_GOAL_ADD}, {VELO_BOARD_ALLREDUCE, VELO_GOAL_MAX});
    EXPECT_NE(other.find("requests, run 0: this rank is in allreduce (max), and rank 0 in allreduce (add)"),
              std::string::npos)
        << other;
}

TEST(BoardRequestTest, one_that_nobody_joins_names_the_slowest) {
    Party party(3, 4, 64);
    velo_goal_request request{};
    void** place = nullptr;
    void* context = nullptr;
    velo_status status;
    for (std::uint32_t me = 0; me < 2; ++me) {
        ASSERT_EQ(
            velo_board_start(party.all[me].get(), VELO_BOARD_BARRIER, &request, nullptr, nullptr, &place),
            VELO_OK);
        *place = &request;
    }
    while (party.o.said.empty()) EXPECT_FALSE(velo_board_advance(party.all[0].get(), &context, &status));
    EXPECT_NE(party.o.said.find("no progress on the board of b, requests for "), std::string::npos)
        << party.o.said;
    EXPECT_NE(party.o.said.find("run 0 waits for rank 2, which is at 0"), std::string::npos) << party.o.said;
}

TEST(BoardRequestTest, all_members_find_the_same_request_to_be_the_first) {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        Party party(3, 1, 64);
        std::uint64_t numbers[3], asked[3];
        std::vector<bool> over_board[3];
        for (std::uint32_t me = 0; me < 3; ++me) {
            numbers[me] = asked[me] = random() % 5;
            over_board[me].assign(numbers[me], false);
            // What has begun before the board was there.
            if (numbers[me] > 0) {
                EXPECT_FALSE(velo_board_serves(party.all[me].get(), numbers[me] - 1));
            }
        }
        for (std::uint32_t steps = 0, settled = 0; steps < 60; ++steps) {
            const std::uint32_t me = random() % 3;
            if (random() % 4 == 0 && ++settled) velo_board_settle(party.all[me].get());
            over_board[me].push_back(velo_board_serves(party.all[me].get(), asked[me]++));
        }
        for (std::uint32_t me = 0; me < 3; ++me)
            for (std::size_t i = 0; i < std::min(over_board[0].size(), over_board[me].size()); ++i)
                ASSERT_EQ(over_board[me][i], over_board[0][i]) << "seed " << seed << " request " << i;
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
