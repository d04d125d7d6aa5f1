// Runs benchmarks one after the other on their process groups and sizes.
#pragma once

#include <cstddef>
#include <vector>

#include "data_check.h"
#include "options.h"
#include "process_groups.h"

namespace velo::bench {

// Collective over MPI_COMM_WORLD; prints on rank 0.
class Runner {
 public:
    Runner(const Options& options, std::vector<std::size_t> lengths, DataCheck& check);

    void run(Benchmark& benchmark);

 private:
    void run(Benchmark& benchmark, const Layout& layout);
    std::vector<std::size_t> lengths_for(const Traits& traits) const;

    const Options& options_;
    std::vector<std::size_t> lengths_;
    DataCheck& check_;
    int world_rank_ = 0;
    int world_size_ = 0;
};

}  // namespace velo::bench
