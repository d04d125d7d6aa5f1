// Collective operations as trees and rings of messages. Those that gather data into larger messages cross the
// eager limit and then travel by RMA, as with the optimised collectives of the thesis's section 7.4.
#pragma once

#include "workload/pattern.h"

namespace velo::sim {

// The root moves on after `repetitions` operations.
class Rooted : public Pattern {
 public:
    using Pattern::Pattern;

 protected:
    std::uint32_t root(std::uint32_t iteration) const {
        return iteration / std::max(1U, options_.repetitions) % count();
    }
    std::uint32_t rank(std::uint32_t p, std::uint32_t iteration) const {
        return (p + count() - root(iteration)) % count();
    }
    std::uint32_t process(std::uint32_t rank, std::uint32_t iteration) const {
        return (rank + root(iteration)) % count();
    }
};

class Barrier final : public Pattern {
 public:
    explicit Barrier(const PatternOptions& o) : Pattern("barrier", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class Broadcast final : public Rooted {
 public:
    explicit Broadcast(const PatternOptions& o) : Rooted("bcast", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class Reduce final : public Rooted {
 public:
    explicit Reduce(const PatternOptions& o) : Rooted("reduce", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class AllReduce final : public Pattern {
 public:
    explicit AllReduce(const PatternOptions& o) : Pattern("allreduce", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class Gather final : public Rooted {
 public:
    explicit Gather(const PatternOptions& o) : Rooted("gather", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class Scatter final : public Rooted {
 public:
    explicit Scatter(const PatternOptions& o) : Rooted("scatter", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class AllGather final : public Pattern {
 public:
    explicit AllGather(const PatternOptions& o) : Pattern("allgather", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class LinearScatter final : public Rooted {
 public:
    explicit LinearScatter(const PatternOptions& o) : Rooted("scatterv", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class LinearGather final : public Rooted {
 public:
    explicit LinearGather(const PatternOptions& o) : Rooted("gatherv", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

}  // namespace velo::sim
