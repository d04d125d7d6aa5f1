// What a schedule is made of: operations on places. All of it is plain data without pointers, so that a
// schedule may be copied as bytes, kept, and run by another process.
#pragma once

#include <cstdint>

namespace velo::goal {

using Vertex = std::uint32_t;  // an operation of one rank, counted from 0 in the order of their making
inline constexpr Vertex kNoVertex = UINT32_MAX;
inline constexpr std::uint32_t kAny = UINT32_MAX;  // source or tag of a receive

// The first three have the numbers of LogGOPSim's binary format.
enum class Kind : std::uint8_t {
    kSend = 1,
    kReceive = 2,
    kCalculate = 3,  // occupies a processor for `bytes` nanoseconds
    kCombine = 4,    // a local operation on data
    kCall = 5,       // a function of the application, number `peer`
};

// Where data is. Spaces 0..15 are arguments of the run: so a schedule is made once for all buffers.
using Space = std::uint8_t;
inline constexpr Space kArguments = 16;
inline constexpr Space kScratch = 16;   // memory that a run has for itself
inline constexpr Space kAbsolute = 17;  // the offset is an address
inline constexpr Space kSpaces = 18;
inline constexpr Space kNowhere = 18;  // no data: traces

struct Place {
    std::uint64_t offset = 0;
    Space space = kNowhere;

    Place at(std::uint64_t distance) const { return {offset + distance, space}; }
    friend bool operator==(const Place&, const Place&) = default;
};

struct Piece {
    Place place;
    std::uint64_t bytes = 0;
};

// 0 pieces: all bytes lie at `offset` of `space`. Otherwise `offset` is the position of the first of so many
// pieces in the schedule's list.
struct Operation {
    Kind kind = Kind::kCalculate;
    Space space = kNowhere;
    std::uint8_t cpu = 0;  // for simulations, as in LogGOPSim
    std::uint8_t nic = 0;
    std::uint32_t peer = 0;  // a combination: its position in the schedule's list
    std::uint32_t tag = 0;
    std::uint32_t pieces = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;

    bool communicates() const { return kind <= Kind::kReceive; }
};
static_assert(sizeof(Operation) == 32);

enum class Operator : std::uint8_t {
    kMax,
    kMin,
    kAdd,
    kSub,
    kDiv,
    kMul,
    kCopy,
    kAnd,
    kOr,
    kXor,
    kWtime,
    kOwn
};
enum class Type : std::uint8_t { kSint, kUint, kFloat };

struct Operand {
    std::uint64_t offset = 0;  // as in Operation
    std::uint32_t pieces = 0;
    Space space = kNowhere;
};

// result[i] = first[i] op second[i]; kCopy has no second one, kWtime none at all. kOwn is the program's: of
// bytes that lie together, which it divides into elements by itself.
struct Combination {
    Operand first, second, result;
    std::uint64_t elements = 0;
    Operator op = Operator::kCopy;
    Type type = Type::kUint;
    std::uint8_t width = 8;  // bits

    std::uint64_t bytes() const { return op == Operator::kWtime ? 8 : elements * (width / 8); }
};

const char* name(Operator op);
const char* name(Type type);

}  // namespace velo::goal
