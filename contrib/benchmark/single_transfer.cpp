// Single transfer: two processes, one message at a time (PingPong, PingPing, Touched).
#include <cstdint>
#include <cstdio>

#include "benchmark.h"

namespace velo::bench {
namespace {

class SingleTransfer : public Benchmark {
 public:
    using Benchmark::Benchmark;

    std::vector<Block> sent(const Call& call) const override {
        return {{.offset = 0, .bytes = call.bytes, .from = call.group.rank, .to = call.right()}};
    }
    std::vector<Block> received(const Call& call) const override {
        return {{.offset = 0, .bytes = call.bytes, .from = call.right(), .to = call.group.rank}};
    }
};

class PingPong : public SingleTransfer {
 public:
    explicit PingPong(const char* name = "PingPong", bool runs_by_default = true)
        : SingleTransfer({.name = name,
                          .kind = Kind::kSingleTransfer,
                          .report = Report::kTimeAndBandwidth,
                          .volume_factor = 1,
                          .time_divisor = 2,
                          .runs_by_default = runs_by_default}) {}

    void run(const Call& call) override {
        if (call.group.rank == 0) {
            send(call);
            receive(call);
        } else {
            receive(call);
            send(call);
        }
    }

 protected:
    static void send(const Call& call) {
        MPI_Send(call.send, call.count(), MPI_BYTE, call.right(), 0, call.group.comm);
    }
    static void receive(const Call& call) {
        MPI_Recv(call.receive, call.count(), MPI_BYTE, call.right(), 0, call.group.comm, MPI_STATUS_IGNORE);
    }
};

// Ping-pong whose sender writes the whole message before, and whose receiver reads it: every word is the
// number of its round plus its place.
class Touched : public PingPong {
 public:
    Touched() : PingPong("Touched", false) {}

    void prepare(const Group&, std::size_t, int) override { defects_ = 0; }

    void run(const Call& call) override {
        ++round_;
        if (call.group.rank == 0) write(call);
        if (call.group.rank == 0) send(call);
        receive(call);
        read(call);
        if (call.group.rank == 0) return;
        write(call);
        send(call);
    }
    std::vector<Block> sent(const Call&) const override { return {}; }
    std::vector<Block> received(const Call&) const override { return {}; }
    long defects() const override { return defects_; }

 private:
    void write(const Call& call) const {
        auto* words = reinterpret_cast<std::uint64_t*>(call.send);
        for (std::size_t i = 0; i < call.bytes / sizeof *words; ++i) words[i] = round_ + i;
        if (call.corrupt >= 0) call.send[call.corrupt] ^= std::byte{0x40};
    }
    void read(const Call& call) {
        const auto* words = reinterpret_cast<const std::uint64_t*>(call.receive);
        const std::uint64_t count = call.bytes / sizeof *words;
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < count; ++i) sum += words[i];
        bool wrong = sum != count * round_ + (count ? count * (count - 1) / 2 : 0);
        for (std::uint64_t i = 0; call.checked && i < count; ++i) wrong |= words[i] != round_ + i;
        if (wrong && defects_++ == 0)
            std::fprintf(stderr, "velo-mpi-bench: data check failed: rank %d, benchmark Touched, size %zu\n",
                         call.group.first + call.group.rank, call.bytes);
    }

    std::uint64_t round_ = 0;
    long defects_ = 0;
};

class PingPing : public SingleTransfer {
 public:
    PingPing()
        : SingleTransfer({.name = "PingPing",
                          .kind = Kind::kSingleTransfer,
                          .report = Report::kTimeAndBandwidth,
                          .volume_factor = 1}) {}

    void run(const Call& call) override {
        MPI_Request request;
        MPI_Isend(call.send, call.count(), MPI_BYTE, call.right(), 0, call.group.comm, &request);
        MPI_Recv(call.receive, call.count(), MPI_BYTE, call.right(), 0, call.group.comm, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
};

}  // namespace

void add_single_transfer(BenchmarkList& list) {
    list.push_back(std::make_unique<PingPong>());
    list.push_back(std::make_unique<PingPing>());
    list.push_back(std::make_unique<Touched>());
}

}  // namespace velo::bench
