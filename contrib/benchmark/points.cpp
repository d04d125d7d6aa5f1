// One benchmark at several sizes, each a median of batches.
#include <strings.h>

#include <algorithm>
#include <cstdio>

#include "cache_line.h"
#include "modes.h"
#include "sampler.h"

namespace velo::bench {
namespace {

struct PointOptions {
    Options options;
    Effort effort;
    std::vector<std::size_t> sizes = {2048};
    int active = 0, groups = 1;
    double line_seconds = 0;
};

std::vector<std::size_t> parse_sizes(std::string text) {
    std::vector<std::size_t> sizes;
    for (std::size_t comma = 0; comma != std::string::npos; text.erase(0, comma + 1)) {
        comma = text.find(',');
        sizes.push_back(parse_int("-bytes", text.substr(0, comma), 0, 1 << 30));
        if (comma == std::string::npos) break;
    }
    return sizes;
}

PointOptions parse_points(const Words& words) {
    if (words.empty()) throw UsageError("points: name a benchmark");
    PointOptions result;
    result.options.benchmarks = {words[0]};
    result.options.window = 1;
    if (words.size() % 2 == 0) throw UsageError("option " + words.back() + " has no value");
    for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
        const std::string& name = words[i];
        const std::string& value = words[i + 1];
        if (name == "--bytes")
            result.sizes = parse_sizes(value);
        else if (name == "--seconds")
            result.effort.seconds = parse_positive("-seconds", value);
        else if (name == "--repetitions")
            result.effort.most_calls = parse_int("-repetitions", value, 1, 1 << 30);
        else if (name == "--calls")
            result.effort.calls = parse_int("-calls", value, 1, 1 << 30);
        else if (name == "--groups")
            result.groups = parse_int("-groups", value, 1, 1 << 20);
        else if (name == "--window")
            result.options.window = parse_int("-window", value, 1, 1 << 16);
        else if (name == "--one-buffer")
            result.effort.one_buffer = parse_int("-one-buffer", value, 0, 1) == 1;
        else if (name == "--request")
            result.effort.request = parse_int("-request", value, 0, 1) == 1;
        else if (name == "--touch")
            result.effort.touch = parse_int("-touch", value, 0, 1) == 1;
        else if (name == "--active")
            result.active = parse_int("-active", value, 2, 1 << 20);
        else if (name == "--hold") {
            result.options.root_hold = parse_int("-hold", value, 1, 1 << 20);
            result.options.root_shift = true;
        } else if (name == "--line")
            result.line_seconds = parse_positive("-line", value);
        else
            throw UsageError("unknown option " + name);
    }
    return result;
}

Layout layout_of(const Traits& traits, int active, int groups) {
    int world = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (active > world) throw UsageError("--active: there are only " + std::to_string(world) + " ranks");
    const bool pairs = traits.kind == Kind::kSingleTransfer;
    if (world < 2 || (world % 2 && (pairs || traits.report == Report::kMessageRate)))
        throw UsageError("an even number of ranks is needed");
    if (pairs) return {.world = world, .group_size = 2, .groups = world / 2};
    const int size = active ? active : world / groups;
    if (size < 2 || size > world / groups)
        throw UsageError("--groups: there are not " + std::to_string(groups) +
                         " times as many ranks as each needs");
    return {.world = world, .group_size = size, .groups = groups};
}

long measure_sizes(Benchmark& benchmark, const ProcessGroups& groups, const PointOptions& options, int rank) {
    DataCheck check(rank);
    Sampler sampler(options.options, check);
    CacheLine line(options.line_seconds > 0 ? groups.active() : MPI_COMM_NULL);
    long defects = 0;
    CacheLine::Distance before = line.measure(options.line_seconds);
    for (const std::size_t bytes : options.sizes) {
        const Point point = sampler.measure(benchmark, groups, bytes, options.effort);
        defects += point.defects;
        const CacheLine::Distance after = line.measure(options.line_seconds);
        if (rank == 0 && after.usec > 0)
            std::printf("line %zu %.6g %.4g %.6g %.4g\n", bytes, before.usec, before.slowdown, after.usec,
                        after.slowdown);
        before = after;
        if (rank != 0) continue;
        std::printf("point %s %zu %.6g %.6g %.6g %ld %ld %ld %ld %.6g\n", benchmark.traits().name, bytes,
                    point.usec, point.min_usec, point.max_usec, point.iterations, point.repetitions,
                    point.defects, point.messages, point.mbytes_per_second);
        if (point.counted > 0) std::printf("counted %zu %ld %ld\n", bytes, point.counted, point.delayed);
        std::fflush(stdout);
    }
    return defects;
}

}  // namespace

int run_points(const Words& words, int rank) {
    const PointOptions options = parse_points(words);
    const BenchmarkList selected = select_benchmarks(options.options);
    Benchmark& benchmark = *selected.front();
    const Layout layout = layout_of(benchmark.traits(), options.active, options.groups);
    print_library(rank);
    long defects = 0;
    {
        const ProcessGroups groups(layout);
        if (groups.takes_part()) defects = measure_sizes(benchmark, groups, options, rank);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Bcast(&defects, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0) std::puts("end");
    return defects ? 1 : 0;
}

}  // namespace velo::bench
