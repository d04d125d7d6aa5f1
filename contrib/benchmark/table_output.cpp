#include "table_output.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <numeric>

namespace velo::bench {
namespace {

constexpr int kColumnWidth = 13;
constexpr std::size_t kShortestRule = 52;

void print_rule(std::size_t length) {
    std::printf("#%s\n", std::string(length - 1, '-').c_str());
}

double megabytes_per_second(double volume, double usec) {
    return usec > 0 ? volume / usec : 0;
}

void print_lengths(const Options& options) {
    if (!options.lengths_file.empty()) {
        std::printf("# Message lengths were user defined\n");
        return;
    }
    std::printf("# Minimum message length in bytes:   %d\n", options.zero_size ? 0 : 1 << options.min_log);
    std::printf("# Maximum message length in bytes:   %d\n", 1 << options.max_log);
}

void print_machine() {
    utsname machine{};
    uname(&machine);
    const std::time_t now = std::time(nullptr);
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    int version = 0;
    int subversion = 0;
    MPI_Get_library_version(library, &length);
    MPI_Get_version(&version, &subversion);
    std::printf("# Date                  : %s", std::ctime(&now));
    std::printf("# Machine               : %s\n", machine.machine);
    std::printf("# System                : %s\n", machine.sysname);
    std::printf("# Release               : %s\n", machine.release);
    std::printf("# MPI Version           : %d.%d\n", version, subversion);
    std::printf("# MPI Library           : %s\n\n", library);
}

// The IMB has two decimals, of which a message inside a node leaves one and a half.
void print_time(double usec) {
    std::printf("%*.*f", kColumnWidth, usec < 10 ? 3 : 2, usec);
}

}  // namespace

void print_preamble(const Options& options, const std::vector<std::string>& command,
                    const BenchmarkList& list) {
    print_rule(65);
    std::printf("#    Velo MPI Benchmarks, MPI-1 part\n");
    print_rule(65);
    print_machine();
    std::printf("# Calling sequence was:\n\n#");
    for (const auto& word : command) std::printf(" %s", word.c_str());
    std::printf("\n\n");
    print_lengths(options);
    std::printf("#\n# MPI_Datatype                   :   MPI_BYTE\n");
    std::printf("# MPI_Datatype for reductions    :   MPI_FLOAT\n");
    std::printf("# MPI_Op                         :   MPI_SUM\n#\n\n");
    std::printf("# List of Benchmarks to run:\n\n");
    for (const auto& benchmark : list) std::printf("# %s\n", benchmark->traits().name);
}

void print_end() {
    std::printf("\n\n# All processes entering MPI_Finalize\n\n");
    std::fflush(stdout);
}

void print_invalid(const Traits& traits, int processes) {
    std::printf("\n# !! Benchmark %s invalid for %d processes !!\n\n", traits.name, processes);
}

Table::Table(const Traits& traits, const Layout& layout, const Options& options)
    : traits_(traits), layout_(layout), options_(options) {}

// A pair of processes has one time; where several pairs are summed up, the table shows their range.
bool Table::single_time() const {
    return traits_.kind == Kind::kSingleTransfer && (layout_.groups == 1 || each_group());
}

std::vector<std::string> Table::columns() const {
    std::vector<std::string> names;
    if (each_group()) names.emplace_back("Group");
    if (traits_.has_sizes) names.emplace_back("#bytes");
    names.emplace_back("#repetitions");
    if (traits_.report == Report::kMessageRate) {
        names.insert(names.end(), {"Mbytes/sec", "Msg/sec"});
    } else if (single_time()) {
        names.emplace_back("t[usec]");
    } else {
        names.insert(names.end(), {"t_min[usec]", "t_max[usec]", "t_avg[usec]"});
    }
    if (traits_.report == Report::kTimeAndBandwidth) names.emplace_back("Mbytes/sec");
    if (options_.check_every_iteration) names.emplace_back("defects");
    return names;
}

void Table::print_groups() const {
    if (layout_.groups == 1) {
        std::printf("# #processes = %d\n", layout_.group_size);
    } else {
        std::printf("# ( %d groups of %d processes each running simultaneous )\n", layout_.groups,
                    layout_.group_size);
        for (int group = 0; group < layout_.groups; ++group) {
            std::printf("# Group %2d: ", group);
            for (int rank = 0; rank < layout_.group_size; ++rank)
                std::printf(" %4d", group * layout_.group_size + rank);
            std::printf("\n#\n");
        }
    }
    if (layout_.idle() > 0)
        std::printf("# ( %d additional process%s waiting in MPI_Barrier)\n", layout_.idle(),
                    layout_.idle() == 1 ? "" : "es");
}

void Table::print_header() const {
    const auto names = columns();
    const std::size_t rule = std::max(kShortestRule, names.size() * kColumnWidth);
    std::printf("\n");
    print_rule(rule);
    std::printf("# Benchmarking %s%s\n", layout_.groups > 1 ? "Multi-" : "", traits_.name);
    print_groups();
    print_rule(rule);
    for (const auto& name : names) std::printf("%*s", kColumnWidth, name.c_str());
    std::printf("\n");
    std::fflush(stdout);
}

void Table::print_times(const Sample& sample, const Share* first, const Share* last) const {
    const auto less = [](const Share& a, const Share& b) { return a.usec_per_call < b.usec_per_call; };
    const auto [fastest, slowest] = std::minmax_element(first, last, less);
    const double sum = std::accumulate(
        first, last, 0.0, [](double total, const Share& share) { return total + share.usec_per_call; });
    const double divisor = traits_.time_divisor;
    const double longest = slowest->usec_per_call / divisor;
    const double bytes = static_cast<double>(sample.bytes);
    if (traits_.report == Report::kMessageRate) {
        const int pairs = layout_.group_size / 2;
        const double messages = traits_.volume_factor * pairs * sample.window;
        const double per_usec = megabytes_per_second(messages, longest);
        std::printf("%*.2f%*.0f", kColumnWidth, bytes * per_usec, kColumnWidth, 1e6 * per_usec);
        return;
    }
    if (!single_time()) print_time(fastest->usec_per_call / divisor);
    print_time(longest);
    if (!single_time()) print_time(sum / divisor / static_cast<double>(last - first));
    if (traits_.report == Report::kTimeAndBandwidth)
        std::printf("%*.2f", kColumnWidth, megabytes_per_second(traits_.volume_factor * bytes, longest));
}

// The row of one group, or of all groups together where `group_index` is negative.
void Table::print_group_row(const Sample& sample, int group_index) const {
    const Share* first = sample.shares.data();
    const Share* last = first + sample.shares.size();
    if (group_index >= 0) {
        first += std::ptrdiff_t{group_index} * layout_.group_size;
        last = first + layout_.group_size;
        std::printf("%*d", kColumnWidth, group_index);
    }
    if (traits_.has_sizes) std::printf("%*zu", kColumnWidth, sample.bytes);
    std::printf("%*d", kColumnWidth, sample.repetitions);
    print_times(sample, first, last);
    if (options_.check_every_iteration)
        std::printf("%*.0f", kColumnWidth,
                    std::accumulate(first, last, 0.0,
                                    [](double total, const Share& share) { return total + share.defects; }));
    std::printf("\n");
}

void Table::print_row(const Sample& sample) const {
    if (each_group()) {
        std::printf("\n");
        for (int group = 0; group < layout_.groups; ++group) print_group_row(sample, group);
    } else {
        print_group_row(sample, -1);
    }
    std::fflush(stdout);
}

void Table::print_obstacle(std::size_t bytes, Obstacle obstacle, double needed_gb) const {
    if (obstacle == Obstacle::kMemory)
        std::printf("%*zu out-of-mem.; needed X=%8.3f GB; use flag \"-mem X\"\n", kColumnWidth, bytes,
                    needed_gb);
    else
        std::printf("%*zu int-overflow.; #bytes times #processes exceeds the range of int\n", kColumnWidth,
                    bytes);
}

}  // namespace velo::bench
