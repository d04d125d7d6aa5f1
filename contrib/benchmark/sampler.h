// Takes the samples: warm-up, repetition count, timing, data check.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "call_counts.h"
#include "data_check.h"
#include "options.h"
#include "process_groups.h"

namespace velo::bench {

// One process's share of a sample.
struct Share {
    double usec_per_call = 0;
    double defects = 0;
};

// A sample as rank 0 knows it: the share of every active process. Empty shares elsewhere.
struct Sample {
    std::size_t bytes = 0;
    int repetitions = 0;
    int window = 1;
    std::vector<Share> shares;
};

// A point of a curve: batches of calls, each from the first process's begin to the last one's end, and their
// median. Rank 0 knows it.
struct Point {
    double usec =
        0;  // of a message where there is a window, half a round trip of a ping-pong, else of a call
    double min_usec = 0;
    double max_usec = 0;
    long iterations = 0;   // of a batch
    long repetitions = 0;  // batches
    long defects = 0;
    long messages = 0;  // of all processes in all calls, those that are not timed too
    double mbytes_per_second = 0;
    long counted = 0, delayed = 0;  // messages within Effort::calls, as Velo counts them
};

struct Effort {
    long calls = 0;  // one batch of exactly so many, each after a barrier, so that counts do not depend on
                     // how far some run ahead; 0: by the time
    double seconds = 0.5;
    long most_calls = 1L << 40;
    bool one_buffer = false;  // for all messages of a window, unless they are checked
    bool request = false;     // a collective as a request that is waited for
    bool touch = false;       // buffers: each call sends what was written for it, and what it brings is read
};

// Begins a call that ends with the request. Throws UsageError where there is no such call.
void start(Benchmark& benchmark, const Call& call, MPI_Request* request);

enum class Obstacle { kNone, kMemory, kIntOverflow };

class Sampler {
 public:
    Sampler(const Options& options, DataCheck& check) : options_(options), check_(check) {}

    // Whether the sizes of buffers and MPI counts allow the sample.
    Obstacle obstacle(const Benchmark& benchmark, std::size_t bytes, int processes) const;
    double needed_gb(const Benchmark& benchmark, std::size_t bytes, int processes) const;

    // Collective over the active processes.
    Sample take(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes);
    Point measure(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes, const Effort& effort);

 private:
    int window(std::size_t bytes) const;
    Call call(const ProcessGroups& groups, const Traits& traits, std::size_t bytes, int iteration) const;
    static bool is_on_one_machine(MPI_Comm processes);
    double batch(Benchmark& benchmark, Call call, MPI_Comm active, long calls, const Effort& effort);
    double warm_up(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes);
    double timed(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes, int count);
    double checked(Benchmark& benchmark, const ProcessGroups& groups, std::size_t bytes, int iteration);
    void allocate(std::size_t send_bytes, std::size_t receive_bytes);

    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    using Memory = std::unique_ptr<std::byte[], Free>;
    static Memory page_aligned(std::size_t bytes);

    const Options& options_;
    DataCheck& check_;
    long next_ = 0;                     // number of the next call of `measure`
    bool one_clock_ = false;            // all that take part in it are on one machine
    std::optional<CallCounts> counts_;  // where calls are counted
    Memory send_;
    Memory receive_;
};

}  // namespace velo::bench
