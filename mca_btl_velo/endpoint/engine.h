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

#include "endpoint/batches.h"
#include "endpoint/contact.h"
#include "endpoint/departures.h"
#include "endpoint/domain.h"
#include "endpoint/gate.h"
#include "endpoint/idle.h"
#include "endpoint/incoming.h"
#include "endpoint/large.h"
#include "endpoint/observer.h"
#include "endpoint/peers.h"
#include "endpoint/pending_sends.h"
#include "endpoint/reference_reader.h"
#include "endpoint/references.h"
#include "endpoint/remote.h"
#include "endpoint/routes.h"
#include "endpoint/staging.h"
#include "endpoint/telling.h"
#include "fabric/interceptor.h"
#include "fabric/shm/segment.h"
#include "flow/policies.h"
#include "types/engine.h"

namespace velo::endpoint {

// Hears the messages of one tag together with their sender. Called as velo_config.message is; may throw
// Failure.
class Listener {
 public:
    virtual void arrived(Peer& from, std::byte* data, std::size_t bytes) = 0;
    // It has ended, and all that it has sent has arrived. Another process may take its place.
    virtual void departed(Peer& peer) = 0;

 protected:
    ~Listener() = default;
};

// The tag of a listener's messages. Open MPI's BTL tags begin at 16.
inline constexpr std::uint8_t kListenerTag = 0;

class Engine final : public DomainHost,
                     private PeersHost,
                     private IdleHost,
                     private PeerEvents,
                     private Work,
                     private rma::Poster,
                     private BatchesHost,
                     private PendingSendsHost,
                     private RemoteHost {
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

    // At once or not at all: nearly all messages of one packet; most of a few packets, or by reference; both
    // in send_now.h; any.
    // False: nothing has been done.
    [[gnu::always_inline]] bool send_if_plain(Peer& peer, std::uint8_t tag,
                                              const fabric::MessageView& message) noexcept;
    [[gnu::always_inline]] bool append_if_plain(Peer& peer, std::uint8_t tag,
                                                const fabric::MessageView& message) noexcept;
    [[gnu::always_inline]] bool send_longer_if_plain(Peer& peer, std::uint8_t tag,
                                                     const fabric::MessageView& message) noexcept;
    velo_status send_now(Peer& peer, std::uint8_t tag, const fabric::MessageView& message);
    velo_status send_start(Peer& peer, velo_send* send);
    Large& large() noexcept { return large_; }
    int progress();
    // Of the progress that calls back.
    void linger(std::uint32_t looks) noexcept {
        if (looks > looks_left_) looks_left_ = looks;
    }
    Idle& idle() noexcept { return idle_; }
    // Within the message callback: what lies behind in the mailbox is left to the next call of progress.
    void end_batch() noexcept { batch_ = 0; }
    // Within the message callback: the sender.
    flow::PeerIndex arriving() const noexcept { return arriving_; }

    // What queued sends point to, for as long as the engine lives.
    void keep(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }
    // Before the first message of kListenerTag is sent to this process; nullptr: not any more.
    void listen(Listener* listener) { listener_ = listener; }
    // The other messages; likewise.
    void hand_messages_to(velo_message_fn message) noexcept { config_.message = message; }
    Departures& departures() noexcept { return departures_; }
    // Nothing moves any more; the upper layer has been told.
    bool failed() const { return failed_; }
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

    static constexpr std::uint64_t kRestPolls = 3;
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

    // Of RemoteHost.
    int drain_remote(Domain& domain) override { return drain_other(domain); }
    bool arrived(Peer& from, const fabric::Delivery& delivery) override;

    // Of BatchesHost.
    bool is_rested(const Peer& peer) const override { return rested(peer); }
    bool take_enclosed(Peer& from, const wire::Enclosed& message, std::byte* data) override;
    void give_back(Peer& peer, const wire::Reference& chunk) override {
        ReferenceReader::release(peer, chunk);
    }
    int left_of_poll() const override { return failed_ ? 0 : batch_; }

    // Nothing was sent to the peer for a few polls of the mailbox: the next message is waited for, not one of
    // many.
    bool rested(const Peer& peer) const {
        return empty_polls_.load(std::memory_order_relaxed) - peer.polls_at_send >= kRestPolls;
    }
    struct Manner;
    Manner manner_of(const Peer& peer, std::size_t bytes) const;
    [[gnu::always_inline]] void sent(Peer& peer, std::uint32_t packets);
    [[gnu::always_inline]] velo_status count_sent();
    [[gnu::noinline]] void follow_sent(Peer& peer, std::uint32_t packets);
    [[gnu::always_inline]] void note_sent(Peer& peer);
    [[gnu::always_inline]] void left_plainly(Peer& peer, std::uint32_t packets);
    // Before a further packet is retrieved, and at each look at the mailbox.
    [[gnu::always_inline]] void release_delayed_credit(Domain& domain) {
        if (domain.ledger.owes()) [[unlikely]]
            look_at_delayed_credit(domain);
    }
    [[gnu::noinline]] void look_at_delayed_credit(Domain& domain);
    velo_status send_run_now(Peer& peer, std::uint8_t tag, const fabric::MessageView& message);
    [[gnu::noinline]] bool send_referred_if_plain(Peer& peer, std::uint8_t tag,
                                                  fabric::MessageView message) noexcept;
    [[gnu::always_inline]] bool send_run_if_plain(Peer& peer, std::uint8_t tag,
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
    int look_on();

    // Of IdleHost, under the gate only.
    bool is_quiet() const override;
    void look_around() override;
    std::uint64_t count_empty_poll();

    // Of PeerEvents.
    void attached(Peer& peer) override;
    void departed(Peer& peer) override;
    void gone(Peer& peer) override;

    // These return the number of packets handled.
    int look();
    [[gnu::always_inline]] int drain(Domain& domain);
    [[gnu::noinline]] int drain_other(Domain& domain);
    [[gnu::always_inline]] Peer* plain_sender(const Domain& domain, const wire::Header& header);
    [[gnu::always_inline]] int retrieve_if_plain(Domain& domain, std::uint64_t word);
    [[gnu::always_inline]] int retrieve_plain(Domain& domain, Peer& peer, const wire::Header& header,
                                              std::uint32_t packets);
    [[gnu::noinline]] int retrieve_reference_if_plain(Domain& domain, std::uint64_t word);
    [[gnu::noinline]] int retrieve_other(Domain& domain, std::uint64_t word);
    [[gnu::always_inline]] void await_retrieval(Peer& peer, std::uint32_t packets);
    int handle(Domain& domain, std::uint64_t word);
    [[gnu::noinline]] int handle_rarity(Peer& peer, const wire::Header& header);
    void retrieve_control(Peer& peer, const wire::Header& header);
    void take_credits();
    template <wire::PacketKind kKind>
    [[gnu::always_inline]] int retrieve_data(Peer& peer, const wire::Header& header);
    // DATA has been delivered: its slots, and the credits that came with it.
    [[gnu::always_inline]] void account(Peer& peer, std::uint32_t packets, bool waited,
                                        std::uint32_t credits);
    void count_retrieved(Peer& peer, std::uint32_t packets);
    [[gnu::always_inline]] bool deliver(Peer& peer, const wire::Header& header, const Payload& payload);
    bool deliver_part(Peer& peer, const wire::Header& header, const Payload& payload);
    [[gnu::always_inline]] void hand_up(Peer& peer, std::uint8_t tag, std::byte* data, std::size_t bytes);
    std::uint32_t gather(Peer& peer);
    bool begin_message(Peer& peer, const wire::Header& header, Payload payload);
    // Takes the mailbox's occupancy.
    void sample(Domain& domain);
    // A peer has sent this.
    [[noreturn, gnu::cold, gnu::noinline]] static void refuse(const char* what, const wire::Header& header);
    void abort_on_violation();
    // Checked builds: aborts with the first violated invariant.
    void assert_invariants() {
#ifdef VELO_CHECKED
        if (violations_abort) abort_on_violation();
#endif
    }

    velo_config config_;
    std::forward_list<std::string> texts_;  // of config_
    Listener* listener_ = nullptr;
    std::vector<std::shared_ptr<void>> kept_;
    flow::PeerIndex arriving_ = 0;               // whose message the callback is given
    std::atomic<std::uint64_t> empty_polls_{0};  // written under the gate
    std::uint32_t slots_per_peer_ = 0;
    OptionalMutex mutex_;
    Gate gate_;
    // The value that a peer reads to find out whether it may read this process's memory; see Address::probe.
    std::unique_ptr<std::uint64_t> probe_;
    singlecopy::Mechanisms mechanisms_;
    fabric::shm::Segment mailbox_;
    Idle idle_;
    ReferenceReader reference_reader_{mailbox_, config_.threads};
    EachUnit units_;
    Remote remote_;
    Peers peers_;
    Observer observer_{{config_, mutex_, velo_, remote_.domain(), peers_.table()}};
    Domain velo_;
    Routes routes_;
    Staging staging_{mailbox_, config_, observer_.counts};
    References references_{staging_, observer_.counts};
    std::optional<Domain> limic_;
    bool sends_are_followed_ = false;  // there are several domains, or a trace
    int batch_ = 0;                    // packets and enclosed messages that this progress may handle
    Departures departures_{peers_, mutex_, units_};
    Large large_;
    Batches batches_{*this, mutex_, idle_};
    BufferPool buffers_;
    PendingSends pending_{*this, mutex_, idle_, remote_, observer_};
    std::uint32_t looks_left_ = 0;    // of this progress
    std::optional<Contact> contact_;  // of a policy on demand
    std::atomic<bool> failed_{false};
    fabric::Interceptor interceptor_;  // ends before the peers
};

// Whose peer it is.
inline Engine& engine_of(const Peer& peer) noexcept {
    return static_cast<Engine&>(peer.domain.host);
}

}  // namespace velo::endpoint
