// A schedule with what its runs need besides, and runs of it that are over and serve again.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/goal/schedule.h"

namespace velo::performing {

struct Group;
struct LiveRun;

// Of no operation.
inline constexpr std::uint32_t kNoTag = std::uint32_t{1} << 31;

inline constexpr std::uint64_t kLeastAnnounced = std::uint64_t{16} * 1024;

struct Compiled {
    explicit Compiled(goal::Schedule made);
    ~Compiled();

    goal::Schedule schedule;
    std::uint32_t arguments = 0;        // that a run is started with, at least
    std::uint32_t most_tag = 0;         // of its messages
    std::uint64_t moved_bytes = 0;      // that it sends, receives and combines, all together
    std::uint32_t shared_tag = kNoTag;  // messages with it are the same to all of their receivers
    std::uint32_t signature = 0;        // of a collective operation: all of its messages' tags have it
    bool combines = false;              // by an operation of the program's own
    bool led = false;                   // they come from, or by, who leads this process's node
    // Receives that are worth an announcement: whether as much goes to the sender, too.
    enum class Large : std::uint8_t { kNo, kOneWay, kBothWays };
    std::vector<Large> large;              // by operation; empty: none
    std::uint64_t nowhere = 0;             // bytes of data that is nobody's, at most
    std::unique_ptr<std::byte[]> nobodys;  // so many, once there is a run
    std::vector<std::unique_ptr<LiveRun>> idle;
    std::weak_ptr<Group> reached;  // its members have been asked for, as far as this concerns them
};

// Throws Failure (VELO_ERR_PARAMETER) that says what is wrong with the graph.
std::shared_ptr<Compiled> compiled(const goal::Graph& graph);

}  // namespace velo::performing
