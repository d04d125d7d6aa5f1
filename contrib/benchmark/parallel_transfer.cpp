// Parallel transfer: all processes of the group at once (Sendrecv, Exchange, Uniband, Biband, Blocking).
#include "benchmark.h"

namespace velo::bench {
namespace {

class Sendrecv : public Benchmark {
 public:
    Sendrecv()
        : Benchmark({.name = "Sendrecv",
                     .kind = Kind::kParallelTransfer,
                     .report = Report::kTimeAndBandwidth,
                     .volume_factor = 2}) {}

    void run(const Call& call) override {
        MPI_Sendrecv(call.send, call.count(), MPI_BYTE, call.right(), 0, call.receive, call.count(), MPI_BYTE,
                     call.left(), 0, call.group.comm, MPI_STATUS_IGNORE);
    }
    std::vector<Block> sent(const Call& call) const override {
        return {{.offset = 0, .bytes = call.bytes, .from = call.group.rank, .to = call.right()}};
    }
    std::vector<Block> received(const Call& call) const override {
        return {{.offset = 0, .bytes = call.bytes, .from = call.left(), .to = call.group.rank}};
    }
};

// Every process exchanges a message with both neighbours in a ring. The tag names the direction of travel:
// with two processes both neighbours are the same one.
class Exchange : public Benchmark {
 public:
    Exchange()
        : Benchmark({.name = "Exchange",
                     .kind = Kind::kParallelTransfer,
                     .report = Report::kTimeAndBandwidth,
                     .volume_factor = 4}) {}

    void run(const Call& call) override {
        const MPI_Comm comm = call.group.comm;
        MPI_Request requests[2];
        MPI_Isend(call.send, call.count(), MPI_BYTE, call.left(), kToLeft, comm, &requests[0]);
        MPI_Isend(call.send + call.bytes, call.count(), MPI_BYTE, call.right(), kToRight, comm, &requests[1]);
        MPI_Recv(call.receive, call.count(), MPI_BYTE, call.left(), kToRight, comm, MPI_STATUS_IGNORE);
        MPI_Recv(call.receive + call.bytes, call.count(), MPI_BYTE, call.right(), kToLeft, comm,
                 MPI_STATUS_IGNORE);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    std::vector<Block> sent(const Call& call) const override {
        const int me = call.group.rank;
        return {
            {.offset = 0, .bytes = call.bytes, .from = me, .to = call.left(), .message = kToLeft},
            {.offset = call.bytes, .bytes = call.bytes, .from = me, .to = call.right(), .message = kToRight}};
    }
    std::vector<Block> received(const Call& call) const override {
        const int me = call.group.rank;
        return {
            {.offset = 0, .bytes = call.bytes, .from = call.left(), .to = me, .message = kToRight},
            {.offset = call.bytes, .bytes = call.bytes, .from = call.right(), .to = me, .message = kToLeft}};
    }
    std::size_t send_bytes(std::size_t bytes, int, int) const override { return 2 * bytes; }
    std::size_t receive_bytes(std::size_t bytes, int, int) const override { return 2 * bytes; }

 private:
    static constexpr int kToLeft = 0;
    static constexpr int kToRight = 1;
};

// The first half of the group sends a window of messages to the second half, which acknowledges the window;
// in Biband both halves send, in Blocking by MPI_Send. With an odd number of processes the last one stays
// idle. Every message has its own buffer, for MPI forbids overlapping receives.
class Bandwidth : public Benchmark {
 public:
    Bandwidth(const char* name, bool both_ways, bool blocking = false)
        : Benchmark({.name = name,
                     .kind = Kind::kParallelTransfer,
                     .report = Report::kMessageRate,
                     .volume_factor = both_ways ? 2 : 1,
                     .runs_by_default = false}),
          both_ways_(both_ways),
          blocking_(blocking) {}

    void prepare(const Group& group, std::size_t, int window) override {
        const int half = group.size / 2;
        takes_part_ = group.rank < 2 * half;
        first_half_ = group.rank < half;
        partner_ = first_half_ ? group.rank + half : group.rank - half;
        requests_.assign(2 * static_cast<std::size_t>(window), MPI_REQUEST_NULL);
    }

    void run(const Call& call) override {
        if (!takes_part_) return;
        if (blocking_) return run_blocking(call);
        int posted = 0;
        if (receives()) posted = post_receives(call, posted);
        if (sends()) posted = post_sends(call, posted);
        MPI_Waitall(posted, requests_.data(), MPI_STATUSES_IGNORE);
        acknowledge(call);
    }
    std::vector<Block> sent(const Call& call) const override {
        return takes_part_ && sends() ? window_blocks(call, call.group.rank, partner_) : std::vector<Block>{};
    }
    std::vector<Block> received(const Call& call) const override {
        return takes_part_ && receives() ? window_blocks(call, partner_, call.group.rank)
                                         : std::vector<Block>{};
    }
    std::size_t send_bytes(std::size_t bytes, int, int window) const override { return bytes * window; }
    std::size_t receive_bytes(std::size_t bytes, int, int window) const override { return bytes * window; }

 private:
    static constexpr int kData = 0;
    static constexpr int kAcknowledgement = 1;

    bool sends() const { return both_ways_ || first_half_; }
    bool receives() const { return both_ways_ || !first_half_; }

    int post_receives(const Call& call, int posted) {
        for (int i = 0; i < call.window; ++i)
            MPI_Irecv(call.receive + i * call.stride, call.count(), MPI_BYTE, partner_, kData,
                      call.group.comm, &requests_[posted++]);
        return posted;
    }
    int post_sends(const Call& call, int posted) {
        for (int i = 0; i < call.window; ++i)
            MPI_Isend(call.send + i * call.stride, call.count(), MPI_BYTE, partner_, kData, call.group.comm,
                      &requests_[posted++]);
        return posted;
    }
    void run_blocking(const Call& call) {
        for (int i = 0; i < call.window; ++i) {
            if (first_half_)
                MPI_Send(call.send + i * call.stride, call.count(), MPI_BYTE, partner_, kData,
                         call.group.comm);
            else
                MPI_Recv(call.receive + i * call.stride, call.count(), MPI_BYTE, partner_, kData,
                         call.group.comm, MPI_STATUS_IGNORE);
        }
        acknowledge(call);
    }
    void acknowledge(const Call& call) {
        if (first_half_)
            MPI_Recv(nullptr, 0, MPI_BYTE, partner_, kAcknowledgement, call.group.comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(nullptr, 0, MPI_BYTE, partner_, kAcknowledgement, call.group.comm);
    }
    static std::vector<Block> window_blocks(const Call& call, int from, int to) {
        std::vector<Block> blocks;
        for (int i = 0; i < call.window; ++i)
            blocks.push_back(
                {.offset = i * call.bytes, .bytes = call.bytes, .from = from, .to = to, .message = i});
        return blocks;
    }

    bool both_ways_;
    bool blocking_;
    bool takes_part_ = false;
    bool first_half_ = false;
    int partner_ = 0;
    std::vector<MPI_Request> requests_;
};

}  // namespace

void add_parallel_transfer(BenchmarkList& list) {
    list.push_back(std::make_unique<Sendrecv>());
    list.push_back(std::make_unique<Exchange>());
    list.push_back(std::make_unique<Bandwidth>("Uniband", false));
    list.push_back(std::make_unique<Bandwidth>("Biband", true));
    // Liu & Panda, section 6.2.2: back-to-back messages, as many as the window has, then a reply.
    list.push_back(std::make_unique<Bandwidth>("Blocking", false, true));
}

}  // namespace velo::bench
