// Lines of the log that ask for no memory, for where nothing may fail.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "types/engine.h"

namespace velo {

// As printf; what is too long is cut.
[[gnu::format(printf, 3, 4)]] inline void log_line(const velo_config& config, int level, const char* format,
                                                   ...) noexcept {
    char line[512];
    std::va_list values;
    va_start(values, format);
    (void)std::vsnprintf(line, sizeof line, format, values);
    va_end(values);
    config.log(config.context, level, line);
}

}  // namespace velo
