// Data into a chunk of the outbox, for a near reader or a far one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/fabric.h"

namespace velo::endpoint {

// Shorter data goes through the caches, whoever reads it.
inline constexpr std::size_t kLeastStreamed = 1024;

// Past the caches for a far reader, but for what lies beside the chunk's header.
inline void fill(std::byte* to, const fabric::MessageView& message, std::size_t offset, std::size_t bytes,
                 bool far) {
    const bool streams = far && bytes >= kLeastStreamed;
    const std::size_t through = streams ? -reinterpret_cast<std::uintptr_t>(to) % 64 : bytes;
    if (through > 0) message.copy_to(to, offset, through);
    if (streams) message.stream_to(to + through, offset + through, bytes - through);
}

}  // namespace velo::endpoint
