// Collectives that compute: the sum of floats (Allreduce, Reduce, Reduce_scatter).
#include "reduction.h"

namespace velo::bench {
namespace {

class Reduction : public Benchmark {
 public:
    Reduction(const char* name, bool rooted)
        : Benchmark({.name = name,
                     .kind = Kind::kCollective,
                     .report = Report::kTime,
                     .rooted = rooted,
                     .reduction = true}) {}

    std::vector<Block> sent(const Call& call) const override {
        return {
            {.offset = 0, .bytes = call.bytes, .from = call.group.rank, .content = Content::kContribution}};
    }

 protected:
    static int elements(const Call& call) { return static_cast<int>(call.bytes / sizeof(float)); }
    static Block sum(std::size_t bytes, int first_element = 0) {
        return {.offset = 0,
                .bytes = bytes,
                .from = kEveryone,
                .message = first_element,
                .content = Content::kSum};
    }
};

class Allreduce : public Reduction {
 public:
    Allreduce() : Reduction("Allreduce", false) {}
    void run(const Call& call) override {
        MPI_Allreduce(call.send, call.receive, elements(call), MPI_FLOAT, MPI_SUM, call.group.comm);
    }
    bool start(const Call& call, MPI_Request* request) override {
        MPI_Iallreduce(call.send, call.receive, elements(call), MPI_FLOAT, MPI_SUM, call.group.comm, request);
        return true;
    }
    std::vector<Block> received(const Call& call) const override { return {sum(call.bytes)}; }
};

class Reduce : public Reduction {
 public:
    Reduce() : Reduction("Reduce", true) {}
    void run(const Call& call) override {
        MPI_Reduce(call.send, call.receive, elements(call), MPI_FLOAT, MPI_SUM, call.root, call.group.comm);
    }
    bool start(const Call& call, MPI_Request* request) override {
        MPI_Ireduce(call.send, call.receive, elements(call), MPI_FLOAT, MPI_SUM, call.root, call.group.comm,
                    request);
        return true;
    }
    std::vector<Block> received(const Call& call) const override {
        return call.group.rank == call.root ? std::vector<Block>{sum(call.bytes)} : std::vector<Block>{};
    }
};

// The sum is spread over the group in shares as equal as they can be, the larger ones first.
class ReduceScatter : public Reduction {
 public:
    ReduceScatter() : Reduction("Reduce_scatter", false) {}

    void prepare(const Group& group, std::size_t bytes, int) override {
        const int elements = static_cast<int>(bytes / sizeof(float));
        counts_.assign(group.size, elements / group.size);
        for (int i = 0; i < elements % group.size; ++i) ++counts_[i];
        first_element_ = 0;
        for (int i = 0; i < group.rank; ++i) first_element_ += counts_[i];
    }
    void run(const Call& call) override {
        MPI_Reduce_scatter(call.send, call.receive, counts_.data(), MPI_FLOAT, MPI_SUM, call.group.comm);
    }
    std::vector<Block> received(const Call& call) const override {
        return {sum(counts_[call.group.rank] * sizeof(float), first_element_)};
    }

 private:
    std::vector<int> counts_;
    int first_element_ = 0;
};

}  // namespace

void add_reductions(BenchmarkList& list) {
    list.push_back(std::make_unique<Allreduce>());
    list.push_back(std::make_unique<Reduce>());
    list.push_back(std::make_unique<ReduceScatter>());
}

}  // namespace velo::bench
