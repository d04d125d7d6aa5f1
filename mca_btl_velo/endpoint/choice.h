// A way that has turned out to be faster, as a line of the log.
#pragma once

#include <cstddef>
#include <cstdio>

#include "types/engine.h"

namespace velo::endpoint {

// `what`: messages or gets; `way`: what follows. Asks for no memory.
inline void tell_choice(const velo_config& config, const char* what, std::size_t bytes, const char* way) {
    char text[160];
    (void)std::snprintf(text, sizeof text, "%s of %zu bytes and their like %s", what, bytes, way);
    config.log(config.context, 20, text);
}

}  // namespace velo::endpoint
