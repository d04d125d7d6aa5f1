// The mechanisms that the user's choice permits, and this process's own side of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "singlecopy/singlecopy.h"

namespace velo::singlecopy {

class Mechanisms {
 public:
    // `choice`: a value of btl_velo_single_copy_mechanism. Throws Failure if a mechanism was asked for by
    // name and this process cannot have it.
    explicit Mechanisms(std::string_view choice);

    // To be told to the peers; see RemoteProcess.
    std::int64_t xpmem_segment() const { return xpmem_segment_; }
    bool none() const { return candidates_.empty(); }
    // One mechanism and no other: transfers are not to take another route either.
    bool forced() const { return choice_ != "auto" && !candidates_.empty(); }
    // Access by the fastest mechanism that works with this process; nullptr if none does. Throws Failure
    // where the mechanism was asked for by name.
    std::unique_ptr<RemoteMemory> reach(const RemoteProcess& process) const;
    // "auto (xpmem, cma where the peer permits it)"
    std::string description() const;

 private:
    void add_xpmem();
    void add_cma();

    std::string choice_;
    std::vector<std::unique_ptr<Mechanism>> candidates_;  // fastest first
    std::int64_t xpmem_segment_ = 0;
};

}  // namespace velo::singlecopy
