#include "rma/atomic.h"

#include <algorithm>
#include <atomic>
#include <type_traits>

namespace velo::rma {
namespace {

template <typename T, typename Update>
T fetch_update(std::atomic_ref<T> word, Update update) {
    T old = word.load();
    while (!word.compare_exchange_weak(old, update(old))) {
    }
    return old;
}

template <typename T>
T execute(velo_atomic operation, T* address, T operand, T compare) {
    std::atomic_ref<T> word(*address);
    using Signed = std::make_signed_t<T>;
    switch (operation) {
        case VELO_ATOMIC_ADD:
            return word.fetch_add(operand);
        case VELO_ATOMIC_AND:
            return word.fetch_and(operand);
        case VELO_ATOMIC_OR:
            return word.fetch_or(operand);
        case VELO_ATOMIC_XOR:
            return word.fetch_xor(operand);
        case VELO_ATOMIC_SWAP:
            return word.exchange(operand);
        case VELO_ATOMIC_MIN:
            return fetch_update(word, [=](T old) {
                return static_cast<T>(std::min(static_cast<Signed>(old), static_cast<Signed>(operand)));
            });
        case VELO_ATOMIC_MAX:
            return fetch_update(word, [=](T old) {
                return static_cast<T>(std::max(static_cast<Signed>(old), static_cast<Signed>(operand)));
            });
        case VELO_ATOMIC_CSWAP:
            word.compare_exchange_strong(compare, operand);
            return compare;
    }
    return 0;
}

}  // namespace

bool atomic_valid(std::uint32_t operation, unsigned width, std::uint64_t address) noexcept {
    return operation <= VELO_ATOMIC_CSWAP && (width == 4 || width == 8) && address % width == 0 &&
           address != 0;
}

std::uint64_t atomic_execute(velo_atomic operation, unsigned width, std::uint64_t address,
                             std::uint64_t operand, std::uint64_t compare) noexcept {
    if (width == 8) {
        return execute(operation, reinterpret_cast<std::uint64_t*>(address), operand, compare);
    }
    return execute(operation, reinterpret_cast<std::uint32_t*>(address), static_cast<std::uint32_t>(operand),
                   static_cast<std::uint32_t>(compare));
}

}  // namespace velo::rma
