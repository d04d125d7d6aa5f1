// The user-level dynamic scheme of Liu & Panda (section 4.3): as mvapich_static, but each peer starts with a
// few buffers, and gets more when a packet comes that had to wait in the sender's backlog. It never gives any
// back.
//
// What is free and belongs to nobody is a pool that all peers draw upon. The threshold follows the buffers: a
// peer that has fewer than credit_message_threshold gets all of them back at once. Such a message is alone:
// its sender has no credit, so that no other packet comes that could free or bring a buffer, before it has
// got it. All others carry credit_message_threshold at least, so that preposted_buffers div threshold slots
// hold those of a pair.
#pragma once

#include "flow/backlog.h"
#include "flow/mvapich_static.h"

namespace velo::flow {

class MvapichDynamicPolicy final : public MvapichStaticPolicy, private Backlog {
 public:
    explicit MvapichDynamicPolicy(const PolicyConfig& config);
    Extensions extensions() override { return {.backlog = this}; }
    bool departed(PeerIndex peer, Emitter& out) override;
    std::string violation() const override;

    // Buffers that belong to no peer yet.
    std::uint32_t pool() const { return pool_; }

 private:
    void backlogged_data_retrieved(FlowIndex from, Emitter& out) override;
    void grow(FlowIndex from);

    std::uint32_t pool_;
};

}  // namespace velo::flow
