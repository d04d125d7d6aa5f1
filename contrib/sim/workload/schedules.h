// Schedules as a workload: what the processes do is not a list of steps but a graph each.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "collectives/goal/program.h"
#include "workload/workload.h"

namespace velo::sim {

class Schedules : public Workload {
 public:
    // Who knows whom: in small jobs everybody everybody, as in the plugin.
    static constexpr std::uint32_t kDense = 1024;

    Schedules(const goal::Program& program, std::uint32_t iterations)
        : program_(program), iterations_(iterations), peers_(program.size()) {
        for (const goal::Schedule& schedule : program.schedules)
            for (const goal::Operation& o : schedule.operations())
                if (o.kind == goal::Kind::kSend && o.peer != schedule.rank()) {
                    peers_[schedule.rank()].push_back(o.peer);
                    peers_[o.peer].push_back(schedule.rank());
                }
        for (std::vector<std::uint32_t>& peers : peers_) {
            std::ranges::sort(peers);
            peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
        }
    }

    std::string name() const override { return "schedules"; }
    std::uint32_t processes() const override { return program_.size(); }
    std::uint32_t iterations() const override { return iterations_; }
    void steps(std::uint32_t, std::uint32_t, std::vector<Step>&) const override {}
    std::vector<std::uint32_t> peers(std::uint32_t process) const override { return peers_[process]; }
    bool sparse() const override { return program_.size() > kDense; }
    const goal::Program* program() const override { return &program_; }

 private:
    const goal::Program& program_;
    std::uint32_t iterations_;
    std::vector<std::vector<std::uint32_t>> peers_;
};

}  // namespace velo::sim
