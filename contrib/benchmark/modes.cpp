#include "modes.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>

namespace velo::bench {
namespace {

constexpr struct {
    const char* word;
    int (*run)(const Words&, int);
} kModes[] = {{"points", run_points}, {"phases", run_phases}, {"memory", run_memory},
              {"flood", run_flood},   {"calls", run_calls},   {"overlap", run_overlap}};

}  // namespace

Mode mode_of(const Words& command) {
    const Words words(command.begin() + 1, command.end());
    for (const auto& [word, run] : kModes)
        if (!words.empty() && words[0] == word) return {run, {words.begin() + 1, words.end()}};
    return {};
}

void print_library(int rank) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    int ranks = 0;
    MPI_Get_library_version(text, &length);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::replace_if(
        text, text + length, [](char c) { return c == '\n' || c == '\t'; }, ' ');
    if (rank == 0) std::printf("bench 1 %d %.200s\n", ranks, text);
}

}  // namespace velo::bench
