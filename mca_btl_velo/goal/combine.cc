#include "goal/combine.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace velo::goal {
namespace {

template <typename T>
T divided(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) return 0;
        if constexpr (std::is_signed_v<T>) {
            if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
        }
    }
    return static_cast<T>(a / b);
}

// Sums and products of integers are formed without a sign, and no narrower than an int: there they wrap.
template <typename T>
auto wrapping(T value) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<std::common_type_t<std::make_unsigned_t<T>, unsigned>>(value);
    else
        return value;
}

template <typename T, typename Function>
void each(const std::byte* a, const std::byte* b, std::byte* result, std::uint64_t count, Function function) {
    // Users' buffers need not be aligned, and the result may be one of the sources: compilers make vector
    // instructions of copies that have the size of a vector.
    constexpr std::uint64_t kVector = 16 / sizeof(T);
    std::uint64_t i = 0;
    for (; i + kVector <= count; i += kVector) {
        T x[kVector], y[kVector], z[kVector];
        std::memcpy(x, a + i * sizeof(T), sizeof x);
        std::memcpy(y, b + i * sizeof(T), sizeof y);
        for (std::uint64_t j = 0; j < kVector; ++j) z[j] = function(x[j], y[j]);
        std::memcpy(result + i * sizeof(T), z, sizeof z);
    }
    for (; i < count; ++i) {
        T x, y;
        std::memcpy(&x, a + i * sizeof(T), sizeof(T));
        std::memcpy(&y, b + i * sizeof(T), sizeof(T));
        const T z = function(x, y);
        std::memcpy(result + i * sizeof(T), &z, sizeof(T));
    }
}

template <typename T>
void apply(Operator op, const std::byte* a, const std::byte* b, std::byte* result, std::uint64_t count) {
    switch (op) {
        case Operator::kMax:
            return each<T>(a, b, result, count, [](T x, T y) { return x < y ? y : x; });
        case Operator::kMin:
            return each<T>(a, b, result, count, [](T x, T y) { return y < x ? y : x; });
        case Operator::kAdd:
            return each<T>(a, b, result, count,
                           [](T x, T y) { return static_cast<T>(wrapping(x) + wrapping(y)); });
        case Operator::kSub:
            return each<T>(a, b, result, count,
                           [](T x, T y) { return static_cast<T>(wrapping(x) - wrapping(y)); });
        case Operator::kMul:
            return each<T>(a, b, result, count,
                           [](T x, T y) { return static_cast<T>(wrapping(x) * wrapping(y)); });
        case Operator::kDiv:
            return each<T>(a, b, result, count, divided<T>);
        case Operator::kAnd:
        case Operator::kOr:
        case Operator::kXor:
            if constexpr (std::is_integral_v<T>) {
                if (op == Operator::kAnd)
                    return each<T>(a, b, result, count, [](T x, T y) { return static_cast<T>(x & y); });
                if (op == Operator::kOr)
                    return each<T>(a, b, result, count, [](T x, T y) { return static_cast<T>(x | y); });
                return each<T>(a, b, result, count, [](T x, T y) { return static_cast<T>(x ^ y); });
            }
            return;
        case Operator::kCopy:
        case Operator::kWtime:
        case Operator::kOwn:
            return;
    }
}

using Kernel = void (*)(Operator, const std::byte*, const std::byte*, std::byte*, std::uint64_t);

// nullptr: there is no such type.
Kernel kernel(Type type, unsigned width) {
    constexpr Kernel kSigned[] = {apply<std::int8_t>, apply<std::int16_t>, apply<std::int32_t>,
                                  apply<std::int64_t>};
    constexpr Kernel kUnsigned[] = {apply<std::uint8_t>, apply<std::uint16_t>, apply<std::uint32_t>,
                                    apply<std::uint64_t>};
    constexpr Kernel kFloats[] = {nullptr,
#ifdef __FLT16_MAX__
                                  apply<_Float16>,
#else
                                  nullptr,
#endif
                                  apply<float>, apply<double>};
    const Kernel* kernels = type == Type::kSint ? kSigned : type == Type::kUint ? kUnsigned : kFloats;
    switch (width) {
        case 8:
            return kernels[0];
        case 16:
            return kernels[1];
        case 32:
            return kernels[2];
        case 64:
            return kernels[3];
        default:
            return nullptr;
    }
}

// Where an operand goes on, piece by piece.
class Cursor {
 public:
    Cursor(const Operand& operand, const Piece* pieces, const Memory& memory)
        : memory_(memory), piece_(pieces + operand.offset), left_(operand.pieces) {
        if (operand.pieces == 0) {
            at_ = memory.at({operand.offset, operand.space});
            room_ = std::numeric_limits<std::uint64_t>::max();
        }
    }

    // How many bytes lie at at(); 0 after the last piece.
    std::uint64_t room() {
        while (room_ == 0 && left_ > 0) {
            at_ = memory_.at(piece_->place);
            room_ = piece_->bytes;
            ++piece_;
            --left_;
        }
        return room_;
    }
    std::byte* at() { return at_; }
    void advance(std::uint64_t bytes) {
        at_ += bytes;
        room_ -= bytes;
    }
    // An element that its pieces cut.
    void read(std::byte* element, std::uint64_t bytes) {
        across(bytes, [&](std::byte* at, std::uint64_t done, std::uint64_t part) {
            std::memcpy(element + done, at, part);
        });
    }
    void write(const std::byte* element, std::uint64_t bytes) {
        across(bytes, [&](std::byte* at, std::uint64_t done, std::uint64_t part) {
            std::memcpy(at, element + done, part);
        });
    }

 private:
    template <typename Function>
    void across(std::uint64_t bytes, Function function) {
        for (std::uint64_t done = 0; done < bytes;) {
            const std::uint64_t part = std::min(room(), bytes - done);
            if (part == 0) return;
            function(at_, done, part);
            advance(part);
            done += part;
        }
    }

    const Memory& memory_;
    const Piece* piece_;
    std::uint32_t left_;
    std::uint64_t room_ = 0;
    std::byte* at_ = nullptr;
};

}  // namespace

bool is_legal(Operator op, Type type, unsigned width) {
    if (op == Operator::kWtime) return true;
    if (kernel(type, width) == nullptr) return false;
    if (op == Operator::kOwn) return type == Type::kUint && width == 8;
    return type != Type::kFloat || (op != Operator::kAnd && op != Operator::kOr && op != Operator::kXor);
}

void combine(Operator op, Type type, unsigned width, const std::byte* a, const std::byte* b,
             std::byte* result, std::uint64_t elements) {
    kernel(type, width)(op, a, b, result, elements);
}

void combine(const Combination& c, const Piece* pieces, const Memory& memory, double seconds) {
    Cursor result(c.result, pieces, memory);
    if (c.op == Operator::kWtime) {
        std::byte bytes[sizeof seconds];
        std::memcpy(bytes, &seconds, sizeof seconds);
        return result.write(bytes, sizeof seconds);
    }
    const bool copies = c.op == Operator::kCopy;
    const Kernel run = kernel(c.type, c.width);
    const std::uint64_t width = c.width / 8;
    Cursor first(c.first, pieces, memory), second(copies ? c.first : c.second, pieces, memory);
    for (std::uint64_t left = c.elements; left > 0;) {
        const std::uint64_t room = std::min({first.room(), second.room(), result.room()});
        const std::uint64_t whole = std::min(room / width, left);
        if (whole > 0) {
            if (copies)
                std::memmove(result.at(), first.at(), whole * width);
            else
                run(c.op, first.at(), second.at(), result.at(), whole);
            first.advance(whole * width);
            second.advance(whole * width);
            result.advance(whole * width);
            left -= whole;
            continue;
        }
        if (room == 0) return;
        std::byte a[8], b[8], z[8];
        first.read(a, width);
        second.read(b, width);
        if (!copies) run(c.op, a, b, z, 1);
        result.write(copies ? a : z, width);
        --left;
    }
}

const char* name(Operator op) {
    constexpr const char* kNames[] = {"max",  "min", "add", "sub", "div",   "mul",
                                      "copy", "and", "or",  "xor", "wtime", "own"};
    return kNames[static_cast<unsigned>(op)];
}

const char* name(Type type) {
    constexpr const char* kNames[] = {"sint", "uint", "float"};
    return kNames[static_cast<unsigned>(type)];
}

}  // namespace velo::goal
