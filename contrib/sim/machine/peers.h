// Who is who in whose directory. Dense: everybody knows everybody, in id order. Sparse: a process knows those
// that its workload names, and the memory follows their number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "workload/workload.h"

namespace velo::sim {

class Peers {
 public:
    explicit Peers(const Workload& workload) : processes_(workload.processes()), sparse_(workload.sparse()) {
        if (!sparse_) return;
        first_.reserve(processes_ + 1);
        for (std::uint32_t p = 0; p < processes_; ++p) {
            first_.push_back(lists_.size());
            const std::vector<std::uint32_t> peers = workload.peers(p);
            lists_.insert(lists_.end(), peers.begin(), peers.end());
        }
        first_.push_back(lists_.size());
        lists_.shrink_to_fit();
    }

    std::uint32_t processes() const { return processes_; }
    std::uint32_t count(std::uint32_t p) const {
        return sparse_ ? static_cast<std::uint32_t>(first_[p + 1] - first_[p]) : processes_ - 1;
    }
    // Position of the first peer of `p` in an array of all pairs.
    std::size_t first(std::uint32_t p) const {
        return sparse_ ? first_[p] : std::size_t{p} * (processes_ - 1);
    }
    std::size_t pairs() const { return sparse_ ? lists_.size() : std::size_t{processes_} * (processes_ - 1); }
    std::uint32_t process_at(std::uint32_t p, std::uint32_t index) const {
        return sparse_ ? lists_[first_[p] + index] : index + (index >= p);
    }
    // `peer` must be in the directory of `p`.
    std::uint32_t index_of(std::uint32_t p, std::uint32_t peer) const {
        if (!sparse_) return peer - (peer > p);
        const auto begin = lists_.begin() + static_cast<std::ptrdiff_t>(first_[p]);
        const auto end = lists_.begin() + static_cast<std::ptrdiff_t>(first_[p + 1]);
        return static_cast<std::uint32_t>(std::lower_bound(begin, end, peer) - begin);
    }

 private:
    std::uint32_t processes_;
    bool sparse_;
    std::vector<std::size_t> first_;
    std::vector<std::uint32_t> lists_;
};

}  // namespace velo::sim
