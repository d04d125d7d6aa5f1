#include "runner.h"

#include <algorithm>
#include <utility>

#include "sampler.h"
#include "table_output.h"

namespace velo::bench {

Runner::Runner(const Options& options, std::vector<std::size_t> lengths, DataCheck& check)
    : options_(options), lengths_(std::move(lengths)), check_(check) {
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size_);
}

// Reductions take whole floats: other sizes are rounded down, and none appears twice in a row.
std::vector<std::size_t> Runner::lengths_for(const Traits& traits) const {
    if (!traits.has_sizes) return {0};
    std::vector<std::size_t> lengths = lengths_;
    if (!traits.reduction) return lengths;
    const auto smaller = [](std::size_t bytes) { return bytes != 0 && bytes < sizeof(float); };
    std::replace_if(lengths.begin(), lengths.end(), smaller, sizeof(float));
    for (auto& bytes : lengths) bytes -= bytes % sizeof(float);
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    return lengths;
}

void Runner::run(Benchmark& benchmark) {
    const auto possible = layouts(benchmark.traits(), options_, world_size_);
    if (possible.empty() && world_rank_ == 0) print_invalid(benchmark.traits(), world_size_);
    for (const Layout& layout : possible) run(benchmark, layout);
}

void Runner::run(Benchmark& benchmark, const Layout& layout) {
    const ProcessGroups groups(layout);
    const Table table(benchmark.traits(), layout, options_);
    if (world_rank_ == 0) table.print_header();
    if (groups.takes_part()) {
        Sampler sampler(options_, check_);
        for (const std::size_t bytes : lengths_for(benchmark.traits())) {
            const Obstacle obstacle = sampler.obstacle(benchmark, bytes, layout.group_size);
            if (obstacle == Obstacle::kNone) {
                const Sample sample = sampler.take(benchmark, groups, bytes);
                if (world_rank_ == 0) table.print_row(sample);
            } else if (world_rank_ == 0) {
                table.print_obstacle(bytes, obstacle, sampler.needed_gb(benchmark, bytes, layout.group_size));
            }
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace velo::bench
