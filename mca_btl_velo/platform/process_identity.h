// Who this process is, as far as other processes on the machine need it in order to reach its memory.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace velo::platform {

// Inode of this process's PID namespace, 0 if /proc does not tell. Two processes with the same non-zero value
// can name each other by pid.
std::uint64_t pid_namespace();

// 64 random bits from the kernel; never 0.
std::uint64_t random_nonce();

}  // namespace velo::platform
