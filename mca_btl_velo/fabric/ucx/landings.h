// Transfers past the mailbox that arrive in fragments from one sender, in whatever order the network brings
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "fabric/ucx/messages.h"

namespace velo::fabric::ucx {

class Landings {
 public:
    // Memory for a transfer that begins, nullptr if nobody has asked for it.
    using Place = std::function<std::byte*()>;

    // Copies a fragment to its place. `header`: what came with it for the receiver, the same with each
    // fragment of a transfer. Returns what is wrong with it, nullptr if nothing: a protocol error of the
    // sender, and nothing has been written. `*complete`: it was the last one.
    const char* arrive(const Fragment& fragment, std::span<const std::byte> header,
                       std::span<const std::byte> data, const Place& place, bool* complete);

 private:
    struct Landing {
        std::byte* to;
        std::uint64_t total, arrived;
        std::vector<std::byte> header;
    };
    std::unordered_map<std::uint32_t, Landing> landings_;  // by Fragment::id
};

}  // namespace velo::fabric::ucx
