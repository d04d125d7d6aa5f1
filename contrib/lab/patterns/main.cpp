// velo-lab-patterns: runs one communication pattern. Rank 0 prints lines of words:
//   lab 1 RANKS PATTERN
//   point USEC MIN_USEC MAX_USEC REPETITIONS DEFECTS BYTES_COUNTED MESSAGES
//   end
#include <cstdio>
#include <stdexcept>

#include "sampler.h"

namespace velo::lab {
namespace {

std::unique_ptr<Pattern> make_pattern(const World& world, const Options& options) {
    if (options.pattern == "alltoall")
        return make_alltoall(world, options.active ? options.active : world.ranks, options.bytes);
    if (options.pattern == "incast") return make_incast(world, options.bytes, options.window);
    if (options.pattern == "scatterv") return make_scatterv(world, options.bytes, options.hold);
    return make_window(world, options.bytes, options.window, options.pattern == "blocking");
}

void check_ranks(const World& world, const Options& options) {
    if (world.ranks < 2) throw std::invalid_argument("at least 2 ranks are needed");
    if (options.active > world.ranks)
        throw std::invalid_argument("--active: there are only " + std::to_string(world.ranks) + " ranks");
}

long measure(const World& world, const Options& options) {
    const auto pattern = make_pattern(world, options);
    const Sample result = sample(world, *pattern, options.repetitions, options.seconds);
    if (world.rank == 0)
        std::printf("point %.3f %.3f %.3f %ld %ld %.0f %ld\n", result.usec, result.min_usec, result.max_usec,
                    result.repetitions, result.defects, pattern->counted_bytes(),
                    pattern->messages() * result.calls);
    return result.defects;
}

int run(const std::vector<std::string>& words) {
    World world;
    MPI_Comm_rank(world.everyone, &world.rank);
    MPI_Comm_size(world.everyone, &world.ranks);
    try {
        const Options options = parse_options(words);
        check_ranks(world, options);
        if (world.rank == 0) std::printf("lab 1 %d %s\n", world.ranks, options.pattern.c_str());
        const long defects = measure(world, options);
        if (world.rank == 0) std::printf("end\n");
        return defects ? 1 : 0;
    } catch (const std::invalid_argument& error) {
        if (world.rank == 0) std::fprintf(stderr, "velo-lab-patterns: %s\n%s", error.what(), usage().c_str());
        return 2;
    }
}

}  // namespace
}  // namespace velo::lab

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words == std::vector<std::string>{"--help"}) {
        std::fputs(velo::lab::usage().c_str(), stdout);
        return 0;
    }
    MPI_Init(&argc, &argv);
    const int status = velo::lab::run(words);
    MPI_Finalize();
    return status;
}
