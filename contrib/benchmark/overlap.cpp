// Calls one by one, each after a barrier; and what they cost beside a computation, by the method of IMB-NBC
// and by that of ESPGOAL (section 6.6): a call is begun, a matrix is multiplied in blocks, the end is waited
// for.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "modes.h"
#include "sampler.h"

namespace velo::bench {
namespace {

struct OverlapOptions {
    Options options;
    std::size_t bytes = 8;
    int matrix = 0;      // rows of it; 0: as much work as lasts as long as the call alone
    int block = 16;      // rows of a block
    bool tests = false;  // MPI_Test after each product of blocks
    double seconds = 0.5;
};

OverlapOptions parse_overlap(const Words& words, const char* mode) {
    if (words.size() % 2 == 0) throw UsageError(std::string(mode) + ": a benchmark, and options with values");
    OverlapOptions result;
    result.options.benchmarks = {words[0]};
    for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
        const std::string& name = words[i];
        const std::string& value = words[i + 1];
        if (name == "--bytes")
            result.bytes = parse_int("-bytes", value, 0, 1 << 30);
        else if (name == "--matrix")
            result.matrix = parse_int("-matrix", value, 0, 1 << 14);
        else if (name == "--block")
            result.block = parse_int("-block", value, 1, 1 << 10);
        else if (name == "--tests")
            result.tests = parse_int("-tests", value, 0, 1) == 1;
        else if (name == "--seconds")
            result.seconds = parse_positive("-seconds", value);
        else
            throw UsageError("unknown option " + name);
    }
    if (result.matrix % result.block != 0) throw UsageError("--matrix has to be a multiple of --block");
    return result;
}

double median(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// A product of two matrices of floats that lie block by block.
class Multiplication {
 public:
    Multiplication(int rows, int block)
        : blocks_(rows / block),
          block_(block),
          first_(std::size_t(rows) * rows, 0.5F),
          second_(first_),
          result_(first_) {}

    long products() const { return long{blocks_} * blocks_ * blocks_; }

    // So many products of blocks, round and round.
    template <typename Between>
    void run(long products, Between between) {
        long n = 0;
        while (n < products)
            for (int i = 0; i < blocks_; ++i)
                for (int j = 0; j < blocks_; ++j)
                    for (int l = 0; l < blocks_ && n < products; ++l, ++n) {
                        multiply(at(first_, i, l), at(second_, l, j), at(result_, i, j));
                        between();
                    }
        // So that it has to be there.
        asm volatile("" : : "r"(result_.data()) : "memory");
    }

 private:
    float* at(std::vector<float>& matrix, int row, int column) const {
        return &matrix[(std::size_t(row) * blocks_ + column) * block_ * block_];
    }
    // Not inlined: what is compared has to be the same code, alone and beside a call.
    [[gnu::noinline]] void multiply(const float* a, const float* b, float* c) const {
        for (int i = 0; i < block_; ++i)
            for (int l = 0; l < block_; ++l) {
                const float factor = a[i * block_ + l];
                for (int j = 0; j < block_; ++j) c[i * block_ + j] += factor * b[l * block_ + j];
            }
    }

    int blocks_, block_;
    std::vector<float> first_, second_, result_;
};

// Buffers for one benchmark at one size, and its calls.
class Caller {
 public:
    Caller(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes, int rank)
        : benchmark_(benchmark), comm_(groups.active()), check_(rank) {
        const Group& group = groups.group();
        benchmark.prepare(group, bytes, 1);
        send_.resize(std::max<std::size_t>(benchmark.send_bytes(bytes, group.size, 1), 1));
        receive_.resize(std::max<std::size_t>(benchmark.receive_bytes(bytes, group.size, 1), 1));
        call_ = std::make_unique<Call>(Call{.group = group,
                                            .bytes = bytes,
                                            .iteration = 0,
                                            .root = 0,
                                            .window = 1,
                                            .send = send_.data(),
                                            .receive = receive_.data(),
                                            .stride = bytes});
    }

    MPI_Comm comm() const { return comm_; }
    void run() { benchmark_.run(*call_); }
    void start() { bench::start(benchmark_, *call_, &request_); }
    void wait() { MPI_Wait(&request_, MPI_STATUS_IGNORE); }
    void test() {
        int there;
        if (request_ != MPI_REQUEST_NULL) MPI_Test(&request_, &there, MPI_STATUS_IGNORE);
    }
    void fill() {
        call_->corrupt = check_.corrupt();
        check_.fill(benchmark_, *call_);
    }
    void verify() { check_.verify(benchmark_, *call_); }
    long all_defects() {
        long defects = check_.defects() + benchmark_.defects();
        MPI_Allreduce(MPI_IN_PLACE, &defects, 1, MPI_LONG, MPI_SUM, comm_);
        return defects;
    }
    long agreed(long value) const {
        MPI_Bcast(&value, 1, MPI_LONG, 0, comm_);
        return value;
    }
    double slowest(double value) const {
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, comm_);
        return value;
    }

 private:
    Benchmark& benchmark_;
    MPI_Comm comm_;
    DataCheck check_;
    std::vector<std::byte> send_, receive_;
    std::unique_ptr<Call> call_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

// Repetitions that show how long one takes.
constexpr int kWarmUp = 20;
constexpr double kWarmSeconds = 0.005;
constexpr long kLeast = 10, kMost = 100'000;

template <typename Work>
double timed(MPI_Comm comm, Work work) {
    MPI_Barrier(comm);
    const double begin = MPI_Wtime();
    work();
    return MPI_Wtime() - begin;
}

// The median of the means over all ranks.
long measure_calls(Caller& caller, const char* name, const OverlapOptions& options, int rank) {
    const auto once = [&] { return timed(caller.comm(), [&] { caller.run(); }); };
    caller.fill();
    caller.run();
    caller.verify();
    std::vector<double> first(kWarmUp);
    for (double& seconds : first) seconds = once();
    const double expected = std::max(caller.slowest(median(first)), 1e-7);
    const long iterations =
        caller.agreed(std::clamp(static_cast<long>(options.seconds / (2 * expected)), kLeast, kMost));
    std::vector<double> mine(iterations), sums(iterations);
    for (double& seconds : mine) seconds = once();
    caller.fill();
    caller.run();
    caller.verify();
    MPI_Reduce(mine.data(), sums.data(), static_cast<int>(iterations), MPI_DOUBLE, MPI_SUM, 0, caller.comm());
    int ranks = 0;
    MPI_Comm_size(caller.comm(), &ranks);
    const long defects = caller.all_defects();
    if (rank == 0) {
        const double usec = 1e6 * median(sums) / ranks;
        std::printf("point %s %zu %.6g %.6g %.6g 1 %ld %ld 0 0\n", name, options.bytes, usec,
                    1e6 * sums.front() / ranks, 1e6 * sums.back() / ranks, iterations, defects);
    }
    return defects;
}

// Medians of the slowest rank. What is compared takes turns.
long measure_overlap(Caller& caller, const char* name, const OverlapOptions& options, int rank) {
    constexpr int kCachedBlocks = 4;  // in a row, where the size of the matrix is no matter
    Multiplication multiplication(options.matrix > 0 ? options.matrix : kCachedBlocks * options.block,
                                  options.block);
    long products = multiplication.products();
    const auto compute = [&] { multiplication.run(products, [] {}); };
    const auto pure = [&] {
        return timed(caller.comm(), [&] {
            caller.start();
            caller.wait();
        });
    };
    double wait = 0;
    const auto overlapped = [&] {
        return timed(caller.comm(), [&] {
            caller.start();
            if (options.tests)
                multiplication.run(products, [&] { caller.test(); });
            else
                compute();
            const double begin = MPI_Wtime();
            caller.wait();
            wait = MPI_Wtime() - begin;
        });
    };
    caller.fill();
    overlapped();
    caller.verify();
    double call_s = 0, work_s = 0;
    const auto look = [&](long times) {
        std::vector<double> calls(times), works(times);
        for (long i = 0; i < times; ++i) {
            calls[i] = pure();
            works[i] = timed(caller.comm(), compute);
        }
        call_s = std::max(caller.slowest(median(calls)), 1e-8);
        work_s = std::max(caller.slowest(median(works)), 1e-8);
    };
    // How often is enough for what is slow at first to be over.
    look(kWarmUp);
    look(
        caller.agreed(std::clamp(static_cast<long>(kWarmSeconds / (call_s + work_s)), long{kWarmUp}, kMost)));
    if (options.matrix == 0) {
        products =
            caller.agreed(std::max(static_cast<long>(call_s * static_cast<double>(products) / work_s), 1L));
        work_s = call_s;
    }
    const long iterations = caller.agreed(
        std::clamp(static_cast<long>(options.seconds / (2 * (call_s + work_s))), kLeast, kMost));
    std::vector<double> series[5];  // pure, compute, overlapped, wait, lost
    for (long i = 0; i < iterations; ++i) {
        series[0].push_back(pure());
        series[1].push_back(timed(caller.comm(), compute));
        series[2].push_back(overlapped());
        series[3].push_back(wait);
        series[4].push_back(series[2].back() - wait - series[1].back());
    }
    caller.fill();
    overlapped();
    caller.verify();
    double usec[5];
    for (int i = 0; i < 5; ++i) usec[i] = 1e6 * caller.slowest(median(series[i]));
    const long defects = caller.all_defects();
    if (rank == 0)
        std::printf("overlap %s %zu %d %.6g %.6g %.6g %.6g %.6g %ld %ld\n", name, options.bytes,
                    options.matrix, usec[0], usec[1], usec[2], usec[3], usec[4], iterations, defects);
    return defects;
}

int run_mode(const Words& words, int rank, const char* mode,
             long (*measure)(Caller&, const char*, const OverlapOptions&, int)) {
    const OverlapOptions options = parse_overlap(words, mode);
    const BenchmarkList selected = select_benchmarks(options.options);
    Benchmark& benchmark = *selected.front();
    int world = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (benchmark.traits().kind != Kind::kCollective)
        throw UsageError(std::string(mode) + " is for collectives");
    print_library(rank);
    const ProcessGroups groups(Layout{.world = world, .group_size = world, .groups = 1});
    Caller caller(benchmark, groups, options.bytes, rank);
    const long defects = measure(caller, benchmark.traits().name, options, rank);
    if (rank == 0) std::puts("end");
    return defects ? 1 : 0;
}

}  // namespace

int run_calls(const Words& words, int rank) {
    return run_mode(words, rank, "calls", measure_calls);
}

int run_overlap(const Words& words, int rank) {
    return run_mode(words, rank, "overlap", measure_overlap);
}

}  // namespace velo::bench
