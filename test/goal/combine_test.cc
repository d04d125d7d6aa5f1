// Local operations against the arithmetic of each type, and over pieces that cut elements.
#include "collectives/goal/combine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace velo::goal {
namespace {

constexpr Operator kArithmetic[] = {Operator::kMax, Operator::kMin, Operator::kAdd,
                                    Operator::kSub, Operator::kDiv, Operator::kMul,
                                    Operator::kAnd, Operator::kOr,  Operator::kXor};

std::byte* bytes_of(void* at) {
    return static_cast<std::byte*>(at);
}

Combination combination(Operator op, Type type, unsigned width, std::uint64_t elements) {
    Combination c;
    c.op = op;
    c.type = type;
    c.width = static_cast<std::uint8_t>(width);
    c.elements = elements;
    c.first.space = 0;
    c.second.space = 1;
    c.result.space = 2;
    return c;
}

// Integers as the rules say: in 128 bits, and cut down.
template <typename T>
T expected(Operator op, T a, T b) {
    const __int128 x = a, y = b;
    switch (op) {
        case Operator::kMax:
            return std::max(a, b);
        case Operator::kMin:
            return std::min(a, b);
        case Operator::kAdd:
            return static_cast<T>(x + y);
        case Operator::kSub:
            return static_cast<T>(x - y);
        case Operator::kMul:
            return static_cast<T>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
        case Operator::kDiv:
            return y == 0 ? T{0} : static_cast<T>(x / y);
        case Operator::kAnd:
            return static_cast<T>(x & y);
        case Operator::kOr:
            return static_cast<T>(x | y);
        default:
            return static_cast<T>(x ^ y);
    }
}

template <typename T>
void check_integers(Type type) {
    std::mt19937_64 random(sizeof(T));
    std::vector<T> a(1000), b(a.size()), result(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<T>(random() >> random() % 64);
        b[i] = static_cast<T>(random() >> random() % 64);
    }
    a[0] = std::numeric_limits<T>::min();
    b[0] = static_cast<T>(-1);
    b[1] = 0;
    Memory memory;
    memory.base[0] = bytes_of(a.data());
    memory.base[1] = bytes_of(b.data());
    memory.base[2] = bytes_of(result.data());
    for (const Operator op : kArithmetic) {
        ASSERT_TRUE(is_legal(op, type, 8 * sizeof(T)));
        combine(combination(op, type, 8 * sizeof(T), a.size()), nullptr, memory, 0);
        for (std::size_t i = 0; i < a.size(); ++i)
            ASSERT_EQ(result[i], expected(op, a[i], b[i])) << name(op) << " of " << +a[i] << ", " << +b[i];
    }
}

TEST(CombineTest, integers_of_every_width_wrap_and_survive_a_division_by_zero) {
    check_integers<std::int8_t>(Type::kSint);
    check_integers<std::int16_t>(Type::kSint);
    check_integers<std::int32_t>(Type::kSint);
    check_integers<std::int64_t>(Type::kSint);
    check_integers<std::uint8_t>(Type::kUint);
    check_integers<std::uint16_t>(Type::kUint);
    check_integers<std::uint32_t>(Type::kUint);
    check_integers<std::uint64_t>(Type::kUint);
}

template <typename T>
void check_floats() {
    std::vector<T> a{T(1.5), T(-2), T(0.25), T(8)}, b{T(2), T(-3), T(4), T(0.5)}, result(4);
    Memory memory;
    memory.base[0] = bytes_of(a.data());
    memory.base[1] = bytes_of(b.data());
    memory.base[2] = bytes_of(result.data());
    const auto run = [&](Operator op) {
        combine(combination(op, Type::kFloat, 8 * sizeof(T), 4), nullptr, memory, 0);
        return result;
    };
    EXPECT_EQ(run(Operator::kMax), (std::vector<T>{T(2), T(-2), T(4), T(8)}));
    EXPECT_EQ(run(Operator::kMin), (std::vector<T>{T(1.5), T(-3), T(0.25), T(0.5)}));
    EXPECT_EQ(run(Operator::kAdd), (std::vector<T>{T(3.5), T(-5), T(4.25), T(8.5)}));
    EXPECT_EQ(run(Operator::kSub), (std::vector<T>{T(-0.5), T(1), T(-3.75), T(7.5)}));
    EXPECT_EQ(run(Operator::kMul), (std::vector<T>{T(3), T(6), T(1), T(4)}));
    EXPECT_EQ(run(Operator::kDiv), (std::vector<T>{T(0.75), T(T(-2) / T(-3)), T(0.0625), T(16)}));
}

TEST(CombineTest, floats_of_32_and_64_bits_and_16_where_there_are_such) {
    check_floats<float>();
    check_floats<double>();
#ifdef VELO_HAS_HALF
    EXPECT_TRUE(is_legal(Operator::kAdd, Type::kFloat, 16));
    check_floats<Half>();
#else
    EXPECT_FALSE(is_legal(Operator::kAdd, Type::kFloat, 16));
#endif
}

TEST(CombineTest, what_has_no_meaning_is_illegal) {
    EXPECT_FALSE(is_legal(Operator::kAnd, Type::kFloat, 32));
    EXPECT_FALSE(is_legal(Operator::kOr, Type::kFloat, 64));
    EXPECT_FALSE(is_legal(Operator::kXor, Type::kFloat, 64));
    EXPECT_FALSE(is_legal(Operator::kAdd, Type::kFloat, 8));
    EXPECT_FALSE(is_legal(Operator::kAdd, Type::kUint, 24));
    EXPECT_FALSE(is_legal(Operator::kCopy, Type::kUint, 0));
    EXPECT_TRUE(is_legal(Operator::kWtime, Type::kUint, 0));
}

TEST(CombineTest, any_number_of_elements_lies_anywhere_also_in_place_and_nothing_behind_is_written) {
    for (const std::size_t count : {0, 1, 7, 15, 16, 17, 31, 32, 33, 47})
        for (const std::size_t shift : {0, 1, 3})
            for (const bool in_place : {false, true}) {
                std::vector<std::byte> a(64, std::byte{5}), b(64, std::byte{7}), result(64, std::byte{0xee});
                std::vector<std::byte>& target = in_place ? a : result;
                const std::byte behind = target[shift + count];
                Combination c = combination(Operator::kAdd, Type::kUint, 8, count);
                for (Operand* operand : {&c.first, &c.second, &c.result}) operand->offset = shift;
                Memory memory;
                memory.base[0] = a.data();
                memory.base[1] = b.data();
                memory.base[2] = target.data();
                combine(c, nullptr, memory, 0);
                for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(target[shift + i], std::byte{12}) << i;
                ASSERT_EQ(target[shift + count], behind);
                ASSERT_EQ(target[0], shift > 0 || count == 0 ? (in_place ? std::byte{5} : std::byte{0xee})
                                                             : std::byte{12});
            }
}

TEST(CombineTest, pieces_may_cut_elements_and_differ_on_all_sides) {
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        constexpr std::size_t kElements = 37;
        std::vector<std::uint32_t> values[3];
        std::vector<std::byte> memory_of[3];
        std::vector<Piece> pieces;
        Combination c =
            combination(round % 2 == 0 ? Operator::kAdd : Operator::kCopy, Type::kUint, 32, kElements);
        Operand* operands[] = {&c.first, &c.second, &c.result};
        Memory memory;
        for (Space side = 0; side < 3; ++side) {
            values[side].resize(kElements);
            for (auto& value : values[side]) value = random();
            // Pieces in order, with gaps between them.
            memory_of[side].resize(4096, std::byte{0xee});
            operands[side]->offset = pieces.size();
            std::size_t at = 0, done = 0;
            const auto* data = reinterpret_cast<const std::byte*>(values[side].data());
            while (done < 4 * kElements) {
                const std::size_t size = std::min<std::size_t>(random() % 14, 4 * kElements - done);
                at += random() % 5;
                pieces.push_back({{at, side}, size});
                std::memcpy(memory_of[side].data() + at, data + done, size);
                at += size;
                done += size;
                ++operands[side]->pieces;
            }
            memory.base[side] = memory_of[side].data();
        }
        const auto before = memory_of[2];
        combine(c, pieces.data(), memory, 0);
        std::size_t done = 0;
        std::vector<std::byte> gathered(4 * kElements), rest = memory_of[2];
        for (std::uint32_t i = 0; i < c.result.pieces; ++i) {
            const Piece& piece = pieces[c.result.offset + i];
            std::memcpy(gathered.data() + done, memory_of[2].data() + piece.place.offset, piece.bytes);
            std::memcpy(rest.data() + piece.place.offset, before.data() + piece.place.offset, piece.bytes);
            done += piece.bytes;
        }
        EXPECT_EQ(rest, before) << "written beside the pieces";
        for (std::size_t i = 0; i < kElements; ++i) {
            std::uint32_t result;
            std::memcpy(&result, gathered.data() + 4 * i, 4);
            ASSERT_EQ(result, round % 2 == 0 ? values[0][i] + values[1][i] : values[0][i]);
        }
    }
}

TEST(CombineTest, wtime_stores_seconds_as_a_double) {
    double result = 0;
    Memory memory;
    memory.base[2] = bytes_of(&result);
    combine(combination(Operator::kWtime, Type::kSint, 8, 1), nullptr, memory, 12.25);
    EXPECT_EQ(result, 12.25);
}

}  // namespace
}  // namespace velo::goal
