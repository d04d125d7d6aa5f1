// Collectives that move data (Bcast, Gather, Scatter, Allgather, Alltoall and their ...v variants) and
// Barrier.
#include "data_movement.h"
#include "reduction.h"

namespace velo::bench {
namespace {

class Collective : public Benchmark {
 public:
    Collective(const char* name, bool rooted)
        : Benchmark({.name = name, .kind = Kind::kCollective, .report = Report::kTime, .rooted = rooted}) {}

    void prepare(const Group& group, std::size_t bytes, int) override { shares_.resize(group.size, bytes); }

 protected:
    const EqualShares& shares() const { return shares_; }

 private:
    EqualShares shares_;
};

// Every process sends a block to every process.
class AllToAllPattern : public Collective {
 public:
    explicit AllToAllPattern(const char* name) : Collective(name, false) {}

    std::vector<Block> sent(const Call& call) const override { return one_block_for_each(call, false); }
    std::vector<Block> received(const Call& call) const override { return one_block_for_each(call, true); }
    std::size_t send_bytes(std::size_t bytes, int processes, int) const override { return bytes * processes; }
    std::size_t receive_bytes(std::size_t bytes, int processes, int) const override {
        return bytes * processes;
    }
};

class Alltoall : public AllToAllPattern {
 public:
    Alltoall() : AllToAllPattern("Alltoall") {}
    void run(const Call& call) override {
        MPI_Alltoall(call.send, call.count(), MPI_BYTE, call.receive, call.count(), MPI_BYTE,
                     call.group.comm);
    }
    bool start(const Call& call, MPI_Request* request) override {
        MPI_Ialltoall(call.send, call.count(), MPI_BYTE, call.receive, call.count(), MPI_BYTE,
                      call.group.comm, request);
        return true;
    }
};

class Alltoallv : public AllToAllPattern {
 public:
    Alltoallv() : AllToAllPattern("Alltoallv") {}
    void run(const Call& call) override {
        MPI_Alltoallv(call.send, shares().counts(), shares().displacements(), MPI_BYTE, call.receive,
                      shares().counts(), shares().displacements(), MPI_BYTE, call.group.comm);
    }
};

// Every process gets the block of every process.
class AllgatherPattern : public Collective {
 public:
    explicit AllgatherPattern(const char* name) : Collective(name, false) {}

    std::vector<Block> sent(const Call& call) const override {
        return {block_for_everyone(call, call.group.rank)};
    }
    std::vector<Block> received(const Call& call) const override {
        std::vector<Block> blocks;
        for (int from = 0; from < call.group.size; ++from)
            blocks.push_back(block_for_everyone(call, from, from * call.bytes));
        return blocks;
    }
    std::size_t receive_bytes(std::size_t bytes, int processes, int) const override {
        return bytes * processes;
    }
};

class Allgather : public AllgatherPattern {
 public:
    Allgather() : AllgatherPattern("Allgather") {}
    void run(const Call& call) override {
        MPI_Allgather(call.send, call.count(), MPI_BYTE, call.receive, call.count(), MPI_BYTE,
                      call.group.comm);
    }
    bool start(const Call& call, MPI_Request* request) override {
        MPI_Iallgather(call.send, call.count(), MPI_BYTE, call.receive, call.count(), MPI_BYTE,
                       call.group.comm, request);
        return true;
    }
};

class Allgatherv : public AllgatherPattern {
 public:
    Allgatherv() : AllgatherPattern("Allgatherv") {}
    void run(const Call& call) override {
        MPI_Allgatherv(call.send, call.count(), MPI_BYTE, call.receive, shares().counts(),
                       shares().displacements(), MPI_BYTE, call.group.comm);
    }
};

// The root gets the block of every process.
class GatherPattern : public Collective {
 public:
    explicit GatherPattern(const char* name) : Collective(name, true) {}

    std::vector<Block> sent(const Call& call) const override {
        return {{.offset = 0, .bytes = call.bytes, .from = call.group.rank, .to = call.root}};
    }
    std::vector<Block> received(const Call& call) const override {
        return call.group.rank == call.root ? one_block_for_each(call, true) : std::vector<Block>{};
    }
    std::size_t receive_bytes(std::size_t bytes, int processes, int) const override {
        return bytes * processes;
    }
};

class Gather : public GatherPattern {
 public:
    Gather() : GatherPattern("Gather") {}
    void run(const Call& call) override {
        MPI_Gather(call.send, call.count(), MPI_BYTE, call.receive, call.count(), MPI_BYTE, call.root,
                   call.group.comm);
    }
    bool start(const Call& call, MPI_Request* request) override {
        MPI_Igather(call.send, call.count(), MPI_BYTE, call.receive, call.count(), MPI_BYTE, call.root,
                    call.group.comm, request);
        return true;
    }
};

class Gatherv : public GatherPattern {
 public:
    Gatherv() : GatherPattern("Gatherv") {}
    void run(const Call& call) override {
        MPI_Gatherv(call.send, call.count(), MPI_BYTE, call.receive, shares().counts(),
                    shares().displacements(), MPI_BYTE, call.root, call.group.comm);
    }
};

// The root sends a block to every process.
class ScatterPattern : public Collective {
 public:
    explicit ScatterPattern(const char* name) : Collective(name, true) {}

    std::vector<Block> sent(const Call& call) const override {
        return call.group.rank == call.root ? one_block_for_each(call, false) : std::vector<Block>{};
    }
    std::vector<Block> received(const Call& call) const override {
        return {{.offset = 0, .bytes = call.bytes, .from = call.root, .to = call.group.rank}};
    }
    std::size_t send_bytes(std::size_t bytes, int processes, int) const override { return bytes * processes; }
};

class Scatter : public ScatterPattern {
 public:
    Scatter() : ScatterPattern("Scatter") {}
    void run(const Call& call) override {
        MPI_Scatter(call.send, call.count(), MPI_BYTE, call.receive, call.count(), MPI_BYTE, call.root,
                    call.group.comm);
    }
    bool start(const Call& call, MPI_Request* request) override {
        MPI_Iscatter(call.send, call.count(), MPI_BYTE, call.receive, call.count(), MPI_BYTE, call.root,
                     call.group.comm, request);
        return true;
    }
};

class Scatterv : public ScatterPattern {
 public:
    Scatterv() : ScatterPattern("Scatterv") {}
    void run(const Call& call) override {
        MPI_Scatterv(call.send, shares().counts(), shares().displacements(), MPI_BYTE, call.receive,
                     call.count(), MPI_BYTE, call.root, call.group.comm);
    }
};

class Bcast : public Collective {
 public:
    Bcast() : Collective("Bcast", true) {}

    void run(const Call& call) override {
        MPI_Bcast(buffer(call), call.count(), MPI_BYTE, call.root, call.group.comm);
    }
    bool start(const Call& call, MPI_Request* request) override {
        MPI_Ibcast(buffer(call), call.count(), MPI_BYTE, call.root, call.group.comm, request);
        return true;
    }
    std::vector<Block> sent(const Call& call) const override {
        return only_if(call.group.rank == call.root, call);
    }
    std::vector<Block> received(const Call& call) const override {
        return only_if(call.group.rank != call.root, call);
    }

 private:
    static std::byte* buffer(const Call& call) {
        return call.group.rank == call.root ? call.send : call.receive;
    }
    static std::vector<Block> only_if(bool concerned, const Call& call) {
        return concerned ? std::vector<Block>{block_for_everyone(call, call.root)} : std::vector<Block>{};
    }
};

class Barrier : public Benchmark {
 public:
    Barrier()
        : Benchmark(
              {.name = "Barrier", .kind = Kind::kCollective, .report = Report::kTime, .has_sizes = false}) {}

    void run(const Call& call) override { MPI_Barrier(call.group.comm); }
    bool start(const Call& call, MPI_Request* request) override {
        MPI_Ibarrier(call.group.comm, request);
        return true;
    }
    std::vector<Block> sent(const Call&) const override { return {}; }
    std::vector<Block> received(const Call&) const override { return {}; }
};

}  // namespace

void add_collectives(BenchmarkList& list) {
    add_reductions(list);
    list.push_back(std::make_unique<Allgather>());
    list.push_back(std::make_unique<Allgatherv>());
    list.push_back(std::make_unique<Gather>());
    list.push_back(std::make_unique<Gatherv>());
    list.push_back(std::make_unique<Scatter>());
    list.push_back(std::make_unique<Scatterv>());
    list.push_back(std::make_unique<Alltoall>());
    list.push_back(std::make_unique<Alltoallv>());
    list.push_back(std::make_unique<Bcast>());
    list.push_back(std::make_unique<Barrier>());
}

}  // namespace velo::bench
