// Blocks that readers copy out of the giver's own memory, by single copy: one copy instead of two, for a
// system call, and the giver waits until all have read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/board/layout.h"
#include "singlecopy/singlecopy.h"
#include "types/engine.h"

namespace velo::board {

class Direct {
 public:
    // Bytes of a block, at all members alike, from which on it may be read directly.
    static constexpr std::size_t kLeast = 16384;
    // Of a root's blocks, each for one of many members.
    static constexpr std::size_t kLeastSpread = 65536;

    struct Choice {
        std::string mechanism = "copy";  // of btl_velo_single_copy_mechanism; "copy": none
        std::uint64_t from = 0;          // bytes from which on blocks are read directly; 0: by operation
    };

    Direct(const Choice& choice, std::uint32_t members);

    // Of this process. Throws Failure where the mechanism was asked for by name, and there is none.
    static Memory memory(const Choice& choice);

    // Whether what this member gives is to be read out of its memory. Among many, blocks that each go to
    // another member need many runs of chunks; all else goes in chunks.
    bool gives(velo_board_operation operation, std::uint64_t bytes) const {
        if (from_ != 0) return bytes >= from_;
        if (readers_.size() <= Shape::kMostExchange) return false;
        return (operation == VELO_BOARD_ALLTOALL && bytes >= kLeast) ||
               (operation == VELO_BOARD_SCATTER && bytes >= kLeastSpread);
    }

    // Whether that member's memory can be read; tried once. Throws as `memory`.
    bool reaches(std::uint32_t member, const Memory& memory);
    // Of one that can. 0, or an errno.
    int read(std::uint32_t member, void* to, std::uint64_t address, std::size_t bytes) {
        return readers_[member].memory->read(to, address, bytes);
    }
    bool has_reached(std::uint32_t member) const { return readers_[member].memory != nullptr; }

 private:
    struct Reader {
        bool tried = false;
        std::unique_ptr<singlecopy::RemoteMemory> memory;
    };

    std::string mechanism_;
    std::uint64_t from_;
    std::vector<Reader> readers_;
};

}  // namespace velo::board
