#include "collectives/goal/combine.h"

#include <algorithm>
#include <array>
#include <bit>
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
using Unsigned =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

template <typename T>
[[gnu::always_inline]] inline decltype(auto) wrapping(const T& value) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<std::common_type_t<T, unsigned>>(value);
    else
        return (value);
}

template <typename T, unsigned kBytes>
struct Vector {
    typedef T Type __attribute__((vector_size(kBytes)));
};

// `function` of two elements, and of two vectors of `kVectorBytes` unless these are 0. Users' buffers need
// not be aligned, and the result may be one of the sources: everything is copied. Vectors go by reference, as
// the ABI of values depends on the processor.
template <unsigned kVectorBytes, typename T, typename Function>
[[gnu::always_inline]] inline void each(const std::byte* a, const std::byte* b, std::byte* result,
                                        std::uint64_t count, Function function) {
    const auto over = [&]<typename Type>(std::uint64_t i) {
        Type x, y, z;
        std::memcpy(&x, a + i * sizeof(T), sizeof x);
        std::memcpy(&y, b + i * sizeof(T), sizeof y);
        function(x, y, z);
        std::memcpy(result + i * sizeof(T), &z, sizeof z);
    };
    std::uint64_t i = 0;
    if constexpr (kVectorBytes > 0)
        for (constexpr std::uint64_t kCount = kVectorBytes / sizeof(T); i + kCount <= count; i += kCount)
            over.template operator()<typename Vector<T, kVectorBytes>::Type>(i);
    for (; i < count; ++i) over.template operator()<T>(i);
}

template <unsigned kBytes, typename T>
[[gnu::always_inline]] inline void apply(Operator op, const std::byte* a, const std::byte* b,
                                         std::byte* result, std::uint64_t count) {
    switch (op) {
        case Operator::kMax:
            return each<kBytes, T>(a, b, result, count,
                                   [](const auto& x, const auto& y, auto& z) { z = x < y ? y : x; });
        case Operator::kMin:
            return each<kBytes, T>(a, b, result, count,
                                   [](const auto& x, const auto& y, auto& z) { z = y < x ? y : x; });
        case Operator::kAdd:
            return each<kBytes, Unsigned<T>>(a, b, result, count, [](const auto& x, const auto& y, auto& z) {
                z = wrapping(x) + wrapping(y);
            });
        case Operator::kSub:
            return each<kBytes, Unsigned<T>>(a, b, result, count, [](const auto& x, const auto& y, auto& z) {
                z = wrapping(x) - wrapping(y);
            });
        case Operator::kMul:
            return each<kBytes, Unsigned<T>>(a, b, result, count, [](const auto& x, const auto& y, auto& z) {
                z = wrapping(x) * wrapping(y);
            });
        case Operator::kDiv:
            return each<0, T>(a, b, result, count,
                              [](const auto& x, const auto& y, auto& z) { z = divided<T>(x, y); });
        case Operator::kAnd:
        case Operator::kOr:
        case Operator::kXor:
            if constexpr (std::is_integral_v<T>) {
                if (op == Operator::kAnd)
                    return each<kBytes, T>(a, b, result, count,
                                           [](const auto& x, const auto& y, auto& z) { z = x & y; });
                if (op == Operator::kOr)
                    return each<kBytes, T>(a, b, result, count,
                                           [](const auto& x, const auto& y, auto& z) { z = x | y; });
                return each<kBytes, T>(a, b, result, count,
                                       [](const auto& x, const auto& y, auto& z) { z = x ^ y; });
            }
            return;
        case Operator::kCopy:
        case Operator::kWtime:
        case Operator::kOwn:
            return;
    }
}

using Kernel = void (*)(Operator, const std::byte*, const std::byte*, std::byte*, std::uint64_t);

// The same for each width of vectors that a processor may have: elements are combined one by one in all of
// them, so that results have the same bits.
template <unsigned kBytes>
struct Plain {
    template <typename T>
    static void run(Operator op, const std::byte* a, const std::byte* b, std::byte* result,
                    std::uint64_t count) {
        apply<kBytes, T>(op, a, b, result, count);
    }
};
#if defined(__x86_64__)
struct Avx2 {
    template <typename T>
    [[gnu::target("avx2")]] static void run(Operator op, const std::byte* a, const std::byte* b,
                                            std::byte* result, std::uint64_t count) {
        apply<32, T>(op, a, b, result, count);
    }
};
#endif

using Kernels = std::array<Kernel, 4>;  // by width: 8, 16, 32 and 64 bits
struct Types {
    Kernels sints, uints, floats;
};

template <typename Vectors>
constexpr Types types_of() {
    return {{Vectors::template run<std::int8_t>, Vectors::template run<std::int16_t>,
             Vectors::template run<std::int32_t>, Vectors::template run<std::int64_t>},
            {Vectors::template run<std::uint8_t>, Vectors::template run<std::uint16_t>,
             Vectors::template run<std::uint32_t>, Vectors::template run<std::uint64_t>},
            {nullptr,
#ifdef VELO_HAS_HALF
             Plain<0>::run<Half>,
#else
             nullptr,
#endif
             Vectors::template run<float>, Vectors::template run<double>}};
}

const Types& types() {
    static constexpr Types kPlain = types_of<Plain<16>>();
#if defined(__x86_64__)
    static constexpr Types kAvx2 = types_of<Avx2>();
    static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
    if (has_avx2) return kAvx2;
#endif
    return kPlain;
}

// nullptr: there is no such type.
Kernel kernel(Type type, unsigned width) {
    if (width != 8 && width != 16 && width != 32 && width != 64) return nullptr;
    const Types& all = types();
    const Kernels& kernels = type == Type::kSint ? all.sints : type == Type::kUint ? all.uints : all.floats;
    return kernels[static_cast<unsigned>(std::countr_zero(width)) - 3];
}

// Where an operand goes on, piece by piece.
class Cursor {
 public:
    Cursor(const Operand& operand, const Piece* pieces, const Memory& memory)
        : memory_(memory),
          piece_(operand.pieces == 0 ? nullptr : pieces + operand.offset),
          left_(operand.pieces) {
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
