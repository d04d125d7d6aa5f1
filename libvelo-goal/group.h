// Processes that run schedules together, and the plugin that does it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/velo_goal.h"
#include "goal.h"

namespace velo::library {

class Group {
 public:
    // Collective over `comm`. Throws Misuse, at all of its processes or at none.
    static std::shared_ptr<Group> open(MPI_Comm comm);
    // Collective. Throws Misuse if a run may be under way; then nothing has happened here.
    void close();

    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    ~Group() { leave(); }

    std::uint32_t rank() const { return rank_; }
    std::uint32_t size() const { return size_; }
    bool is_open() const { return group_ != nullptr; }

    // The plugin's functions, and its objects that they take. The group is open.
    const velo_goal_table& velo() const { return *table_; }
    velo_performer* performer() const { return performer_; }
    velo_goal_group* runs() const { return group_; }
    // Lets everything go on, MPI included, and perhaps another process run.
    void progress();

    std::atomic<std::uint64_t> under_way{0};  // runs that nobody has seen the end of

 private:
    Group() = default;
    void enter(MPI_Comm comm);
    void leave();
    void exchange_addresses();
    void agree_on_id();
    bool all(bool here) const;
    static velo_peer* reach(void* group, std::uint32_t rank);

    MPI_Comm comm_ = MPI_COMM_NULL;  // of its own
    std::uint32_t rank_ = 0, size_ = 0;
    const velo_goal_table* table_ = nullptr;
    void (*let_mpi_progress_)() = nullptr;
    velo_performer* performer_ = nullptr;
    velo_goal_group* group_ = nullptr;
    std::uint32_t id_ = 0;  // 0: none
    std::vector<std::byte> addresses_;
    std::vector<std::size_t> address_ends_;  // by rank
};

}  // namespace velo::library
