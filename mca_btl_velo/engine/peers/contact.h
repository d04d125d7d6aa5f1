// What the engine owes to a policy that opens windows on demand; see design/adding-a-policy.md: doorbells are
// answered at each poll, and whoever was asked to give way and computes is followed by one more.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/idle/idle.h"
#include "engine/peers/domain.h"
#include "engine/peers/peer_events.h"
#include "fabric/shm/doorbell.h"
#include "platform/gate.h"

namespace velo::engine {

class Contact final : public Work, public PeerEvents {
 public:
    // `doorbell`: of this process. `velo`, `remote`: the domains; the second may come later.
    Contact(platform::OptionalMutex& mutex, Idle& idle, const fabric::shm::Doorbell& doorbell, Domain& velo,
            std::optional<Domain>& remote)
        : mutex_(mutex), idle_(idle), doorbell_(doorbell), velo_(velo), remote_(remote) {}

    // It has rung, and was not answered.
    bool has_rung() const { return doorbell_.rung(); }

    // What it rang is not answered any more.
    void ended(Peer& peer) override;

    bool any() const override { return due_ns_ != 0; }
    int run(bool busy) override;

 private:
    int answer();
    void hurry();

    platform::OptionalMutex& mutex_;
    Idle& idle_;
    fabric::shm::Doorbell doorbell_;
    Domain& velo_;
    std::optional<Domain>& remote_;
    std::uint64_t due_ns_ = 0;  // when the patience is over; 0: nothing is pending
};

}  // namespace velo::engine
