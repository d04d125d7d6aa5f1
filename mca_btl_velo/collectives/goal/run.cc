#include "collectives/goal/run.h"

#include <algorithm>

namespace velo::goal {

Vertex Run::following() {
    batch_.clear();
    batch_.swap(ready_);
    position_ = first_.size() + 1;
    if (batch_.size() > 1)
        std::sort(batch_.begin(), batch_.end(), [this](Vertex v, Vertex w) {
            return starts_before(schedule_->operation(v), v, schedule_->operation(w), w);
        });
    return counted(batch_[0]);
}

void Run::stop() {
    for (Vertex v; (v = next()) != kNoVertex; --started_) counters_[v] = 1;
    stopped_ = true;
}

std::vector<Vertex> Run::take() {
    std::vector<Vertex> taken;
    if (position_ < first_.size()) {
        taken.assign(first_.begin() + static_cast<std::ptrdiff_t>(position_), first_.end());
        position_ = first_.size();
    }
    taken.insert(taken.end(), ready_.begin(), ready_.end());
    ready_.clear();
    started_ += static_cast<std::uint32_t>(taken.size());
    return taken;
}

bool drain(Run& run, Executor& executor, std::uint32_t most) {
    const Run::Draining draining(run);
    if (!draining.first()) return true;
    for (; most > 0; --most) {
        const Vertex v = run.next();
        if (v == kNoVertex) return true;
        const Operation& operation = run.schedule().operation(v);
        run.started(v);
        switch (operation.kind) {
            case Kind::kSend:
                executor.send(run, v, operation);
                break;
            case Kind::kReceive:
                executor.receive(run, v, operation);
                break;
            case Kind::kCalculate:
            case Kind::kCombine:
            case Kind::kCall:
                executor.work(run, v, operation);
                break;
        }
    }
    return !run.has_ready();
}

}  // namespace velo::goal
