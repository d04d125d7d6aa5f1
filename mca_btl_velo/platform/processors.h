// The processors that the processes of a job on this machine have together.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace velo::platform {

// Where the process manager has bound each of them, as its words say ("SK0:L20:CR0:HT0-1:NM0"); nullopt if it
// has not bound one, or says nothing. Those that are bound to one processor each do not share it.
std::optional<std::uint32_t> processors_in(std::span<const char* const> localities);

// Of masks: what nobody has bound, this process has of its launcher, as the others have. One that is bound,
// by itself or by a script, is one of several that have all of their launcher's.
std::uint32_t processors_in(const cpu_set_t& own, const cpu_set_t& launcher);

// The nearest process above that is no rank itself, as a script would be that starts one; 0: there is none.
template <typename IsRank, typename ParentOf>
pid_t find_launcher(pid_t parent, IsRank is_rank, ParentOf parent_of) {
    constexpr int kMost = 16;
    for (int i = 0; i < kMost && parent > 0; ++i, parent = parent_of(parent))
        if (!is_rank(parent)) return parent;
    return 0;
}

std::uint32_t online_processors() noexcept;
// As the system says; all that are online, where it does not.
std::uint32_t shared_processors(std::span<const char* const> localities);

}  // namespace velo::platform
