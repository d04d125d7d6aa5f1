// Point-to-point patterns and alltoalls.
#pragma once

#include "workload/pattern.h"

namespace velo::sim {

class AllToAll final : public Pattern {
 public:
    explicit AllToAll(const PatternOptions& o) : Pattern("alltoall", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class PairwiseAllToAll final : public Pattern {
 public:
    explicit PairwiseAllToAll(const PatternOptions& o) : Pattern("alltoall_pairwise", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

// Each phase is `iterations` alltoalls of a group and a barrier of all.
class PhaseChange final : public Pattern {
 public:
    explicit PhaseChange(const PatternOptions& o) : Pattern("phases", o) {}
    std::uint32_t iterations() const override {
        return options_.iterations * static_cast<std::uint32_t>(options_.phases.size());
    }
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class MultiPingPong final : public Pattern {
 public:
    explicit MultiPingPong(const PatternOptions& o) : Pattern("multi_pingpong", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class Stream final : public Pattern {
 public:
    explicit Stream(const PatternOptions& o) : Pattern("stream", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class SendReceive final : public Pattern {
 public:
    explicit SendReceive(const PatternOptions& o) : Pattern("sendrecv", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

class Exchange final : public Pattern {
 public:
    explicit Exchange(const PatternOptions& o) : Pattern("exchange", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

// Each process waits for its upper and left neighbours before it sends down and right, `repetitions` times
// for as many planes, then back: few messages in the other direction while one sweep runs.
class Wavefront final : public Pattern {
 public:
    explicit Wavefront(const PatternOptions& o);
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;

 private:
    std::uint32_t columns_;
};

class Incast final : public Pattern {
 public:
    explicit Incast(const PatternOptions& o) : Pattern("incast", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

// One message at a time, on a fixed way through all pairs: whoever has received it sends the next.
class Walk final : public Pattern {
 public:
    explicit Walk(const PatternOptions& o) : Pattern("walk", o) {}
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
};

// Exchanges with `neighbours` peers, half of them on each side; distances double after the nearest ones.
class Sparse final : public Pattern {
 public:
    explicit Sparse(const PatternOptions& o);
    void steps(std::uint32_t p, std::uint32_t iteration, Steps& out) const override;
    bool sparse() const override { return true; }
    std::vector<std::uint32_t> peers(std::uint32_t p) const override;

 private:
    std::vector<std::uint32_t> distances_;
};

}  // namespace velo::sim
