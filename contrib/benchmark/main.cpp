// velo-mpi-bench: a benchmark of MPI that follows the IMB-MPI1 user's guide, and by its first word something
// else (modes.h).
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "data_check.h"
#include "modes.h"
#include "options.h"
#include "runner.h"
#include "table_output.h"

namespace {

using namespace velo::bench;

constexpr int kExitOk = 0;
constexpr int kExitDefects = 1;
constexpr int kExitUsage = 2;

// Rank 0 reads the file and shares its lengths, or their absence, with all.
std::vector<std::size_t> shared_lengths(const std::string& path, int rank) {
    std::vector<unsigned long> lengths;
    std::string problem;
    if (rank == 0) {
        try {
            const auto read = read_lengths(path);
            lengths.assign(read.begin(), read.end());
        } catch (const UsageError& error) {
            problem = error.what();
        }
    }
    unsigned long count = lengths.size();
    MPI_Bcast(&count, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    if (count == 0) throw UsageError(problem);
    lengths.resize(count);
    MPI_Bcast(lengths.data(), static_cast<int>(count), MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    return {lengths.begin(), lengths.end()};
}

bool any_process_has_defects(const DataCheck& check) {
    long defects = check.defects();
    MPI_Allreduce(MPI_IN_PLACE, &defects, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return defects != 0;
}

void print_names() {
    for (const auto& benchmark : all_benchmarks())
        std::printf("%s%s\n", benchmark->traits().name,
                    benchmark->traits().runs_by_default ? "" : " (non-default)");
}

int run(const std::vector<std::string>& command, const Options& options, int rank) {
    const BenchmarkList selected = select_benchmarks(options);
    const auto lengths = options.lengths_file.empty() ? power_of_two_lengths(options)
                                                      : shared_lengths(options.lengths_file, rank);
    if (rank == 0) print_preamble(options, command, selected);
    DataCheck check(rank);
    Runner runner(options, lengths, check);
    for (const auto& benchmark : selected) runner.run(*benchmark);
    const bool failed = any_process_has_defects(check);
    if (rank == 0) print_end();
    return failed ? kExitDefects : kExitOk;
}

int run_command_line(int argc, char** argv, int rank) {
    const std::vector<std::string> command(argv, argv + argc);
    try {
        if (const Mode mode = mode_of(command)) return mode.run(mode.words, rank);
        const Options options = parse_options(argc, argv);
        if (options.help || options.list) {
            if (rank != 0) return kExitOk;
            if (options.help) std::fputs(usage().c_str(), stdout);
            if (options.list) print_names();
            return kExitOk;
        }
        return run(command, options, rank);
    } catch (const UsageError& error) {
        if (rank == 0) std::fprintf(stderr, "velo-mpi-bench: %s\n", error.what());
        return kExitUsage;
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int status = kExitOk;
    try {
        status = run_command_line(argc, argv, rank);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "velo-mpi-bench: rank %d: %s\n", rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, kExitUsage);
    }
    MPI_Finalize();
    return status;
}
