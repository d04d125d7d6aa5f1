// What an upper layer asks for when it gets data from the memory of a peer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rma/rma.h"

namespace velo::engine {

// Who copies: whoever makes it fastest, or the reader alone if there is single copy, because its peer has as
// much to copy of its own.
enum class CopyBy : std::uint8_t { kFastest, kReader };

struct Get {
    void* local;
    std::uint64_t remote;
    std::size_t bytes;
    rma::Completion completion;
    CopyBy by = CopyBy::kFastest;
};

}  // namespace velo::engine
