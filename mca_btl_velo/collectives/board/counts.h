// What members of boards count.
#pragma once

#include <atomic>
#include <cstdint>

namespace velo::board {

// How often something has happened; another thread may read it.
class Count {
 public:
    void operator+=(std::uint64_t more) {
        value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }
    operator std::uint64_t() const { return value_.load(std::memory_order_relaxed); }

 private:
    std::atomic<std::uint64_t> value_{0};
};

// Of one board, or of all that this process has had.
struct Totals {
    std::uint64_t boards;
    std::uint64_t published;
    std::uint64_t picked_up;
    std::uint64_t credit_waits;  // for the slowest to finish an old run
    std::uint64_t long_waits;    // that were longer than a look
    std::uint64_t requests;      // operations that nobody waited for
    std::uint64_t direct;        // blocks taken from the memory of who gave them

    Totals& operator+=(const Totals& other);
};
Totals totals();

// Of one member, from its begin to its end part of totals().
struct Counts {
    explicit Counts(const Count& long_waits);
    ~Counts();
    Counts(const Counts&) = delete;

    Totals counted() const { return {1, published, picked_up, credit_waits, long_waits, requests, direct}; }

    Count published, picked_up, credit_waits, requests, direct;
    const Count& long_waits;
};

}  // namespace velo::board
