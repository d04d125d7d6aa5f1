// Single transfer: two processes, one message at a time (PingPong, PingPing).
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
    PingPong()
        : SingleTransfer({.name = "PingPong",
                          .kind = Kind::kSingleTransfer,
                          .report = Report::kTimeAndBandwidth,
                          .volume_factor = 1,
                          .time_divisor = 2}) {}

    void run(const Call& call) override {
        if (call.group.rank == 0) {
            send(call);
            receive(call);
        } else {
            receive(call);
            send(call);
        }
    }

 private:
    static void send(const Call& call) {
        MPI_Send(call.send, call.count(), MPI_BYTE, call.right(), 0, call.group.comm);
    }
    static void receive(const Call& call) {
        MPI_Recv(call.receive, call.count(), MPI_BYTE, call.right(), 0, call.group.comm, MPI_STATUS_IGNORE);
    }
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
}

}  // namespace velo::bench
