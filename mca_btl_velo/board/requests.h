// Operations of a member that nobody waits for: of one run each, one after the other, as they were started.
// They go on whenever their process makes progress.
#pragma once

#include <cstddef>
#include <vector>

#include "board/member.h"

namespace velo::board {

template <typename Operation>
class Requests {
 public:
    explicit Requests(Member* member) : member_(member) {}

    bool empty() const { return first_ == all_.size(); }

    // Of the one that starts; the same at all members, in the same order. True: perform() has ended it. If
    // not, it is to be added. Throws Failure.
    template <typename Perform>
    bool over_at_once(const Step& step, Perform perform) {
        return empty() && goes_on(step) && end(perform);
    }
    // Stays where it is until the next one.
    Operation& add(const Step& step, const Operation& operation) {
        if (all_.size() == all_.capacity() && first_ > all_.size() / 2) {
            all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(first_));
            first_ = 0;
        }
        return all_.emplace_back(One{step, operation}).operation;
    }

    // Goes on with the first one. True: perform(operation) has ended it, and it is to be taken. Throws
    // Failure.
    template <typename Perform>
    bool advance(Perform perform) {
        const One& one = all_[first_];
        if (goes_on(one.step)) return end([&] { perform(one.operation); });
        member_->waiting().look_again(
            &patience_, [&] { member_->check(one.step); }, [&] { return member_->slowest(); });
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
        is_given_ = is_given_ || member_->give(step);
        return is_given_ && member_->has_all(step);
    }
    template <typename Perform>
    bool end(Perform perform) {
        perform();
        member_->forget();
        is_given_ = false;
        patience_ = {};
        return true;
    }

    Member* member_;
    std::vector<One> all_;
    std::size_t first_ = 0;  // that is under way
    bool is_given_ = false;
    Waiting::Patience patience_;
};

}  // namespace velo::board
