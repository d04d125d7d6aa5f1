// The engine of one process: its mailbox, its policy, its peers; sending, and the progress loop.
//
// Two locks. The gate: whoever is inside retrieves packets from the mailbox, alone. The mutex: policy, peers
// and RMA state. Callbacks of the upper layer run inside the gate but never under the mutex, so that they may
// send.
#pragma once

#include <atomic>
#include <forward_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/idle/idle.h"
#include "engine/large/large.h"
#include "engine/observe/observer.h"
#include "engine/peers/contact.h"
#include "engine/peers/departures.h"
#include "engine/peers/domain.h"
#include "engine/peers/pace.h"
#include "engine/peers/peers.h"
#include "engine/pending_sends.h"
#include "engine/remote.h"
#include "engine/retrieval.h"
#include "engine/routes/routes.h"
#include "engine/staging/batches.h"
#include "engine/staging/references.h"
#include "engine/staging/staging.h"
#include "fabric/interceptor.h"
#include "fabric/shm/segment.h"
#include "platform/gate.h"
#include "types/engine.h"
#include "types/log_line.h"

namespace velo::engine {

class Engine final : public DomainHost,
                     private PeersHost,
                     private IdleHost,
                     private PeerEvents,
                     private Work,
                     private rma::Poster,
                     private PendingSendsHost,
                     private RetrievalHost {
 public:
    // Of checked builds; false in tests of peers that break the rules.
    static inline bool violations_abort = true;
    // Throws Failure.
    explicit Engine(const velo_config& config);
    ~Engine() override;

    Peers& peers() noexcept { return peers_; }
    const Peers& peers() const noexcept { return peers_; }
    Remote& remote() noexcept { return remote_; }
    const Remote& remote() const noexcept { return remote_; }

    // Sends now or not at all. False, or no VELO_OK: no effect.
    // try_send_fast: one packet; try_append_fast: into an open batch; try_send_longer_fast: several packets,
    // or a reference; all three in send_now.h. send_now: any message.
    [[gnu::always_inline]] bool try_send_fast(Peer& peer, std::uint8_t tag,
                                              const fabric::MessageView& message) noexcept;
    [[gnu::always_inline]] bool try_append_fast(Peer& peer, std::uint8_t tag,
                                                const fabric::MessageView& message) noexcept;
    [[gnu::always_inline]] bool try_send_longer_fast(Peer& peer, std::uint8_t tag,
                                                     const fabric::MessageView& message) noexcept;
    velo_status send_now(Peer& peer, std::uint8_t tag, const fabric::MessageView& message);
    velo_status send_start(Peer& peer, velo_send* send);
    Large& large() noexcept { return large_; }
    Retrieval& retrieval() noexcept { return retrieval_; }
    const Retrieval& retrieval() const noexcept { return retrieval_; }
    int progress();
    // Within a callback: this progress polls so many more times while something waits for room.
    void extend_progress(std::uint32_t polls) noexcept {
        if (polls > polls_left_) polls_left_ = polls;
    }
    Idle& idle() noexcept { return idle_; }
    // What queued sends point to, for as long as the engine lives.
    void keep(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }
    Departures& departures() noexcept { return departures_; }
    // Nothing moves any more; the upper layer has been told.
    bool failed() const { return retrieval_.is_stopped(); }
    // Tells the upper layer, which may exit: not under the mutex.
    void fail(velo_status status, const char* text);

    // This process exits and does not close.
    void abandon();

    // For the report: the final counters are in the segments, see Statistics.
    void publish_statistics();
    const velo_config& config() const { return config_; }
    std::uint32_t slots_per_peer() const noexcept { return slots_per_peer_; }
    // Neither slots nor chunks for long messages.
    bool is_short() const noexcept {
        return mailbox_.outbox_plan().bytes() == 0 && slots_per_peer_ < kSlotsForLong;
    }
    // What can be watched from outside, by any thread: values of a moment ago.
    Observer& observer() noexcept { return observer_; }
    const Observer& observer() const noexcept { return observer_; }
    const flow::Policy& policy() const { return *velo_.policy; }  // of the VELO packets
    std::uint32_t limic_peers() const { return limic_ ? config_.limic_peer_count : 0; }
    const routes::Table& routes() const { return routes_.table(); }

    // Where messages of 8 KiB are worth their credits.
    static constexpr std::uint32_t kSlotsForLong = 512;

 private:
    Engine(const velo_config& config, std::unique_ptr<flow::Policy> policy);

    // Of DomainHost and rma::Poster, called under the mutex.
    void carry_control(Peer& peer, wire::PacketKind kind, std::uint32_t value) override;
    void control_entered(const Peer& from, wire::PacketKind kind, std::uint32_t value) override;
    bool send_queued(Peer& peer) override { return pending_.send(peer); }
    void post(flow::PeerIndex to, velo_send* message) override;

    // Of DomainHost and PeersHost.
    Peer& peer_at(flow::PeerIndex index) override { return peers_.at(index); }
    Domain& domain_of(flow::PeerIndex index) override;
    void attach_remote(Peer& peer) override { remote_.attach(peer); }
    void look_for_departed() override;

    // Of PendingSendsHost.
    bool push(Peer& peer, velo_send& send, wire::PacketKind kind) override;

    [[gnu::always_inline]] void sent(Peer& peer, std::uint32_t packets);
    [[gnu::always_inline]] velo_status count_sent();
    [[gnu::noinline]] void follow_sent(Peer& peer, std::uint32_t packets);
    [[gnu::always_inline]] void sent_fast(Peer& peer, std::uint32_t packets);
    velo_status send_run_now(Peer& peer, std::uint8_t tag, const fabric::MessageView& message);
    [[gnu::noinline]] bool try_send_reference_fast(Peer& peer, std::uint8_t tag,
                                                   fabric::MessageView message) noexcept;
    [[gnu::noinline]] bool try_send_outgrown_fast(Peer& peer, std::uint8_t tag,
                                                  fabric::MessageView message) noexcept;
    [[gnu::always_inline]] bool try_send_run_fast(Peer& peer, std::uint8_t tag,
                                                  const fabric::MessageView& message) noexcept;
    bool send_in_batch(Peer& peer, std::uint8_t tag, std::uint8_t flags, const fabric::MessageView& message,
                       wire::PacketKind kind);
    [[gnu::always_inline]] void append(Peer& peer, std::uint8_t tag, std::uint8_t flags,
                                       const fabric::MessageView& message);
    // Packets that may leave for the peer at once.
    std::uint32_t packets_allowed(const Peer& peer) const {
        return std::min(peer.ledger().credits(peer), peer.domain.most_packets);
    }
    // Of Work: of what has not left.
    bool any() const override { return pending_.any(); }
    int run(bool busy) override;
    int poll_on();

    // Of IdleHost, under the gate only.
    bool is_quiet() const override;
    void look_around() override;

    // Of PeerEvents.
    void attached(Peer& peer) override;
    void departed(Peer& peer) override;
    void gone(Peer& peer) override;

    int poll();
    void abort_on_violation();
    // Checked builds: aborts with the first violated invariant.
    void assert_invariants() override {
#ifdef VELO_CHECKED
        if (violations_abort) abort_on_violation();
#endif
    }

    velo_config config_;
    std::forward_list<std::string> texts_;  // of config_
    std::vector<std::shared_ptr<void>> kept_;
    Pace pace_;
    std::uint32_t slots_per_peer_ = 0;
    platform::OptionalMutex mutex_;
    platform::Gate gate_;
    // The value that a peer reads to find out whether it may read this process's memory; see Address::probe.
    std::unique_ptr<std::uint64_t> probe_;
    singlecopy::Mechanisms mechanisms_;
    fabric::shm::Segment mailbox_;
    Idle idle_;
    EachUnit units_;
    Retrieval retrieval_;
    Remote remote_;
    Peers peers_;
    Observer observer_{{config_, mutex_, velo_, remote_.domain(), peers_.table()}};
    Domain velo_;
    Routes routes_;
    Staging staging_{mailbox_, config_, observer_.counts};
    References references_{staging_, observer_.counts};
    std::optional<Domain> limic_;
    bool sends_are_followed_ = false;  // there are several domains, or a trace
    Departures departures_{peers_, mutex_, units_};
    Large large_;
    Batches batches_{retrieval_, mutex_, idle_, pace_};
    PendingSends pending_{*this, mutex_, idle_, remote_, observer_};
    std::uint32_t polls_left_ = 0;     // of this progress
    std::optional<Contact> contact_;   // of a policy on demand
    fabric::Interceptor interceptor_;  // ends before the peers
};

// Whose peer it is.
inline Engine& engine_of(const Peer& peer) noexcept {
    return static_cast<Engine&>(peer.domain.host);
}

}  // namespace velo::engine
