// What a process must know of another one in order to connect to it.
#pragma once

#include <cstdint>

#include "platform/shared_file.h"

namespace velo::fabric::shm {

// Travels through the job's start-up exchange. Trivially copyable. Other builds know where the first two are.
struct Address {
    static constexpr std::uint64_t kMagic = 0x34314f4c4556ULL;  // "VELO14": changes with the layout

    std::uint64_t magic;
    std::uint64_t process_name;
    std::uint64_t agreement;     // its digest
    std::uint64_t probe;         // address, in the owner's private memory, of the 8-byte value file.nonce
    std::int64_t xpmem_segment;  // the owner's address space, for XPMEM; 0: not attachable
    platform::FileAddress file;
};

}  // namespace velo::fabric::shm
