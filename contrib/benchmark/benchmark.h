// What a benchmark is: traits that describe it, one timed call, and the blocks of data that the call moves.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace velo::bench {

// The processes that run one benchmark together: `size` consecutive ranks of MPI_COMM_WORLD from `first` on.
struct Group {
    MPI_Comm comm = MPI_COMM_NULL;
    int first = 0;
    int rank = 0;
    int size = 0;
    int left = 0;
    int right = 0;
};

// One repetition of a benchmark. The buffers hold at least `send_bytes` and `receive_bytes` of the benchmark.
struct Call {
    const Group& group;
    std::size_t bytes;  // column #bytes
    int iteration;
    int root;
    int window;  // messages in flight of Uniband, Biband, Blocking and Incast
    std::byte* send;
    std::byte* receive;
    std::size_t stride;  // between the messages of a window; 0: one buffer for all of them, as osu_bw has it
    bool checked = false;
    long corrupt = -1;  // test aid: a byte of what is sent that is to be wrong

    int count() const { return static_cast<int>(bytes); }
    int left() const { return group.left; }
    int right() const { return group.right; }
};

enum class Content {
    kBytes,         // pseudo-random bytes that name sender, receiver, message and iteration
    kContribution,  // floats that one process puts into a reduction
    kSum,           // the sum of the contributions of all processes of the group
};

inline constexpr int kEveryone = -1;

// A stretch of a send or receive buffer, and what it holds when everything went right. Ranks are the group's.
struct Block {
    std::size_t offset;
    std::size_t bytes;
    int from;
    int to = kEveryone;
    int message = 0;  // tells messages of one sender apart; for sums the index of the first element
    Content content = Content::kBytes;
};

enum class Kind { kSingleTransfer, kParallelTransfer, kCollective };
enum class Report { kTime, kTimeAndBandwidth, kMessageRate };

struct Traits {
    const char* name;
    Kind kind;
    Report report;
    // Mbytes/sec counts this many times #bytes; a message rate counts this many messages per pair and window.
    int volume_factor = 0;
    int time_divisor = 1;  // PingPong reports half of the round trip
    bool rooted = false;
    bool reduction = false;
    bool has_sizes = true;
    bool runs_by_default = true;
};

class Benchmark {
 public:
    explicit Benchmark(const Traits& traits) : traits_(traits) {}
    virtual ~Benchmark() = default;
    Benchmark(const Benchmark&) = delete;
    Benchmark& operator=(const Benchmark&) = delete;

    const Traits& traits() const { return traits_; }

    // The timed part: one repetition.
    virtual void run(const Call& call) = 0;

    // The same begun: it ends with the request. False: there is no such call.
    virtual bool start(const Call&, MPI_Request*) { return false; }

    // What this process sends and what it must find in its receive buffer afterwards.
    virtual std::vector<Block> sent(const Call& call) const = 0;
    virtual std::vector<Block> received(const Call& call) const = 0;

    virtual std::size_t send_bytes(std::size_t bytes, int, int) const { return bytes; }
    virtual std::size_t receive_bytes(std::size_t bytes, int, int) const { return bytes; }

    // Called before a series of calls with the same group and size, outside the timed part; the buffers come
    // after it.
    virtual void prepare(const Group&, std::size_t, int /*window*/) {}

    // What the calls since `prepare` have found wrong themselves, beside the blocks.
    virtual long defects() const { return 0; }

 private:
    Traits traits_;
};

using BenchmarkList = std::vector<std::unique_ptr<Benchmark>>;

void add_papers_patterns(BenchmarkList& list);
void add_single_transfer(BenchmarkList& list);
void add_parallel_transfer(BenchmarkList& list);
void add_collectives(BenchmarkList& list);

// Every benchmark, in the order in which a run without names executes them.
BenchmarkList all_benchmarks();

}  // namespace velo::bench
