#include "workload/patterns.h"

#include "workload/collectives.h"
#include "workload/exchanges.h"

namespace velo::sim {
namespace {

struct Row {
    const char* name;
    const char* help;
    std::unique_ptr<Workload> (*make)(const PatternOptions&);
};

template <class Kind>
std::unique_ptr<Workload> make(const PatternOptions& options) {
    return std::make_unique<Kind>(options);
}

const Row kRows[] = {
    {"alltoall", "each process sends to all in turn, then receives from all", make<AllToAll>},
    {"alltoall_pairwise", "an exchange with one partner after the other", make<PairwiseAllToAll>},
    {"phases", "alltoalls of changing groups, a barrier between them", make<PhaseChange>},
    {"multi_pingpong", "the first half of the processes with the second", make<MultiPingPong>},
    {"stream", "windows of messages one way, one answer a window; --repetitions: the window", make<Stream>},
    {"sendrecv", "a ring: to the right, from the left", make<SendReceive>},
    {"exchange", "a ring: both neighbours, both ways", make<Exchange>},
    {"wavefront", "a grid swept from corner to corner and back, as LU does", make<Wavefront>},
    {"incast", "all to process 0", make<Incast>},
    {"walk", "one message at a time on a fixed way through all pairs", make<Walk>},
    {"sparse", "exchanges with a few neighbours at fixed distances", make<Sparse>},
    {"barrier", "dissemination", make<Barrier>},
    {"bcast", "a binomial tree, the root changes", make<Broadcast>},
    {"reduce", "a binomial tree, the root changes", make<Reduce>},
    {"allreduce", "recursive doubling", make<AllReduce>},
    {"gather", "a binomial tree of growing messages, the root changes", make<Gather>},
    {"scatter", "a binomial tree of shrinking messages, the root changes", make<Scatter>},
    {"allgather", "recursive doubling of growing messages", make<AllGather>},
    {"scatterv", "the root sends to each; --repetitions with a root", make<LinearScatter>},
    {"gatherv", "each sends to the root; --repetitions with a root", make<LinearGather>},
};

}  // namespace

std::unique_ptr<Workload> make_pattern(const std::string& name, const PatternOptions& options) {
    for (const Row& row : kRows)
        if (name == row.name) {
            std::unique_ptr<Workload> workload = row.make(options);
            return workload;
        }
    return nullptr;
}

std::vector<std::string> pattern_names() {
    std::vector<std::string> names;
    for (const Row& row : kRows) names.push_back(row.name);
    return names;
}

std::string describe_pattern(const std::string& name) {
    for (const Row& row : kRows)
        if (name == row.name) return row.help;
    return {};
}

}  // namespace velo::sim
