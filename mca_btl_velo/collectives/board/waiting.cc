#include "collectives/board/waiting.h"

#include <sched.h>

#include "platform/monotonic.h"

namespace velo::board {

void Waiting::give_up_core() {
    (void)sched_yield();
}

std::optional<std::uint32_t> Waiting::ended(std::uint32_t members, std::uint32_t me) {
    constexpr std::uint64_t kBetweenLooksNs = 100'000'000;
    const std::uint64_t now = platform::monotonic_ns();
    if (around_.has_ended == nullptr || now < looks_for_ended_ns_) return {};
    looks_for_ended_ns_ = now + kBetweenLooksNs;
    for (std::uint32_t member = 0; member < members; ++member)
        if (member != me && around_.has_ended(around_.context, member)) return member;
    return {};
}

// After the time of a warning, twice, four times as much, ...; counted from the first look at the clock.
bool Waiting::is_due(std::uint64_t* began_ns, std::uint64_t* due_ns) {
    const std::uint64_t now = platform::monotonic_ns();
    if (*began_ns == 0) *began_ns = now;
    if (*due_ns == 0 || now - *began_ns < *due_ns) return false;
    *due_ns *= 2;
    return true;
}

void Waiting::warn(std::uint64_t began_ns, const std::string& whom) const {
    const std::uint64_t seconds = (platform::monotonic_ns() - began_ns) / 1'000'000'000;
    const std::string line =
        "no progress on the board of " + around_.name + " for " + std::to_string(seconds) + " s: " + whom +
        ". That process may be computing without calling MPI, be stopped, or have called "
        "another operation or one of another size. btl_velo_stall_warning sets the seconds until this "
        "warning, 0 for none";
    around_.log(around_.context, 0, line.c_str());
}

}  // namespace velo::board
