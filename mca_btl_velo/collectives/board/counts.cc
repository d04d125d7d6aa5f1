#include "collectives/board/counts.h"

#include <mutex>
#include <vector>

namespace velo::board {
namespace {

// All members of this process, and what those that are gone have counted.
struct Register {
    std::mutex mutex;
    std::vector<const Counts*> open;
    Totals gone{};
};
Register& all() {
    static Register all;
    return all;
}

}  // namespace

Totals& Totals::operator+=(const Totals& other) {
    boards += other.boards;
    published += other.published;
    picked_up += other.picked_up;
    credit_waits += other.credit_waits;
    long_waits += other.long_waits;
    requests += other.requests;
    direct += other.direct;
    return *this;
}

Totals totals() {
    std::lock_guard lock(all().mutex);
    Totals sum = all().gone;
    for (const Counts* counts : all().open) sum += counts->counted();
    return sum;
}

Counts::Counts(const Count& of_waiting) : long_waits(of_waiting) {
    std::lock_guard lock(all().mutex);
    all().open.push_back(this);
}

Counts::~Counts() {
    std::lock_guard lock(all().mutex);
    all().gone += counted();
    std::erase(all().open, this);
}

}  // namespace velo::board
