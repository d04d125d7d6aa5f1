// Set-up: the mailbox, the policies, and what all of the engine needs.
#include "engine/engine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "engine/observe/description.h"
#include "engine/peers/sizing.h"
#include "flow/policies.h"
#include "parameters/table.h"
#include "platform/failure.h"

namespace velo::engine {

Engine::Engine(const velo_config& config)
    : Engine(config, open_policy(config.flow_control, flow_config(config, Nodes::kOwn))) {}

Engine::Engine(const velo_config& config, std::unique_ptr<flow::Policy> policy)
    : config_(config),
      texts_(parameters::keep_texts(config_)),
      slots_per_peer_(slots_for_each(config, Nodes::kOwn)),
      mutex_(config.threads),
      gate_(config.threads),
      probe_(std::make_unique<std::uint64_t>(0)),
      mechanisms_(config.single_copy_mechanism),
      mailbox_(open_mailbox(config, policy->config(), probe_.get(), mechanisms_.xpmem_segment())),
      idle_(*this, mutex_, mailbox_.header(), longest_sleep(config), config.idle_sleep != 0),
      retrieval_(
          {*this, mutex_, gate_, idle_, pace_, peers_, large_, batches_, remote_, mailbox_, interceptor_},
          config_),
      remote_({retrieval_, mutex_, idle_, units_, peers_, large_, departures_, observer_, config_, mailbox_}),
      peers_(*this, mutex_, idle_, units_, config_, mailbox_, mechanisms_.forced()),
      velo_(*this, Domain::Kind::kVelo, std::move(policy), config.delay_credits, mailbox_.reader(), 0,
            &observer_.counts.data_packets, &observer_.counts.mailbox_high_water),
      routes_(config_, mailbox_.outbox_plan().chunks() > 0),
      large_({*this, mutex_, idle_, gate_, peers_, routes_, config_, mechanisms_, mailbox_, staging_,
              observer_.counts}) {
    platform::know_own_job(config.process_name);
    const flow::PolicyConfig& flow = velo_.policy->config();
    if (velo_.ledger.on_demand()) {
        contact_.emplace(mutex_, idle_, mailbox_.doorbell(), velo_, remote_.domain());
        idle_.always(*contact_);
    }
    if (config.limic_peer_count > 0) {
        flow::PolicyConfig local{};
        local.peers = config.limic_peer_count;
        local.data_slots = mailbox_.limic_slots();
        limic_.emplace(*this, Domain::Kind::kLimic, flow::make_policy("none", local, nullptr), false,
                       mailbox_.limic_reader(), flow.total_peers(), &observer_.counts.limic_packets,
                       &observer_.counts.limic_high_water);
        sends_are_followed_ = true;
    }
    remote_.open(*this);
    if (remote_.domain()) sends_are_followed_ = true;
    departures_.open_null_peer(*this, mailbox_.reader(), static_cast<flow::PeerIndex>(peers_.table().size()));
    const Described described{config_,
                              mailbox_,
                              velo_,
                              remote_.domain(),
                              mechanisms_,
                              routes_,
                              slots_per_peer_,
                              large_.single_copy_only(),
                              peers_.is_first_on_node()};
    observer_.describe(description_of(described));
    if (described.first_on_node && !config.second) log_routes(described);
    units_.add(large_);
    units_.add(references_);
    units_.add(batches_);
    if (contact_) units_.add(*contact_);
    units_.add(peers_);
    units_.add(retrieval_);
    units_.add(pending_);
    units_.add(*this);
    units_.add(remote_);
    idle_.when_wanted(batches_);
    idle_.when_wanted(peers_);
    idle_.when_wanted(*this);
    if (observer_.open_trace(slots_per_peer_)) sends_are_followed_ = true;
}

Engine::~Engine() {
    if (interceptor_.active())
        config_.log(config_.context, 1, ("intercepted: " + interceptor_.text()).c_str());
}

Domain& Engine::domain_of(flow::PeerIndex index) {
    if (remote_.has(index)) return *remote_.domain();
    return limic_ && index >= limic_->first_peer ? *limic_ : velo_;
}

void Engine::look_for_departed() {
    if (!gate_.try_enter()) return;
    departures_.look_at_all();
    gate_.leave();
}

// In a process that fork has made the mutex may be held for ever, by a thread that is not there, and the
// buffer of the trace is its parent's.
void Engine::abandon() {
    if (getpid() != mailbox_.address().file.pid) return;
    std::lock_guard lock(mutex_);
    observer_.flush_trace();
    mailbox_.file().unpublish();
}

void Engine::look_around() {
    departures_.look();
    if (Peer* const killed = config_.outlives_peers ? nullptr : departures_.killed()) large_.died(*killed);
    if (!observer_.looks()) return;
    std::lock_guard lock(mutex_);
    observer_.look();
}

void Engine::attached(Peer& peer) {
    peer.link.intercept(interceptor_);
    if (peer.is_local()) routes_.apply_to(peer);
    const bool plain = peer.link.is_direct() && peer.domain.limited && peer.ledger().delays() &&
                       !config_.threads && !sends_are_followed_ && !peer.dozes && config_.packet_trains;
    peer.may_be_plain = plain;
    peer.plain.store(plain, std::memory_order_relaxed);
    observer_.connected(peer);
}

void Engine::departed(Peer& peer) {
    peer.plain.store(false, std::memory_order_relaxed);
    assert_invariants();
}

void Engine::gone(Peer& peer) {
    if (peer.stranger && config_.gone != nullptr)
        config_.gone(config_.context, peer.index, mailbox_.senders().name(peer.index));
}

void Engine::publish_statistics() {
    observer_.publish(mailbox_, sizeof(Engine) + retrieval_.buffer_bytes());
}

void Engine::fail(velo_status status, const char* text) {
    retrieval_.stop();
    config_.fatal(config_.context, status, text);
}

void Engine::abort_on_violation() {
    std::string violation = velo_.policy->violation();
    // With several threads the one in the gate is moving the read position.
    bool bounded = !config_.threads && (velo_.policy->limited() || velo_.refusal != nullptr);
    if (violation.empty() && bounded && velo_.reader.occupancy() > velo_.reader.capacity()) {
        violation = "I4: more packets than slots in the mailbox";
    }
    if (violation.empty()) violation = staging_.violation();
    if (violation.empty()) violation = large_.deposits().violation();
    if (violation.empty() && remote_.domain()) violation = remote_.domain()->policy->violation();
    if (violation.empty()) return;
    std::fprintf(stderr, "velo: flow control invariant violated: %s\n", violation.c_str());
    std::abort();
}

}  // namespace velo::engine
