// One peer as this process sees it: the way to its mailbox, what waits to go there, what is arriving from it.
// Lives from the first contact, in either direction, until the engine closes; if a process of another job has
// ended, as the peer of the next process in its place.
#pragma once

#include <atomic>
#include <cstddef>

#include "engine/peers/bidirectional_traffic.h"
#include "engine/peers/cache_proximity.h"
#include "engine/peers/domain.h"
#include "engine/peers/incoming.h"
#include "engine/peers/peer_link.h"
#include "engine/peers/send_queue.h"
#include "engine/peers/sent_references.h"
#include "engine/peers/stalls.h"
#include "fabric/shm/segment.h"
#include "flow/ledger.h"
#include "flow/outbox.h"
#include "platform/copy.h"
#include "platform/doze.h"
#include "wire/batch.h"

// The account is that of the ledger of its domain. What a message of one packet needs, in either direction,
// is in the first two cache lines.
struct alignas(64) velo_peer : velo::flow::Account {
    velo_peer(velo::flow::PeerIndex at, velo::engine::Domain& in)
        : Account(in.ledger.account_of(at - in.first_peer)),
          domain(in),
          index(at),
          stranger(in.kind == velo::engine::Domain::Kind::kVelo && at >= in.policy->config().peers) {}

    bool is_local() const { return domain.kind <= velo::engine::Domain::Kind::kLimic; }
    bool is_remote() const { return domain.kind == velo::engine::Domain::Kind::kRemote; }
    // Of its packets in the mailbox of this process.
    velo::flow::PeerIndex source() const { return peer; }
    velo::flow::Ledger& ledger() const { return domain.ledger; }
    const velo::flow::Policy& policy() const { return domain.ledger.policy(); }
    const velo::flow::PeerFlow& counts() const { return policy().peer(flow); }

    void forget_references() {
        sent_references.forget();
        references_read.store(0, std::memory_order_relaxed);
        came_in_row = 0;
    }
    // One more has come by reference, and awaits_answer is still what it was. Whether those before it came
    // without anything of ours between them.
    bool streams_to_us() {
        constexpr std::uint8_t kRow = 8;
        if (awaits_answer.load(std::memory_order_relaxed)) came_in_row = 0;
        came_in_row = came_in_row < kRow ? came_in_row + 1 : kRow;
        return came_in_row == kRow;
    }
    bool is_plain() const { return plain.load(std::memory_order_relaxed); }

    // After a store into its mailbox.
    void wake() {
        if (dozes) velo::platform::wake_if_asleep(segment.header().pointers.doze);
    }

    // Its credits and its queue alone decide how a message leaves for it, see Engine::try_send_fast.
    std::atomic<bool> plain{false};
    velo::engine::Domain& domain;  // that its packets arrive in, and ours there
    velo::engine::SendQueue queue;
    std::uint64_t polls_at_send = 0;         // of Pace, when something was sent to it last
    velo::flow::PeerIndex index;             // in this process's directory
    std::atomic<bool> awaits_answer{false};  // nothing has come from it since
    bool dozes = false;                      // it may sleep
    velo::engine::Incoming::State arriving = velo::engine::Incoming::State::kIdle;
    bool departed = false;  // what it held was taken back, what is sent to it is lost

    velo::engine::PeerLink link;  // closed until connected

    const bool stranger;            // on this node, of another job
    std::atomic<bool> died{false};  // departed, and has not closed before: it was killed
    std::atomic<bool> death_is_told{false};
    bool left = false;    // it has ended, and was never connected to
    bool ending = false;  // it has ended
    bool lost = false;    // on another node: without having taken leave
    // To another node: a message of each look at the network leaves at once, and so do some more; the others
    // of the burst wait in the queue for the next look. `collects`: nothing in the queue waits for credits.
    std::uint64_t burst_look = 0;
    std::uint32_t burst = 0;
    bool collects = false;
    velo::engine::SendQueue leaving;  // carried, and the network holds some of it
    bool stalled = false;             // listed in PendingSends: looked at at each poll
    std::uint64_t name = 0;           // of the process, once connected
    velo::engine::Incoming incoming;
    velo::engine::Stall stall;
    // How many processes have departed from this place; 2^32 would take weeks of nothing but starting them.
    std::atomic<std::uint32_t> generation{0};
    std::uint32_t copying = 0;    // copies to or from its memory that are under way
    std::uint32_t to_be_got = 0;  // of our data by it: begun and not ended, see begin_deposit
    velo::engine::BidirectionalTraffic traffic;
    bool staging_missed = false;   // its last deposit was not there in time
    std::uint8_t came_in_row = 0;  // by reference, up to kRow
    velo::engine::SentReferences sent_references;
    std::atomic<std::uint32_t> references_read{0};  // of its; by whoever is in the gate
    velo::engine::CacheProximity proximity;         // of its core
    std::uint32_t reference_from = ~0U;  // bytes of a message that goes by reference whatever the credits
    velo::platform::Copying copy_by = velo::platform::Copying::kVectors;  // into memory that it reads
    bool may_be_plain = false;                                            // when no batch for it is open
    velo::wire::BatchWriter batch_out;   // open: what is sent to it is appended there
    velo::wire::BatchReader batch_in;    // open: what comes next from it is read there
    bool maps_us = false;                // it can read there
    std::uint64_t last_packet = 0;       // position in the mailbox behind all of an ending one
    velo::fabric::shm::Segment segment;  // none on another node
};

namespace velo::engine {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(Peer, departed) < 64 && offsetof(Peer, link) == 64 && PeerLink::kHotBytes <= 64);
#pragma GCC diagnostic pop
}  // namespace velo::engine
