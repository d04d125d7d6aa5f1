// Patterns of the papers on flow control that the IMB does not have (Pairwise, Incast).
#include "benchmark.h"

namespace velo::bench {
namespace {

Traits traits_of(const char* name) {
    return {.name = name, .kind = Kind::kParallelTransfer, .report = Report::kTime, .runs_by_default = false};
}

// Thesis, section 5.3: each process first sends a message to every other one and then receives one from each,
// without the optimised algorithms of the MPI library.
class Pairwise : public Benchmark {
 public:
    Pairwise() : Benchmark(traits_of("Pairwise")) {}

    void prepare(const Group& group, std::size_t, int) override {
        requests_.resize(2 * static_cast<std::size_t>(group.size));
    }

    void run(const Call& call) override {
        const int size = call.group.size;
        int posted = 0;
        for (int step = 1; step < size; ++step) {
            const int peer = (call.group.rank + size - step) % size;
            MPI_Irecv(call.receive + peer * call.bytes, call.count(), MPI_BYTE, peer, 0, call.group.comm,
                      &requests_[posted++]);
        }
        for (int step = 1; step < size; ++step) {
            const int peer = (call.group.rank + step) % size;
            MPI_Isend(call.send + peer * call.bytes, call.count(), MPI_BYTE, peer, 0, call.group.comm,
                      &requests_[posted++]);
        }
        MPI_Waitall(posted, requests_.data(), MPI_STATUSES_IGNORE);
    }
    std::vector<Block> sent(const Call& call) const override { return blocks(call, false); }
    std::vector<Block> received(const Call& call) const override { return blocks(call, true); }
    std::size_t send_bytes(std::size_t bytes, int processes, int) const override { return bytes * processes; }
    std::size_t receive_bytes(std::size_t bytes, int processes, int) const override {
        return bytes * processes;
    }

 private:
    static std::vector<Block> blocks(const Call& call, bool received) {
        const int me = call.group.rank;
        std::vector<Block> result;
        for (int peer = 0; peer < call.group.size; ++peer)
            if (peer != me)
                result.push_back({.offset = peer * call.bytes,
                                  .bytes = call.bytes,
                                  .from = received ? peer : me,
                                  .to = received ? me : peer});
        return result;
    }

    std::vector<MPI_Request> requests_;
};

// Everyone sends a window of messages to rank 0, which has posted its receives.
class Incast : public Benchmark {
 public:
    Incast() : Benchmark(traits_of("Incast")) {}

    void prepare(const Group& group, std::size_t, int window) override {
        is_root_ = group.rank == 0;
        requests_.resize(static_cast<std::size_t>(window) * (is_root_ ? group.size : 1));
    }

    void run(const Call& call) override {
        int posted = 0;
        for (int message = 0; message < call.window; ++message) {
            if (!is_root_)
                MPI_Isend(call.send + message * call.stride, call.count(), MPI_BYTE, 0, 0, call.group.comm,
                          &requests_[posted++]);
            for (int peer = 1; is_root_ && peer < call.group.size; ++peer)
                MPI_Irecv(call.receive + place(call, peer, message), call.count(), MPI_BYTE, peer, 0,
                          call.group.comm, &requests_[posted++]);
        }
        MPI_Waitall(posted, requests_.data(), MPI_STATUSES_IGNORE);
    }
    std::vector<Block> sent(const Call& call) const override {
        std::vector<Block> blocks;
        for (int message = 0; !is_root_ && message < call.window; ++message)
            blocks.push_back({.offset = message * call.bytes,
                              .bytes = call.bytes,
                              .from = call.group.rank,
                              .to = 0,
                              .message = message});
        return blocks;
    }
    std::vector<Block> received(const Call& call) const override {
        std::vector<Block> blocks;
        for (int peer = 1; is_root_ && peer < call.group.size; ++peer)
            for (int message = 0; message < call.window; ++message)
                blocks.push_back({.offset = place(call, peer, message),
                                  .bytes = call.bytes,
                                  .from = peer,
                                  .to = 0,
                                  .message = message});
        return blocks;
    }
    std::size_t send_bytes(std::size_t bytes, int, int window) const override { return bytes * window; }
    std::size_t receive_bytes(std::size_t bytes, int processes, int window) const override {
        return is_root_ ? bytes * window * processes : 0;
    }

 private:
    static std::size_t place(const Call& call, int peer, int message) {
        return (static_cast<std::size_t>(peer) * call.window + message) * call.bytes;
    }

    bool is_root_ = true;
    std::vector<MPI_Request> requests_;
};

}  // namespace

void add_papers_patterns(BenchmarkList& list) {
    list.push_back(std::make_unique<Pairwise>());
    list.push_back(std::make_unique<Incast>());
}

}  // namespace velo::bench
