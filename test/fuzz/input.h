// Takes values out of the bytes that the fuzzer gives; zeros when they are used up.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "targets.h"

namespace velo::fuzz {

class Input {
 public:
    explicit Input(Bytes bytes) : rest_(bytes) {}

    bool empty() const { return rest_.empty(); }

    template <typename T>
    T take() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value{};
        Bytes bytes = take_bytes(sizeof value);
        if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
        return value;
    }
    // At most so many.
    Bytes take_bytes(std::size_t count) {
        count = std::min(count, rest_.size());
        Bytes taken = rest_.first(count);
        rest_ = rest_.subspan(count);
        return taken;
    }

 private:
    Bytes rest_;
};

}  // namespace velo::fuzz
