// Fills send buffers with data that names its sender, receiver, message and iteration, and verifies what
// arrived: a lost, stale, misplaced or altered byte is a defect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "benchmark.h"

namespace velo::bench {

// The first wrong byte of a block, counted from the start of the block.
struct Mismatch {
    std::size_t offset;
    unsigned expected;
    unsigned found;
};

class DataCheck {
 public:
    // Reads the hidden test aid VELO_MPI_BENCH_CORRUPT=RANK:OFFSET, with which RANK sends one wrong byte.
    explicit DataCheck(int world_rank);

    // Before a call: what this process sends, and garbage where data will arrive.
    void fill(const Benchmark& benchmark, const Call& call) const;

    // After it. Returns the number of defective blocks and reports the first one of each sample on stderr.
    int verify(const Benchmark& benchmark, const Call& call);

    // A new benchmark or size: its first defect will be reported again.
    void start_sample() { reported_ = false; }

    long defects() const { return defects_; }

    // The byte of what this process sends that is to be wrong; -1: none.
    long corrupt() const { return corrupt_offset_ ? static_cast<long>(*corrupt_offset_) : -1; }

 private:
    void report(const Benchmark& benchmark, const Call& call, const Block& block, const Mismatch& mismatch);

    int world_rank_;
    std::optional<std::size_t> corrupt_offset_;
    bool reported_ = false;
    long defects_ = 0;
};

}  // namespace velo::bench
