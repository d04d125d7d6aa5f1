// Operations of a member that nobody waits for, one after the other, as they were started. They go on
// whenever their process makes progress.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/board/runs.h"

namespace velo::board {

template <typename Operation>
class Requests {
 public:
    explicit Requests(Runs* runs) : runs_(runs) {}

    bool empty() const { return first_ == all_.size(); }

    // Of the one that starts; the same at all members, in the same order. perform() does a run of it. True:
    // it is over. If not, it is to be added. Throws Failure.
    template <typename Perform>
    bool over_at_once(const Step& step, Perform perform) {
        return empty() && ends(step, perform);
    }
    // Stays where it is until the next one.
    Operation& add(const Step& step, const Operation& operation) {
        if (all_.size() == all_.capacity() && first_ > all_.size() / 2) {
            all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(first_));
            first_ = 0;
        }
        return all_.emplace_back(One{step, operation}).operation;
    }

    // Goes on with the first one, whose runs perform(operation) does. True: it is over, and to be taken.
    // Throws Failure.
    template <typename Perform>
    bool advance(Perform perform) {
        const One& one = all_[first_];
        if (ends(one.step, [&] { perform(one.operation); })) return true;
        runs_->waiting().look_again(
            &patience_, [&] { runs_->check(one.step); }, [&] { return runs_->slowest(); });
        return false;
    }
    Operation take_first() {
        const Operation first = all_[first_].operation;
        if (++first_ == all_.size()) {
            all_.clear();
            first_ = 0;
        }
        return first;
    }

 private:
    struct One {
        Step step;
        Operation operation;
    };

    bool goes_on(const Step& step) {
        is_given_ = is_given_ || runs_->give(step);
        return is_given_ && runs_->has_all(step);
    }
    // As many runs as can be done now.
    template <typename Perform>
    bool ends(const Step& step, Perform perform) {
        while (goes_on(step)) {
            perform();
            is_given_ = false;
            patience_ = {};
            if (runs_->is_over(step)) return true;
        }
        return false;
    }

    Runs* runs_;
    std::vector<One> all_;
    std::size_t first_ = 0;  // that is under way
    bool is_given_ = false;
    Waiting::Patience patience_;
};

}  // namespace velo::board
