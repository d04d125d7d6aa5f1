// Prints on rank 0 what IMB-MPI1 prints: a preamble, one section with a table for each benchmark and number
// of processes, an end mark.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "process_groups.h"
#include "sampler.h"

namespace velo::bench {

// MPI must be initialised.
void print_preamble(const Options& options, const std::vector<std::string>& command,
                    const BenchmarkList& list);
void print_end();
void print_invalid(const Traits& traits, int processes);

class Table {
 public:
    Table(const Traits& traits, const Layout& layout, const Options& options);

    void print_header() const;
    void print_row(const Sample& sample) const;
    void print_obstacle(std::size_t bytes, Obstacle obstacle, double needed_gb) const;

 private:
    void print_groups() const;
    std::vector<std::string> columns() const;
    void print_group_row(const Sample& sample, int group_index) const;
    void print_times(const Sample& sample, const Share* first, const Share* last) const;
    bool each_group() const { return options_.multi == MultiMode::kEveryGroup; }
    bool single_time() const;

    const Traits& traits_;
    Layout layout_;
    const Options& options_;
};

}  // namespace velo::bench
