// The peers of a process: expected, met, connected to when something has to be sent, and found to be gone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "engine/idle/idle.h"
#include "engine/peers/departures.h"
#include "engine/peers/peer_events.h"
#include "engine/peers/peer_table.h"
#include "fabric/shm/segment.h"
#include "platform/gate.h"
#include "types/engine.h"

namespace velo::engine {

// What Peers asks of the engine.
class PeersHost {
 public:
    // That the peer of this index is of.
    virtual Domain& domain_of(flow::PeerIndex index) = 0;
    // Connects to a peer on another node. Under the mutex. Throws Failure.
    virtual void attach_remote(Peer& peer) = 0;
    // Clears up after those who have ended, if nobody else is in the gate. Without the mutex.
    virtual void look_for_departed() = 0;

 protected:
    ~PeersHost() = default;
};

class Peers final : public Work, public PeerEvents, public DeparturesHost {
 public:
    // Where the place of a process that has ended is needed, for that to be noticed.
    static constexpr std::chrono::milliseconds kPatience{5000};

    // All of what it is given outlives it. `units` hear what becomes of peers, and Peers is one of them.
    // `forced`: a peer whose memory is out of reach must not be connected to late.
    Peers(PeersHost& host, platform::OptionalMutex& mutex, Idle& idle, PeerEvents& units,
          const velo_config& config, fabric::shm::Segment& mailbox, bool forced);

    // For peers: a fabric::shm::Address, and the network's part if there is one.
    const std::vector<std::byte>& address() const noexcept { return address_; }
    void add_to_address(std::span<const std::byte> part) {
        address_.insert(address_.end(), part.begin(), part.end());
    }
    // Room for peers on other nodes. Before the first peer.
    void grow(std::size_t entries) { table_.resize(entries); }
    const PeerTable& table() const { return table_; }
    Peer* find(flow::PeerIndex index) const { return table_.find(index); }
    // Of whom that place is, or Directory::kFree.
    std::uint64_t name_at(flow::PeerIndex index) const { return mailbox_.senders().name(index); }
    // It is the first process of the node that this job knows of.
    bool is_first_on_node() const { return config_.process_name <= first_node_peer_; }
    // The counters of the node's processes, for the report.
    std::vector<const fabric::shm::SegmentHeader*> segments() const;

    // Without the mutex.

    // Connects, or notes the address for the first message where the policy lets that wait. Throws Failure.
    flow::PeerIndex expect(const fabric::shm::Address& address);
    // Of a peer that was expected: the same object each time, there from now on.
    Peer* get(flow::PeerIndex index);
    // Of whom something has come.
    Peer& sender(flow::PeerIndex index) {
        Peer* peer = find(index);
        if (peer == nullptr) [[unlikely]]
            peer = get(index);
        return *peer;
    }
    // Connects to a peer that has sent something and was never connected to, unless it has ended.
    void reach(Peer& peer);

    // Under the mutex.

    Peer& at(flow::PeerIndex index) {
        if (Peer* peer = find(index)) return *peer;
        return add(index);
    }
    // The peer, connected: a sender that this process never connected to has left its address in the
    // directory. Throws Failure.
    Peer& reachable(flow::PeerIndex index);
    // False: it has ended, and nobody waits for an answer. Otherwise it is connected. Throws Failure.
    bool may_be_answered(Peer& peer);

    // Of DeparturesHost.
    const std::vector<Peer*>& met() const override { return met_; }
    bool has_closed(const Peer& peer) override;
    bool has_vanished(Peer& peer) override;
    bool release_slot(Peer& peer) override;
    // Of PeerEvents. A network that still reads what is sent needs the link, unless it has lost the peer.
    bool may_depart(const Peer& peer) override { return peer.lost || !peer.link.holds_some(); }
    void ended(Peer& peer) override;
    void departed(Peer& peer) override;
    void vacated(Peer& peer) override;
    // Of Work: the mailbox has a name until all have attached that cannot look into this process.
    bool any() const override { return !awaited_.empty(); }
    int run(bool busy) override;

 private:
    Peer& add(flow::PeerIndex index);
    flow::PeerIndex place_for(std::uint64_t name, std::unique_lock<platform::OptionalMutex>& lock);
    bool may_wait(flow::PeerIndex index, const fabric::shm::Address& address);
    static bool is_same_departed(const Peer& peer, const fabric::shm::Address& address);
    void attach_expected(Peer& peer, const fabric::shm::Address& address);
    void attach(Peer& peer, const fabric::shm::Address& address);
    void open_link(Peer& peer, flow::PeerIndex here);
    fabric::shm::Segment open_segment(const Peer& peer, const fabric::shm::Address& address);
    void withdraw_name();
    bool has_left(Peer& peer);
    bool reports() const { return config_.report != std::string_view("none") && is_first_on_node(); }
    void log_missing_outbox(const fabric::shm::Segment& segment) const;
    void log_connection(const Peer& peer) const;

    PeersHost& host_;
    platform::OptionalMutex& mutex_;
    Idle& idle_;
    PeerEvents& units_;
    const velo_config& config_;
    fabric::shm::Segment& mailbox_;
    bool forced_;
    std::uint64_t first_node_peer_;
    std::vector<std::byte> address_;
    PeerTable table_;
    std::vector<Peer*> met_;                // those of this node, whose end is looked for
    std::vector<flow::PeerIndex> awaited_;  // who cannot look into this process and have yet to attach
    // None after a wait in vain, until a place is free again.
    std::chrono::milliseconds patience_{kPatience};
    std::vector<fabric::shm::Segment> segments_of_departed_;  // for the report
    bool outboxes_are_missing_ = false;  // one could not be mapped, and that has been logged
};

}  // namespace velo::engine
