// A limit on how long UCX's TCP connections may wait for an acknowledgement.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace velo::fabric::ucx {

using WorkerAddress = std::span<const std::byte>;

// Sets TCP_USER_TIMEOUT on those TCP connections of this process that UCX made or accepted: the other end,
// or our own, has an IP address and a port that occur in the worker address of a peer, or in ours.
// TCP's keep-alive finds an idle connection dead; while data is unacknowledged Linux would go on for a
// quarter of an hour. `any_peer` tells whether the test that it is given holds for a known peer's address.
void limit_unacknowledged(unsigned timeout_ms, WorkerAddress own,
                          const std::function<bool(const std::function<bool(WorkerAddress)>&)>& any_peer);

}  // namespace velo::fabric::ucx
