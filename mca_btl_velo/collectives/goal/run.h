// A schedule that is being executed. Pure: it says what may start, and is told what has been started and what
// has finished. Nothing here calls itself: what finishes only makes others ready, be the chain as long as it
// may. Calls for one run must not overlap.
#pragma once

#include <cstring>
#include <vector>

#include "collectives/goal/combine.h"
#include "collectives/goal/schedule.h"

namespace velo::goal {

class Run {
 public:
    // The schedule must outlive the run. May be started again and again; memory is asked for here alone.
    explicit Run(const Schedule& schedule)
        : schedule_(&schedule), counters_(schedule.count()), first_(schedule.independents()) {
        // What is not independent becomes ready once.
        batch_.reserve(schedule.count() - first_.size());
        ready_.reserve(schedule.count() - first_.size());
        restart();
    }

    // From the beginning.
    void restart() {
        if (!counters_.empty())
            std::memcpy(counters_.data(), schedule_->counters(), counters_.size() * sizeof counters_[0]);
        first_ = schedule_->independents();
        ready_.clear();
        batch_.clear();
        position_ = 0;
        started_ = finished_ = 0;
        stopped_ = false;
    }

    const Schedule& schedule() const { return *schedule_; }
    Memory& memory() { return memory_; }
    const Memory& memory() const { return memory_; }

    // The next operation to start, kNoVertex: there is none yet. Who takes one must start it, or keep it
    // until he can; he tells when that is done. What has become ready together comes in the order of
    // starts_before().
    Vertex next() {
        if (position_ < first_.size()) return counted(first_[position_++]);
        if (const std::size_t at = position_ - first_.size(); at < batch_.size()) {
            ++position_;
            return counted(batch_[at]);
        }
        if (ready_.empty()) return kNoVertex;
        return following();
    }
    // All that has become ready since, in the order in which it did; instead of next(), for those who have an
    // order of their own. The independent ones come first.
    std::vector<Vertex> take();

    void started(Vertex v) { release(schedule_->start_dependents(v)); }
    void finished(Vertex v) {
        ++finished_;
        release(schedule_->dependents(v));
    }
    // Nothing more is started, what is under way may end. What has not been started waits for ever.
    void stop();
    // Before stop(): whoever has kept an operation will not start it.
    void give_back(Vertex v) {
        --started_;
        counters_[v] = 1;
    }

    // Nothing is under way, and nothing more will be.
    bool done() const { return finished_ == (stopped_ ? started_ : schedule_->count()); }
    // Whoever finishes an operation may drain: the first one does, for those who come meanwhile.
    class Draining {
     public:
        explicit Draining(Run& run) : run_(run), first_(!run.draining_) { run_.draining_ = true; }
        ~Draining() {
            if (first_) run_.draining_ = false;
        }
        Draining(const Draining&) = delete;
        Draining& operator=(const Draining&) = delete;
        bool first() const { return first_; }

     private:
        Run& run_;
        bool first_;
    };

    bool has_ready() const { return position_ < first_.size() + batch_.size() || !ready_.empty(); }
    std::uint32_t finished_count() const { return finished_; }
    bool stopped() const { return stopped_; }
    bool waits(Vertex v) const { return counters_[v] > 0; }

 private:
    Vertex counted(Vertex v) {
        ++started_;
        return v;
    }
    Vertex following();
    void release(std::span<const Vertex> dependents) {
        for (const Vertex d : dependents)
            if (--counters_[d] == 0 && !stopped_) ready_.push_back(d);
    }

    const Schedule* schedule_;
    std::vector<std::uint32_t> counters_;
    std::span<const Vertex> first_;  // what is independent, in the schedule itself: a start copies no list
    std::vector<Vertex> batch_;      // what next() gives after them
    std::vector<Vertex> ready_;      // what has become ready since
    std::size_t position_ = 0;       // in first_ and batch_, one after the other
    std::uint32_t started_ = 0;      // handed out
    std::uint32_t finished_ = 0;
    bool stopped_ = false;
    bool draining_ = false;
    Memory memory_;
};

// The seam between runs and what carries messages: a simulated machine, an engine. Each function starts an
// operation and returns. When it has finished, be it before the return or long after it, the executor calls
// run.finished(v), and later drain(). If it has failed, run.stop() comes before.
class Executor {
 public:
    virtual void send(Run& run, Vertex v, const Operation& operation) = 0;
    virtual void receive(Run& run, Vertex v, const Operation& operation) = 0;
    // What needs no peer: a calculation, a combination, a call.
    virtual void work(Run& run, Vertex v, const Operation& operation) = 0;

 protected:
    ~Executor() = default;
};

// Starts what is ready and what that makes ready, `most` operations at a time. False: there is more to start.
// Within a call of the executor it does nothing: what is ready is started when that call has returned.
bool drain(Run& run, Executor& executor, std::uint32_t most = UINT32_MAX);

}  // namespace velo::goal
