#include "group.h"

#include <dlfcn.h>
#include <sched.h>

#include <climits>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "calls.h"
#include "plugin.h"

namespace velo::library {
namespace {

constexpr std::uint32_t kIds = 65536;  // beyond the last one

// Numbers of groups of this process. What has been freed is not taken again for as long as possible: late
// packets may name it.
class Ids {
 public:
    std::uint32_t propose() {
        std::lock_guard held(mutex_);
        while (taken_.contains(next_) && taken_.size() < kIds - VELO_GOAL_FIRST_FREE_ID) advance(next_);
        return next_;
    }
    bool take(std::uint32_t id) {
        std::lock_guard held(mutex_);
        advance(id);
        return taken_.insert(id).second;
    }
    void give_back(std::uint32_t id) {
        std::lock_guard held(mutex_);
        taken_.erase(id);
    }

 private:
    void advance(std::uint32_t id) { next_ = id + 1 < kIds ? id + 1 : VELO_GOAL_FIRST_FREE_ID; }

    std::mutex mutex_;
    std::set<std::uint32_t> taken_;
    std::uint32_t next_ = VELO_GOAL_FIRST_FREE_ID;
};

Ids& ids() {
    static Ids* all = new Ids;  // groups may end after the destructors of main()
    return *all;
}

}  // namespace

bool Group::all(bool here) const {
    int everywhere = here;
    MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, comm_);
    return everywhere != 0;
}

std::shared_ptr<Group> Group::open(MPI_Comm comm) {
    int is = 0;
    MPI_Initialized(&is);
    if (!is) throw Misuse{GOAL_ERR_STATE, "", "MPI is not initialised: call MPI_Init before"};
    MPI_Finalized(&is);
    if (is) throw Misuse{GOAL_ERR_STATE, "", "MPI is finalized"};
    if (comm == MPI_COMM_NULL) throw Misuse{GOAL_ERR_ARGUMENT, "comm", "is MPI_COMM_NULL"};
    MPI_Comm_test_inter(comm, &is);
    if (is) throw Misuse{GOAL_ERR_ARGUMENT, "comm", "is an inter-communicator"};
    std::shared_ptr<Group> group(new Group);
    group->enter(comm);
    return group;
}

void Group::enter(MPI_Comm comm) {
    MPI_Comm_dup(comm, &comm_);
    int rank, size;
    MPI_Comm_rank(comm_, &rank);
    MPI_Comm_size(comm_, &size);
    rank_ = static_cast<std::uint32_t>(rank);
    size_ = static_cast<std::uint32_t>(size);
    // One part of Open MPI that every program with MPI has.
    let_mpi_progress_ = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "opal_progress"));
    std::string error;
    const Plugin plugin = plugin_of_process(&error);
    table_ = plugin.table;
    performer_ = plugin.performer;
    if (!all(performer_ != nullptr))
        throw Misuse{
            GOAL_ERR_VELO, "",
            performer_ == nullptr ? error : "another process of the group cannot use Velo, and says why"};
    exchange_addresses();
    agree_on_id();
    const velo_status status =
        table_->velo_goal_group_open(performer_, id_, rank_, size_, reach, this, &group_);
    if (!all(status == VELO_OK)) throw Misuse{GOAL_ERR_MEMORY, "", "a group cannot be opened"};
}

void Group::exchange_addresses() {
    std::size_t bytes;
    const void* own = table_->velo_performer_address(performer_, &bytes);
    int count = static_cast<int>(bytes);
    std::vector<int> counts(size_), places(size_);
    MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, comm_);
    const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    if (total > INT_MAX) throw Misuse{GOAL_ERR_MEMORY, "", "the addresses of the processes exceed 2 GiB"};
    std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0);
    addresses_.resize(total);
    address_ends_.resize(size_);
    std::inclusive_scan(counts.begin(), counts.end(), address_ends_.begin(), std::plus<std::size_t>(), 0);
    MPI_Allgatherv(own, count, MPI_BYTE, addresses_.data(), counts.data(), places.data(), MPI_BYTE, comm_);
}

// The largest that anybody proposes, if it is free at all; else from there on.
void Group::agree_on_id() {
    for (std::uint32_t tries = 0; tries < kIds; ++tries) {
        unsigned id = ids().propose();
        MPI_Allreduce(MPI_IN_PLACE, &id, 1, MPI_UNSIGNED, MPI_MAX, comm_);
        const bool taken = ids().take(id);
        if (all(taken)) {
            id_ = id;
            return;
        }
        if (taken) ids().give_back(id);
    }
    throw Misuse{GOAL_ERR_MEMORY, "", "there are too many groups"};
}

velo_peer* Group::reach(void* context, std::uint32_t rank) {
    const auto* self = static_cast<const Group*>(context);
    const std::size_t begin = rank == 0 ? 0 : self->address_ends_[rank - 1];
    velo_peer* peer = nullptr;
    char error[512] = "";
    if (self->table_->velo_performer_connect(self->performer_, &self->addresses_[begin],
                                             self->address_ends_[rank] - begin, &peer, error,
                                             sizeof error) != VELO_OK)
        tell("GOAL_Run", {GOAL_ERR_RUN, "", "rank " + std::to_string(rank) + " cannot be reached: " + error});
    return peer;
}

void Group::close() {
    if (const std::uint64_t left = under_way; left > 0)
        throw Misuse{GOAL_ERR_STATE, "", std::to_string(left) + " runs have not been waited for"};
    MPI_Barrier(comm_);
    leave();
}

void Group::leave() {
    if (is_released()) return;
    if (group_ != nullptr) table_->velo_goal_group_close(std::exchange(group_, nullptr));
    if (id_ != 0) ids().give_back(std::exchange(id_, 0));
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

void Group::progress() {
    constexpr int kAlone = 16;
    for (int i = 0; i < kAlone; ++i)
        if (table_->velo_goal_progress(performer_) > 0) return;
    let_mpi_progress_ != nullptr ? let_mpi_progress_() : static_cast<void>(sched_yield());
}

}  // namespace velo::library
