// Data into a chunk of the outbox.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/fabric.h"

namespace velo::endpoint {

// By vectors; past the caches, for a far reader.
enum class Storing : std::uint8_t { kVectors, kPastCaches };

inline constexpr Storing storing_for(bool far) {
    return far ? Storing::kPastCaches : Storing::kVectors;
}

// Shorter data goes through the caches, whoever reads it.
inline constexpr std::size_t kLeastStreamed = 1024;

// Past the caches goes all but what lies beside the chunk's header.
inline void fill(std::byte* to, const fabric::MessageView& message, std::size_t offset, std::size_t bytes,
                 Storing by) {
    const bool streams = by == Storing::kPastCaches && bytes >= kLeastStreamed;
    const std::size_t through = streams ? -reinterpret_cast<std::uintptr_t>(to) % 64 : bytes;
    if (through > 0) message.copy_to(to, offset, through);
    if (streams) message.stream_to(to + through, offset + through, bytes - through);
}

}  // namespace velo::endpoint
