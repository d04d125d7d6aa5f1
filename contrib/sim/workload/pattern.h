// What the patterns have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "workload/patterns.h"
#include "workload/workload.h"

namespace velo::sim {

using Steps = std::vector<Step>;

inline void send(Steps& out, std::uint32_t to, std::uint32_t bytes) {
    out.push_back({StepKind::kSend, to, bytes});
}
inline void start(Steps& out, std::uint32_t to, std::uint32_t bytes) {
    out.push_back({StepKind::kStart, to, bytes});
}
inline void finish(Steps& out) {
    out.push_back({StepKind::kFinish, 0, 0});
}
inline void receive(Steps& out, std::uint32_t from, std::uint32_t bytes) {
    out.push_back({StepKind::kReceive, from, bytes});
}
inline void receive_any(Steps& out, std::uint32_t messages) {
    out.push_back({StepKind::kReceiveAny, 0, messages});
}

inline void synchronise(Steps& out) {
    out.push_back({StepKind::kSynchronise, 0, 0});
}

class Pattern : public Workload {
 public:
    Pattern(std::string name, const PatternOptions& options) : options_(options), name_(std::move(name)) {}
    std::string name() const override { return name_; }
    std::uint32_t processes() const override { return options_.processes; }
    std::uint32_t iterations() const override { return options_.iterations; }

 protected:
    std::uint32_t count() const { return options_.processes; }
    std::uint32_t bytes() const { return options_.bytes; }
    std::uint32_t active() const {
        return options_.active > 0 ? std::min(options_.active, options_.processes) : options_.processes;
    }

    PatternOptions options_;

 private:
    std::string name_;
};

// A dissemination barrier of all processes: in round k to the process 2^k further on.
inline void barrier(Steps& out, std::uint32_t p, std::uint32_t processes) {
    for (std::uint32_t distance = 1; distance < processes; distance *= 2) {
        start(out, (p + distance) % processes, 0);
        receive(out, (p + processes - distance) % processes, 0);
    }
    finish(out);
}

// The `group` processes from `first` on exchange with all others of the group.
inline void linear_alltoall(Steps& out, std::uint32_t p, std::uint32_t first, std::uint32_t group,
                            std::uint32_t bytes) {
    for (std::uint32_t i = 1; i < group; ++i) send(out, first + (p - first + i) % group, bytes);
    for (std::uint32_t i = 1; i < group; ++i) receive(out, first + (p - first + group - i) % group, bytes);
}

}  // namespace velo::sim
