// The message of a send.
#pragma once

#include "fabric/fabric.h"
#include "types/engine.h"

namespace velo::engine {

inline fabric::MessageView view_of(const velo_send& send) {
    return {{static_cast<const std::byte*>(send.part[0]), static_cast<const std::byte*>(send.part[1])},
            {send.bytes[0], send.bytes[1]}};
}

}  // namespace velo::engine
