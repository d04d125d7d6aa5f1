// Collectives that move data: which processes send and receive a block for every process of the group, and
// which only one block or none, decides the buffers and the data check; each benchmark adds only its MPI
// call.
#pragma once

#include "benchmark.h"

namespace velo::bench {

// One block for each process of the group, side by side.
inline std::vector<Block> one_block_for_each(const Call& call, bool received) {
    std::vector<Block> blocks;
    for (int peer = 0; peer < call.group.size; ++peer)
        blocks.push_back({.offset = peer * call.bytes,
                          .bytes = call.bytes,
                          .from = received ? peer : call.group.rank,
                          .to = received ? call.group.rank : peer});
    return blocks;
}

// The same block of `bytes` that every process of the group gets from `from`, at `offset`.
inline Block block_for_everyone(const Call& call, int from, std::size_t offset = 0) {
    return {.offset = offset, .bytes = call.bytes, .from = from};
}

// Counts and displacements of the ...v variants: equal shares.
class EqualShares {
 public:
    void resize(int processes, std::size_t bytes) {
        counts_.assign(processes, static_cast<int>(bytes));
        displacements_.resize(processes);
        for (int i = 0; i < processes; ++i) displacements_[i] = i * static_cast<int>(bytes);
    }
    const int* counts() const { return counts_.data(); }
    const int* displacements() const { return displacements_.data(); }

 private:
    std::vector<int> counts_;
    std::vector<int> displacements_;
};

}  // namespace velo::bench
