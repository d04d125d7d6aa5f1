// A queue in one vector: cheap to copy, which the exploration of states does a lot.
#pragma once

#include <cstddef>
#include <vector>

namespace velo::schedule {

template <class T>
class Fifo {
 public:
    bool empty() const { return head_ == items_.size(); }
    std::size_t size() const { return items_.size() - head_; }
    const T& front() const { return items_[head_]; }
    const T& operator[](std::size_t i) const { return items_[head_ + i]; }
    T& operator[](std::size_t i) { return items_[head_ + i]; }
    T& back() { return items_.back(); }
    void push(const T& item) { items_.push_back(item); }
    T pop() {
        T item = items_[head_++];
        if (head_ == items_.size() || head_ == kCompactAt) {
            items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
            head_ = 0;
        }
        return item;
    }

 private:
    static constexpr std::size_t kCompactAt = 64;
    std::vector<T> items_;
    std::size_t head_ = 0;
};

}  // namespace velo::schedule
