// Blocks that readers copy out of the giver's own memory, by single copy: one copy instead of two, for a
// system call, and the giver waits until all have read. Which takes less depends on whether the data are in
// the readers' caches already, and on how this processor stores into chunks best, so the operations
// themselves show it, for each kind and size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "board/layout.h"
#include "platform/contest.h"
#include "singlecopy/singlecopy.h"
#include "types/engine.h"

namespace velo::board {

class Direct {
 public:
    // Bytes of a block, at all members alike, from which on it may be read directly, and its way is chosen.
    static constexpr std::size_t kLeast = 16384, kLeastTried = 4096;
    // From which on a root's blocks of many members are expected to be better read than spread.
    static constexpr std::size_t kLeastSpread = 65536;

    struct Choice {
        std::string mechanism = "copy";  // of btl_velo_single_copy_mechanism; "copy": none
        std::uint64_t from = 0;  // bytes from which on blocks are read directly; 0: where it is faster
    };

    Direct(const Choice& choice, std::uint32_t members);

    // Of this process. Throws Failure where the mechanism was asked for by name, and there is none.
    static Memory memory(const Choice& choice);

    // In chunks, stored as usual or by the processor's string instruction, or directly.
    enum Way : std::uint8_t { kInChunks, kByString, kDirectly, kWays };
    // How what this member gives is to go.
    Way way(velo_board_operation operation, std::uint64_t bytes) const {
        if (from_ == 0) return static_cast<Way>(kinds_[operation].contest.way(bytes));
        return bytes >= from_ ? kDirectly : kInChunks;
    }
    // An operation in which it could choose is over. `ticks`: that it took whoever was in it longest; asked
    // for where that counts. A way is judged by that, and not by what passes from one operation to the next:
    // who gives in chunks is back early, and what a program does in between would hide the difference.
    template <typename Ticks>
    void went(velo_board_operation operation, std::uint64_t bytes, Ticks ticks) {
        Kind& kind = kinds_[operation];
        if (kind.contest.tries(bytes)) kind.spent += ticks();
        kind.contest.went(bytes, [&] { return kind.spent; });
    }

    // Whether that member's memory can be read; tried once. Throws as `memory`.
    bool reaches(std::uint32_t member, const Memory& memory);
    // Of one that can. 0, or an errno.
    int read(std::uint32_t member, void* to, std::uint64_t address, std::size_t bytes) {
        return readers_[member].memory->read(to, address, bytes);
    }
    bool has_reached(std::uint32_t member) const { return readers_[member].memory != nullptr; }

 private:
    // Up to 1 MiB and more.
    using Contest = platform::Contest<kLeastTried, 9, 16, kWays, kLeast>;
    struct Kind {
        Contest contest;
        std::uint64_t spent = 0;  // ticks, in trials
    };
    struct Reader {
        bool tried = false;
        std::unique_ptr<singlecopy::RemoteMemory> memory;
    };

    std::string mechanism_;
    std::uint64_t from_;
    std::array<Kind, VELO_BOARD_REDUCE_SCATTER_BLOCK + 1> kinds_;
    std::vector<Reader> readers_;
};

}  // namespace velo::board
