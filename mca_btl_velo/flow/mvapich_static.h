// The user-level static scheme of Liu & Panda (section 4.2): a fixed number of pre-posted buffers for each
// peer. Packets without a credit wait in the backlog, freed buffers go back with whatever travels the other
// way, or in an explicit credit message once a few of them have come together.
//
// Explicit credit messages are optimistic: they take no credit and never wait. Each carries at least the
// threshold, and all of a peer's credits together are its buffers, so that no more than buffers div threshold
// are ever under way in a pair: those are the slots that the mailbox keeps for them.
#pragma once

#include "flow/policy.h"

namespace velo::flow {

// As under "static", a slot counts as available from its retrieval to its return.
class MvapichStaticPolicy : public Policy {
 public:
    explicit MvapichStaticPolicy(const PolicyConfig& config);
    std::uint32_t intended(PeerIndex from) const override { return buffers(from); }
    std::string violation() const override;

    // Buffers that belong to this sender.
    std::uint32_t buffers(PeerIndex from) const { return peers_[from].current + peers_[from].retrieved; }

 protected:
    // Every peer starts with `buffers` of the `data_slots`.
    MvapichStaticPolicy(const PolicyConfig& config, std::string_view name, std::uint32_t data_slots,
                        std::uint32_t buffers);

    // What can be wrong with one peer, whatever its number of buffers.
    std::string peer_violation(PeerIndex from) const;
};

// Freed buffers that are worth a message. Not above the number of buffers, where the paper's 5 would never be
// reached.
std::uint32_t credit_message_threshold(const PolicyConfig& config, std::uint32_t buffers);
// ", credit messages from 5 freed ones on, piggyback on"
std::string credit_message_text(const PolicyConfig& config, std::uint32_t buffers);

}  // namespace velo::flow
