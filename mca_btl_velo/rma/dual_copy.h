// Dual copy: both processes of a large get move parts of it at once. This is the bookkeeping of both roles;
// the copying itself happens outside the engine's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rma/rma.h"
#include "rma/share.h"
#include "singlecopy/singlecopy.h"

namespace velo::rma {

// A get that this process has started and its peer may help with.
struct SharedGet {
    unsigned cell;
    Share share;
    singlecopy::RemoteMemory* memory;
    std::byte* local;
    std::uint64_t remote, bytes;
    Completion completion;

    // Copies what the peer does not claim; after an error claims it all the same.
    void copy_own_part();
    // After that: true once the peer's part is in place too. A part that the peer could not write is copied
    // here.
    bool complete();
    int error = 0;  // errno of a refusal
};

// A get of a peer that this process helps with.
struct Help {
    Share share;
    singlecopy::RemoteMemory* memory;  // of the initiator
    const std::byte* source;
    std::uint64_t destination;
    Completion completion{};  // of an announced get: told how many bytes have been copied here

    // Copies the next part. False if there is nothing left to do.
    bool copy();
    bool copy(const Share::Range& range);
};

// Hands out the cells of this process's segment. Under the engine's lock.
class ShareCells {
 public:
    explicit ShareCells(ShareCell* cells) : cells_(cells) {}

    // One of those from `first` to `end`; nullopt: all are in use.
    std::optional<unsigned> take(unsigned first, unsigned end);
    void give_back(unsigned cell) { busy_ &= ~(1U << cell); }
    // A new generation of the cell, never equal to the one before. The same comes again after 2^24 transfers,
    // all of them between a helper's looking and its claim.
    std::uint32_t next_generation(unsigned cell) { return ++generations_[cell] % Share::kGenerations; }
    ShareCell* at(unsigned cell) const { return cells_ + cell; }

 private:
    ShareCell* cells_;
    std::uint32_t busy_ = 0;
    std::array<std::uint32_t, fabric::shm::kShareCells> generations_{};
};

}  // namespace velo::rma
