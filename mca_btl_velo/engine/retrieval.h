// The receiver's side: packets leave the mailbox in arrival order, their contents go up, their credits go
// back.
//
// A packet is delivered before its slot is accounted for: the upper layer reads it in place, and the slot may
// be overwritten as soon as its credit is on the way. For the flow control rules this is the schedule in
// which everything that the callback sends was sent just before the packet was retrieved.
//
// What nearly all messages need is in retrieve_now.h, inline.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/large/large.h"
#include "engine/peers/incoming.h"
#include "engine/peers/pace.h"
#include "engine/peers/peers.h"
#include "engine/remote.h"
#include "engine/staging/batches.h"
#include "engine/staging/reference_reader.h"
#include "fabric/interceptor.h"

namespace velo::engine {

// Hears the messages of one tag together with their sender. Called as velo_config.message is; may throw
// Failure.
class MessageSink {
 public:
    virtual void arrived(Peer& from, std::byte* data, std::size_t bytes) = 0;
    // It has ended, and all that it has sent has arrived. Another process may take its place.
    virtual void departed(Peer& peer) = 0;

 protected:
    ~MessageSink() = default;
};

// The tag of a sink's messages. Open MPI's BTL tags begin at 16.
inline constexpr std::uint8_t kSinkTag = 0;

// What Retrieval asks of the engine.
class RetrievalHost {
 public:
    // Of checked builds, which abort here. Under the mutex.
    virtual void assert_invariants() = 0;

 protected:
    ~RetrievalHost() = default;
};

// Under the gate, unless it says otherwise.
class Retrieval final : public PeerEvents, public BatchesHost, public RemoteHost {
 public:
    // What it works with; all of it outlives it.
    struct Context {
        RetrievalHost& host;
        platform::OptionalMutex& mutex;
        platform::Gate& gate;
        Idle& idle;
        const Pace& pace;
        Peers& peers;
        Large& large;
        Batches& batches;
        Remote& remote;
        fabric::shm::Segment& mailbox;
        fabric::Interceptor& faults;
    };
    Retrieval(const Context& context, const velo_config& config)
        : with_(context),
          mutex_(context.mutex),
          peers_(context.peers),
          message_(config.message),
          context_(config.context),
          threads_(config.threads),
          buffers_(config.max_message_bytes),
          reference_reader_(context.mailbox, config.threads) {}

    // Takes packets out of the mailbox and hands up their contents. Returns their number.
    [[gnu::always_inline]] int drain_now(Domain& domain);
    int drain(Domain& domain) override;  // not inlined
    // Within the message callback: what lies behind in the mailbox is left to the next poll.
    void end_batch() noexcept { batch_ = 0; }
    // Within the message callback: the sender.
    flow::PeerIndex arriving() const noexcept { return arriving_; }
    // CREDITs at the head of the mailbox: whoever sends without an end needs them before it polls, and nobody
    // is called back for one. Under the mutex; not from within a callback, nor while another thread polls.
    // What they let go is pushed here: so nothing may be queued for the peer whose message the caller is
    // about to send, unless the caller is in the gate.
    void take_credits(Domain& domain);

    // Before the first message of kSinkTag is sent to this process; nullptr: not any more.
    void deliver_to(MessageSink* sink) { sink_ = sink; }
    // The other messages; likewise.
    void hand_messages_to(velo_message_fn message) noexcept { message_ = message; }
    // Nothing is retrieved any more. By any thread.
    void stop() { stopped_ = true; }
    bool is_stopped() const { return stopped_; }
    std::size_t buffer_bytes() const { return buffers_.bytes(); }

    void departed(Peer& peer) override;
    void gone(Peer& peer) override;

 private:
    // Of BatchesHost and RemoteHost.
    bool take_enclosed(Peer& from, const wire::Enclosed& message, std::byte* data) override;
    void has_read(Peer& peer) override { reference_reader_.release(peer); }
    int left_of_poll() const override { return stopped_ ? 0 : batch_; }
    bool arrived(Peer& from, const fabric::Delivery& delivery) override;

    // Before a further packet is retrieved, and at each look at the mailbox.
    [[gnu::always_inline]] void release_delayed_credit(Domain& domain) {
        if (domain.ledger.owes()) [[unlikely]]
            look_at_delayed_credit(domain);
    }
    [[gnu::noinline]] void look_at_delayed_credit(Domain& domain);

    // These return the number of packets handled.
    [[gnu::always_inline]] int try_retrieve_fast(Domain& domain, std::uint64_t word);
    [[gnu::always_inline]] int retrieve_plain(Domain& domain, Peer& peer, const wire::Header& header,
                                              std::uint32_t packets);
    [[gnu::noinline]] int try_retrieve_reference_fast(Domain& domain, std::uint64_t word);
    [[gnu::noinline]] int retrieve_other(Domain& domain, std::uint64_t word);
    int handle(Domain& domain, std::uint64_t word);
    [[gnu::noinline]] int handle_rarity(Peer& peer, const wire::Header& header);
    template <wire::PacketKind kKind>
    [[gnu::always_inline]] int retrieve_data(Peer& peer, const wire::Header& header);

    [[gnu::always_inline]] Peer* plain_sender(const Domain& domain, const wire::Header& header);
    [[gnu::always_inline]] void await_retrieval(Peer& peer, std::uint32_t packets);
    void retrieve_control(Peer& peer, const wire::Header& header);
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
    void assert_invariants() {
#ifdef VELO_CHECKED
        with_.host.assert_invariants();
#endif
    }

    const Context with_;
    platform::OptionalMutex& mutex_;
    Peers& peers_;
    velo_message_fn message_;
    void* context_;
    MessageSink* sink_ = nullptr;
    const bool threads_;
    std::atomic<bool> stopped_{false};
    flow::PeerIndex arriving_ = 0;  // whose message the callback is given
    int batch_ = 0;                 // packets and enclosed messages that this poll may handle
    BufferPool buffers_;
    ReferenceReader reference_reader_;
};

}  // namespace velo::engine
