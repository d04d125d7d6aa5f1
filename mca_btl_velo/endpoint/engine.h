// The engine of one process: its mailbox, its policy, its peers; sending, and the progress loop.
//
// Two locks. The gate: whoever is inside retrieves packets from the mailbox, alone. The mutex: policy, peers
// and RMA state. Callbacks of the upper layer run inside the gate but never under the mutex, so that they may
// send.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <forward_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "endpoint/deposits.h"
#include "endpoint/domain.h"
#include "endpoint/gate.h"
#include "endpoint/incoming.h"
#include "endpoint/peer_table.h"
#include "endpoint/routes.h"
#include "endpoint/stalls.h"
#include "endpoint/telling.h"
#include "endpoint/tracing.h"
#include "fabric/interceptor.h"
#include "fabric/network.h"
#include "fabric/shm/segment.h"
#include "flow/outbox.h"
#include "flow/policies.h"
#include "platform/doze.h"
#include "platform/ticks.h"
#include "rma/dual_copy.h"
#include "rma/rma.h"
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

class Engine final : private rma::Poster, private fabric::Receiver {
 public:
    // Of checked builds; false in tests of peers that break the rules.
    static inline bool violations_abort = true;
    // Tests say themselves whether somebody waits for the processor.
    static inline bool (*processor_is_wanted)() = platform::processor_is_wanted;
    // Throws Failure.
    explicit Engine(const velo_config& config);
    ~Engine() override;

    // For peers: a fabric::shm::Address, and the network's part if there is one.
    const std::vector<std::byte>& address() const noexcept { return address_; }
    std::uint64_t name() const { return config_.process_name; }
    const std::string& description() const noexcept { return description_; }

    // Connects, or notes the address for the first message where the policy lets that wait. Throws Failure.
    flow::PeerIndex expect(const fabric::shm::Address& address);
    // Of a peer that was expected: the same object each time, there from now on.
    Peer* peer(flow::PeerIndex index);
    // To a process on another node: the network's part of its address.
    flow::PeerIndex expect_remote(std::span<const std::byte> address);

    // At once or not at all: nearly all messages of one packet; most of a few packets, or by reference; both
    // in send_now.h; any.
    // False: nothing has been done.
    [[gnu::always_inline]] bool send_if_plain(Peer& peer, std::uint8_t tag,
                                              const fabric::MessageView& message) noexcept;
    [[gnu::always_inline]] bool send_longer_if_plain(Peer& peer, std::uint8_t tag,
                                                     const fabric::MessageView& message) noexcept;
    velo_status send_now(Peer& peer, std::uint8_t tag, const fabric::MessageView& message);
    velo_status send_start(Peer& peer, velo_send* send);
    // `local` is only read by a put. Who copies: whoever makes it fastest, or this process alone if there is
    // single copy, because its peer has as much to copy of its own.
    enum class By : std::uint8_t { kFastest, kOneself };
    velo_status transfer(Peer& peer, rma::Direction direction, void* local, std::uint64_t remote,
                         std::size_t bytes, rma::Completion completion, By by = By::kFastest);
    velo_status atomic(Peer& peer, velo_atomic operation, unsigned width, std::uint64_t remote,
                       std::uint64_t operand, std::uint64_t compare, const rma::Completion& completion);
    // A get whose data are not there yet: the peer may copy them as soon as they are, whatever this process
    // does then. Returns a ticket for the peer; nullopt: there is no such way. It has to end in one of two:
    std::optional<std::uint32_t> announce(Peer& peer, std::size_t bytes);
    // ... the data are there, in a deposit, too, if it is not 0: as `transfer_deposited`.
    velo_status transfer_announced(Peer& peer, std::uint32_t ticket, std::uint32_t deposit, void* local,
                                   std::uint64_t remote, std::size_t bytes, const rma::Completion& completion,
                                   By by);
    // ... or they will not be: nothing is written any more, or (false) nothing will be when `completion` is
    // told of an error.
    bool withdraw(Peer& peer, std::uint32_t ticket, std::size_t bytes, const rma::Completion& completion);
    // The peer's side, with a ticket whose cell there is. nullopt: this process cannot help.
    std::optional<rma::Help> helping(Peer& peer, std::uint32_t ticket, const std::byte* data,
                                     std::uint64_t remote, std::size_t bytes);
    // From `first` on, which has been claimed.
    void help_now(Peer& peer, rma::Help& help, const rma::Share::Range& first);
    // As long as nothing waits in the mailbox; the completion is told at the end.
    void help_when_idle(const rma::Help& help);
    // Whoever would be told of such help is gone: none of it is given, and nobody is told.
    void give_no_help();
    // Data of a get that the peer may find in the outbox (rma/deposit.h): the number that it is to be told,
    // 0 for none; after it has been told, the data; when its get is over, the end.
    std::uint64_t begin_deposit(Peer& peer, const void* data, std::size_t bytes) noexcept;
    void store_deposit(std::uint64_t deposit) noexcept;
    void end_deposit(Peer& peer, std::uint64_t deposit) noexcept;
    // A get with such a number of the peer's, or 0.
    velo_status transfer_deposited(Peer& peer, std::uint32_t deposit, void* local, std::uint64_t remote,
                                   std::size_t bytes, const rma::Completion& completion,
                                   By by = By::kFastest);
    int progress();
    // Of the progress that calls back.
    void linger(std::uint32_t looks) noexcept {
        if (looks > looks_left_) looks_left_ = looks;
    }
    // Another engine of this process, which is driven as well: this one sleeps as that one does, and each
    // only when neither has anything to do, until something comes for either. Before the first peer connects.
    void sleep_with(Engine& other);
    // Whoever uses the engine has something to do, or waits for what would not wake it.
    void stay_awake() noexcept {
        if (sleep_us_ > 0) idle_polls_ = 0;
    }
    // Within the message callback: what lies behind in the mailbox is left to the next call of progress.
    void end_batch() noexcept { batch_ = 0; }
    // Within the message callback: the sender.
    flow::PeerIndex arriving() const noexcept { return arriving_; }
    bool is_remote(flow::PeerIndex index) const noexcept { return index >= remote_first_; }
    void dump(const Peer* peer, int level);

    // What queued sends point to, for as long as the engine lives.
    void keep(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }
    // Before the first message of kListenerTag is sent to this process; nullptr: not any more.
    void listen(Listener* listener) { listener_ = listener; }
    // The other messages; likewise.
    void hand_messages_to(velo_message_fn message) noexcept { config_.message = message; }
    // Connects to a peer that has sent something and was never connected to, unless it has ended.
    void reach(Peer& peer);
    // Stands for processes that have departed: what is sent to it is lost, and nothing comes of it.
    Peer& nobody() noexcept { return *nobody_; }
    // Something with that peer has failed, by that errno or, 0, because it has ended.
    void tell_failed(Peer& peer, int error) noexcept;
    bool threads() const { return config_.threads; }
    // Nothing moves any more; the upper layer has been told.
    bool failed() const { return failed_; }
    // Tells the upper layer, which may exit: not under the mutex.
    void fail(velo_status status, const char* text);
    std::size_t max_message_bytes() const { return config_.max_message_bytes; }

    // This process exits and does not close.
    void abandon();
    void trace_board(const velo_board_event& event);

    // For the report: the final counters are in the segments, see Statistics.
    void publish_statistics();
    std::vector<const fabric::shm::SegmentHeader*> node_segments() const;
    const velo_config& config() const { return config_; }
    // Whether the first process of the node is to print one.
    bool asked_for_report() const { return std::string_view(config_.report) != "none"; }
    // What a peer costs that this process has never met; it has met all but under a policy on demand.
    std::size_t unmet_peer_bytes() const;
    std::uint32_t slots_per_peer() const noexcept { return slots_per_peer_; }
    // Neither slots nor chunks for long messages.
    bool is_short() const noexcept {
        return mailbox_.outbox_plan().bytes() == 0 && slots_per_peer_ < kSlotsForLong;
    }
    // Bytes that travel to another node at once: what half of a peer's slots hold. 0 without a network.
    std::size_t network_eager_limit() const noexcept {
        return std::min({config_.max_message_bytes, VELO_MOST_NETWORK_EAGER_BYTES,
                         std::size_t{remote_slots_per_peer_} / 2 * wire::kPacketBytes});
    }

    // What can be watched from outside, by any thread: values of a moment ago.
    const fabric::shm::Statistics& statistics() const { return statistics_; }
    const flow::Policy& policy() const { return *velo_.policy; }  // of the VELO packets
    const flow::Policy* remote_policy() const { return remote_ ? remote_->policy.get() : nullptr; }
    std::uint32_t limic_peers() const { return limic_ ? config_.limic_peer_count : 0; }
    const Stalls<Peer>& stalls() const { return stalls_; }
    const Peer* known_peer(flow::PeerIndex index) const { return peers_.find(index); }
    const routes::Table& routes() const { return routes_.table(); }
    std::uint64_t peer_name(flow::PeerIndex index) const { return mailbox_.sender_name(index); }

    static constexpr std::uint64_t kRestPolls = 3;
    // Where messages of 8 KiB are worth their credits.
    static constexpr std::uint32_t kSlotsForLong = 512;
    // Where the place of a process that has ended is needed, for that to be noticed.
    static constexpr std::chrono::milliseconds kPlacePatience{5000};
    static constexpr std::size_t kExpectedPeerBytes = sizeof(Peer*) + rma::Rma::kBytesPerExpectedPeer;

 private:
    Engine(const velo_config& config, std::unique_ptr<flow::Policy> policy);

    friend Domain;
    // Of Domain and rma::Poster, called under the mutex.
    void carry_control(Peer& peer, wire::PacketKind kind, std::uint32_t value);
    bool send_queued(Peer& peer);
    void post(flow::PeerIndex to, velo_send* message) override;
    void help(flow::PeerIndex peer, const rma::MessageHeader& request) override;

    // Under the mutex.
    Peer& peer_at(flow::PeerIndex index) {
        if (Peer* peer = peers_.find(index)) return *peer;
        return add_peer(index);
    }
    // Without it: of whom something has come.
    Peer& sender_at(flow::PeerIndex index) {
        Peer* peer = peers_.find(index);
        if (peer == nullptr) [[unlikely]]
            peer = this->peer(index);
        return *peer;
    }
    Peer& add_peer(flow::PeerIndex index);
    // Needs the counters of all.
    bool reports() const { return asked_for_report() && config_.process_name <= first_node_peer_; }
    bool may_wait(flow::PeerIndex index, const fabric::shm::Address& address) const;
    // It has ended, and is as it was when it was met: nothing can be sent to it.
    static bool is_same_departed(const Peer& peer, const fabric::shm::Address& address);
    void introduce_to_rma(const Peer& peer, const fabric::shm::Address& address);

    void open_remote(const flow::PolicyConfig& flow);
    void log_routes() const;
    void open_nowhere();
    void attach_remote(Peer& peer);
    // Returns the number of packets handled. `busy`: there was something to do inside the node.
    int progress_remote(bool busy);
    int finish_bulk();
    std::byte* place(flow::PeerIndex from, std::span<const std::byte> header, std::uint64_t bytes) override;
    const char* take(const fabric::Delivery& delivery) override;
    bool goes_past_mailbox(const Peer& peer, const velo_send& message) const;
    void attach(Peer& peer, const fabric::shm::Address& address);
    void attach_expected(Peer& peer, const fabric::shm::Address& address);
    fabric::shm::Segment open_segment(const Peer& peer, const fabric::shm::Address& address);
    void log_missing_outbox(const fabric::shm::Segment& segment) const;
    void log_connection(const Peer& peer, const fabric::shm::Address& address) const;
    Peer& reachable_peer(flow::PeerIndex index);
    bool has_left(Peer& peer);
    bool may_be_answered(Peer& peer);

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
    [[gnu::always_inline]] void left_plainly(Peer& peer, std::uint32_t packets);
    // Before a further packet is retrieved, and at each look at the mailbox.
    [[gnu::always_inline]] void release_delayed_credit(Domain& domain) {
        if (domain.ledger.owes()) [[unlikely]]
            look_at_delayed_credit(domain);
    }
    [[gnu::noinline]] void look_at_delayed_credit(Domain& domain);
    velo_status send_run_now(Peer& peer, std::uint8_t tag, const fabric::MessageView& message);
    bool push(Peer& peer, velo_send& send, wire::PacketKind kind);
    // What is to leave by reference.
    struct Outgoing {
        const fabric::MessageView& message;
        std::size_t offset;
        wire::PacketKind kind;
        std::uint8_t tag;
        std::uint8_t flags;  // wire::kInternal or 0
        bool whole;          // all of it or nothing
    };
    bool may_refer(Peer& peer);
    flow::Outbox::Chunk lend(Peer& peer, std::size_t bytes, bool whole);
    flow::Outbox::Chunk take_in_turn(Peer& peer, std::size_t bytes);
    void look_at_distance(Peer& peer) noexcept;
    void send_reference(Peer& peer, const flow::Outbox::Chunk& chunk, std::size_t bytes,
                        wire::PacketKind kind, std::uint8_t tag, std::uint8_t flags);
    std::optional<std::size_t> refer(Peer& peer, const Outgoing& what);
    bool refer_if_plain(Peer& peer, std::uint8_t tag, const fabric::MessageView& message) noexcept;
    [[gnu::noinline]] bool send_referred_if_plain(Peer& peer, std::uint8_t tag,
                                                  fabric::MessageView message) noexcept;
    [[gnu::always_inline]] bool send_run_if_plain(Peer& peer, std::uint8_t tag,
                                                  const fabric::MessageView& message) noexcept;
    bool refer_several(Peer& peer, wire::PacketKind kind);
    bool deliver_several(Peer& peer, std::byte* data, std::size_t bytes);
    // Packets that may leave for the peer at once.
    std::uint32_t packets_allowed(const Peer& peer) const {
        return std::min(peer.ledger().credits(peer), peer.domain.most_packets);
    }
    void enqueue(Peer& peer, velo_send* send);
    bool is_one_of_many(Peer& peer, std::size_t bytes) const;
    bool needs_looks(Peer& peer, std::size_t bytes) const;
    bool push_queued(Peer& peer);
    void look_again(Peer& peer);
    void report_left(Peer& peer);
    void collect(Peer& peer, velo_send* send);
    void emptied(Peer& peer);
    int housekeep(int handled);
    void want_housekeeping() { housekeeping_.store(Housekeeping::kWork, std::memory_order_relaxed); }
    void flush_stalled();
    bool flush(Peer& peer);
    void report_sent(velo_send* send);
    void run_completions();
    int look_on();
    void withdraw_name();

    // observing.cc
    void open_trace();
    void begin_stall(Peer& peer);
    void end_stall(Peer& peer);
    void count_stalls();
    void look_around();
    std::uint64_t count_empty_poll();
    void warn_of_stall(Peer& peer, std::uint64_t quiet_ns);
    // For a policy on demand.
    void want_credit(Peer& peer);
    int answer_doorbell();
    void hurry_contact();
    bool contact_pending() const;

    // departing.cc
    // On this node, of another job.
    bool is_stranger(const Peer& peer) const {
        return peer.index >= velo_.policy->config().peers && peer.index < remote_first_;
    }
    bool has_vanished(Peer& peer);
    void look_for_departed();
    void notice_ended(std::size_t closed, std::size_t vanished);
    void note_end(Peer& peer);
    void clear_up();
    bool bury(Peer& peer);
    bool take_back(Peer& peer);
    void drop_queue(Peer& peer);
    std::vector<rma::Completion> give_up_transfers(Peer& peer);
    bool vacate(Peer& peer);
    flow::PeerIndex place_for(std::uint64_t name, std::unique_lock<OptionalMutex>& lock);

    void doze();
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
    template <wire::PacketKind kKind>
    [[gnu::always_inline]] int retrieve_data(Peer& peer, const wire::Header& header);
    // DATA has been delivered: its slots, and the credits that came with it.
    [[gnu::always_inline]] void account(Peer& peer, std::uint32_t packets, bool waited,
                                        std::uint32_t credits);
    void count_retrieved(Peer& peer, std::uint32_t packets);
    [[gnu::always_inline]] bool deliver(Peer& peer, const wire::Header& header, const Payload& payload);
    bool deliver_part(Peer& peer, const wire::Header& header, const Payload& payload);
    static bool is_lent(const fabric::shm::Segment& segment, const wire::Reference& reference);
    std::byte* referenced(const Peer& peer, const wire::Reference& reference);
    void fetch_lines(Peer& peer, const std::byte* data, const wire::Reference& reference) const;
    bool counts_as_streamed(Peer& peer, std::uint8_t tag, std::size_t bytes) const;
    std::byte* copy_of(const std::byte* data, std::size_t bytes);
    void release(Peer& peer, const wire::Reference& reference);
    [[gnu::always_inline]] void hand_up(Peer& peer, std::uint8_t tag, std::byte* data, std::size_t bytes);
    std::uint32_t gather(Peer& peer);
    bool begin_message(Peer& peer, const wire::Header& header, Payload payload);
    [[gnu::cold]] velo_status to_departed(Peer& peer) noexcept;
    velo_status single_copy(Peer& peer, rma::Direction direction, void* local, std::uint64_t remote,
                            std::size_t bytes, const rma::Completion& completion,
                            singlecopy::RemoteMemory& memory);
    velo_status get_together(std::unique_lock<OptionalMutex>& lock, Peer& peer, void* local,
                             std::uint64_t remote, std::size_t bytes, const rma::Completion& completion,
                             singlecopy::RemoteMemory& memory);
    std::optional<rma::Help> help_with(Peer& peer, std::uint32_t ticket, std::uint64_t bytes,
                                       const std::byte* data, std::uint64_t remote, rma::Share::First first);
    velo_status share(std::unique_lock<OptionalMutex>& lock, rma::SharedGet& get, Peer& peer);
    static bool is_getting(const Peer& peer);
    rma::SharedGet announced(const Peer& peer, std::uint32_t ticket, std::size_t bytes,
                             const rma::Completion& completion);
    void give_help();
    void await_shared_gets();
    void finish_shared_gets();
    bool deliver_rma(Peer& peer, const rma::MessageHeader& header);
    // Takes the mailbox's occupancy.
    void sample(Domain& domain);
    bool idle() const;
    std::size_t private_bytes() const;
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
    std::atomic<bool> failures_told_{false};     // once
    std::uint32_t work_polls_ = 0;               // empty ones while something waits for room
    std::uint32_t slots_per_peer_ = 0, remote_slots_per_peer_ = 0;
    OptionalMutex mutex_;
    Gate gate_;
    std::uint32_t sleep_us_;        // at most, 0: never
    std::uint32_t idle_polls_ = 0;  // empty ones in a row
    Engine* companion_ = nullptr;   // sleep_with
    // The value that a peer reads to find out whether it may read this process's memory; see Address::probe.
    std::unique_ptr<std::uint64_t> probe_;
    singlecopy::Mechanisms mechanisms_;
    fabric::shm::Segment mailbox_;
    flow::InTurn in_turn_;
    flow::Outbox outbox_;
    std::uint64_t opened_ns_ = platform::now_ns(), opened_ticks_ = platform::ticks();
    std::vector<std::byte> staging_;  // of several messages that are streamed
    // Bytes of a message that has come by reference, and is handed up in a copy.
    static constexpr std::size_t kLeastCopied = 3072, kMostCopied = 12UL * 1024;
    std::vector<std::byte> copied_;  // once there is one
    std::size_t most_enclosed_;  // bytes of several messages that one REF stands for
    Domain velo_;
    Routes routes_;
    std::optional<Domain> limic_;
    // Peers on other nodes, if there are any; their indices follow those of the directory.
    std::optional<Domain> remote_;
    flow::PeerIndex remote_first_ = 0;
    bool sends_are_followed_ = false;  // there are several domains, or a trace
    std::unique_ptr<fabric::Network> network_;
    int batch_ = 0;                                // packets that this progress may handle
    int taken_ = 0;                                // packets that `take` has handled in this progress
    std::atomic<std::uint64_t> network_looks_{0};  // written under the gate
    std::uint32_t network_quiet_ = 0, network_skipped_ = 0;  // polls without a packet; polls left out
    std::uint32_t local_quiet_ = 0;                          // polls without a packet of this node
    std::vector<std::byte> address_;
    PeerTable peers_;
    std::vector<Peer*> met_;  // those of this node, whose end is looked for
    std::size_t looked_at_ = 0, looked_for_ = 0;
    std::uint64_t next_look_for_departed_ns_ = 0;
    bool outboxes_are_missing_ = false;  // one could not be mapped, and that has been told
    std::vector<Peer*> ending_;          // who have ended and not been cleared up after; under the gate
    // None after a wait in vain, until a place is free again.
    std::chrono::milliseconds place_patience_{kPlacePatience};
    std::vector<fabric::shm::Segment> segments_of_departed_;  // for the report
    std::uint64_t lost_packets_ = 0;                          // to nobody
    std::optional<Domain> nowhere_;
    std::unique_ptr<Peer> nobody_;
    Tracing trace_;
    Stalls<Peer> stalls_;
    rma::Rma rma_;
    rma::ShareCells share_cells_;
    std::vector<rma::SharedGet> shared_gets_;  // whose own part is done
    Deposits deposits_;
    std::deque<rma::Help> helps_;  // that peers have asked for
    BufferPool buffers_;
    std::vector<Peer*> stalled_;
    SendQueue completed_;           // user messages whose callback is due
    std::uint32_t looks_left_ = 0;  // of this progress
    std::vector<flow::PeerIndex>
        awaited_;  // peers that cannot look into this process and have yet to open the named mailbox
    // kWork: one of the lists above is not empty, or a contact is pending.
    enum class Housekeeping : std::uint8_t { kNone, kListen, kWork };
    std::atomic<Housekeeping> housekeeping_{Housekeeping::kNone};
    std::optional<fabric::shm::Doorbell> doorbell_;  // of a policy on demand
    std::uint64_t contact_due_ns_ = 0;               // when the engine loses patience; 0: nothing is pending
    fabric::shm::Statistics statistics_{};
    std::string description_;
    std::uint64_t first_node_peer_;
    bool single_copy_only_;  // no choice of the route
    std::atomic<bool> failed_{false};
    fabric::Interceptor interceptor_;  // ends before the peers
};

}  // namespace velo::endpoint
