// Data into a chunk of the outbox.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/fabric.h"
#include "platform/copy.h"

namespace velo::engine {

// Shorter data is copied by vectors, whoever reads it.
inline constexpr std::size_t kLeastNonTemporal = 1024;

// Past the caches goes all but what lies beside the chunk's header.
inline void fill(std::byte* to, const fabric::MessageView& message, std::size_t offset, std::size_t bytes,
                 platform::Copying by) {
    if (by == platform::Copying::kString) return message.copy_by(platform::copy_by_string, to, offset, bytes);
    const bool streams = by == platform::Copying::kNonTemporal && bytes >= kLeastNonTemporal;
    const std::size_t through = streams ? -reinterpret_cast<std::uintptr_t>(to) % 64 : bytes;
    if (through > 0) message.copy_to(to, offset, through);
    if (streams) message.stream_to(to + through, offset + through, bytes - through);
}

}  // namespace velo::engine
