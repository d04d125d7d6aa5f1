// Messages with MPI's matching over the engine. One messenger listens to one engine.
//
// A sender holds a share of each receiver's pool, counted in cells (Shares). Payload is sent along only while
// the share lasts; the cells come back when the message has matched. Without it a message goes by rendezvous:
// one packet, which needs no share, so that there is always a way for a message that will match. Nothing
// waits for cells to come back, so they may be told late: with the next message in that direction, or in one
// of their own when half of the share is free again.
//
// The rendezvous that a sender has under way to one receiver are limited too, because each may leave a header
// there. Beyond that it holds its messages back, in order, until one of the others is done (Holding), or
// until the receiver asks for a message that a receive or a probe would match (Asking).
//
// The mutex protects queues, pool and shares. It may be held while the engine's is taken, never the other way
// round; no callback runs under it, and no payload is copied to a receive.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/engine.h"
#include "matching/posted_queue.h"
#include "messaging/asking.h"
#include "messaging/awaited_sends.h"
#include "messaging/dead_sources.h"
#include "messaging/engine_channel.h"
#include "messaging/fetching.h"
#include "messaging/holding.h"
#include "messaging/placing.h"
#include "messaging/protocol.h"
#include "messaging/receive_state.h"
#include "messaging/shares.h"
#include "messaging/unmatched.h"
#include "types/messages.h"

namespace velo::messaging {

// Who uses a messenger, and hears of more than messages. Called as MessageSink::departed is.
class MessengerEvents {
 public:
    virtual void departed(Peer& peer) = 0;
    // Comes after the messages that the peer has sent before.
    virtual void noticed(const Notice& notice) = 0;

 protected:
    ~MessengerEvents() = default;
};

class Messenger final : private engine::MessageSink {
 public:
    Messenger(engine::Engine& engine, const velo_messenger_config& config);
    ~Messenger();

    const Address& address() const noexcept { return shares_.address(); }
    // Throws Failure.
    void connect(const Peer& peer, const Address& address) {
        std::lock_guard lock(mutex_);
        shares_.connect(peer, address);
    }

    // Keys by value: see velo_message_start.
    // Sends to a peer towards which nothing is held back or due: nearly all small messages, and all that they
    // need. False: no effect. Where a peer is plain there is a single thread: without the mutex.
    [[gnu::always_inline]] bool try_send_fast(Peer& to, matching::Key key, const std::byte* data,
                                              std::size_t bytes) noexcept;
    // Before a message to another node: looks whether something of the share there was given back, if the
    // share is full. The message would leave by rendezvous otherwise, two journeys more.
    void look_for_room(Peer& to, std::size_t bytes) {
        if (engine_.remote().has(to.index) && lacks_room(to, bytes)) (void)engine_.progress();
    }
    // The message is short enough to be over when it has left, but there is no room: it would wait for its
    // receive. `to`: nullptr is this process.
    bool would_wait(const Peer* to, std::size_t bytes);
    velo_status send(Peer* to, matching::Key key, const std::byte* data, std::size_t bytes,
                     velo_send_mode mode, velo_message_send* send);
    using CopyBy = engine::CopyBy;
    [[gnu::always_inline]] void receive(matching::Key pattern, velo_message_receive* receive,
                                        CopyBy by = CopyBy::kFastest);
    bool cancel(velo_message_receive* receive);
    // is_dead(context, source) says, under the mutex, whether a source was killed. Receives from it end with
    // an error.
    void watch(DeadSources::IsDead is_dead, void* context) { dead_.watch(is_dead, context); }
    // After receive(), of a large receive without wildcards and with a key that no other receive has while it
    // lasts: its sender may copy the data to it, when it has nothing else to do if each is to copy its own.
    void announce(Peer& from, const matching::Key& key, velo_message_receive* receive);
    // True when `done` is called only if somebody has broken the rules; withdraw has to follow then.
    static bool is_announced(const velo_message_receive* receive) {
        return (receive->announced & ~kByOneself) != 0;
    }
    bool withdraw(velo_message_receive* receive) { return fetching_.withdraw(receive); }
    // The message stays.
    bool probe(const matching::Key& pattern, matching::Key* key, std::size_t* bytes);
    Parked* take(const matching::Key& pattern);
    // What take has returned.
    void consume(Parked* message, velo_message_receive* receive);
    // Drops the messages of a context, or those of them that fit. Their senders may go on.
    void forget(std::uint32_t context) {
        while (Parked* message = taken([&] { return unmatched_.take_any_of(context); })) drop(message);
    }
    template <typename Fits>
    void forget(std::uint32_t context, Fits fits) {
        while (Parked* message = taken([&] { return unmatched_.take_of(context, fits); })) drop(message);
    }
    // The key of a message of the context that has come, fits, and has met no receive; looks at all messages.
    template <typename Fits>
    std::optional<matching::Key> unexpected(std::uint32_t context, Fits fits) {
        std::lock_guard lock(mutex_);
        const Parked* message = unmatched_.find_of(context, fits);
        return message == nullptr ? std::nullopt : std::optional(message->key);
    }
    velo_messenger_state observe() const;
    // In one packet, of no share.
    void notify(Peer& peer, const Notice& notice) { channel_.notify(peer, notice); }
    // Before the first message.
    void report_to(MessengerEvents* events) { events_ = events; }

 private:
    [[gnu::noinline]] bool try_send_longer_fast(Peer& to, matching::Key key, const std::byte* data,
                                                std::size_t bytes) noexcept;
    template <typename TrySend>
    [[gnu::always_inline]] bool send_by(TrySend try_send, Peer& to, matching::Key key, const std::byte* data,
                                        std::size_t bytes) noexcept;
    velo_status send_to_self(const matching::Key& key, const std::byte* data, std::size_t bytes,
                             velo_send_mode mode, velo_message_send* send);
    velo_status send_without_credit(Peer& to, matching::Key key, std::uint16_t returned,
                                    const std::byte* data, std::size_t bytes, velo_message_send* send);
    bool lacks_room(const Peer& to, std::size_t bytes);
    std::size_t eager_limit_of(const Peer& to) const {
        return engine_.remote().has(to.index) ? network_eager_limit_ : eager_limit_;
    }

    // Of MessageSink.
    void arrived(Peer& from, std::byte* data, std::size_t bytes) override;
    void departed(Peer& peer) override;
    [[gnu::noinline]] void other_arrived(Peer& from, const std::byte* data, std::size_t bytes);
    [[gnu::always_inline]] void eager_arrived(Peer& from, const Header& header, const std::uint64_t* id,
                                              const std::byte* payload, std::size_t bytes);
    void rendezvous_arrived(Peer& from, const RendezvousHeader& rendezvous);
    void offer_arrived(Peer& from, const OfferHeader& offer);
    void done_arrived(Peer& from, const DoneHeader& done);
    void control_arrived(Peer& from, const Header& header, const std::byte* data, std::size_t bytes);
    [[gnu::noinline]] void park_eager(Peer& from, const Header& header, std::uint64_t id,
                                      const std::byte* payload, std::size_t bytes);

    // Of a peer that has sent something, which may be all that is known of it.
    Shares::Share& share_of_sender(Peer& from) {
        Shares::Share& share = shares_.of(from);
        if (!share.reached) [[unlikely]]
            channel_.reach(from, share);
        return share;
    }
    [[gnu::always_inline]] matching::Posted* match(const matching::Key& key) {
        matching::Posted* posted = posted_.match(key);
        if (asking_.any() && posted != nullptr) [[unlikely]]
            asking_.ask_for_next(posted->pattern);
        return posted;
    }
    [[gnu::cold]] void heed(matching::Posted& posted, velo_message_receive* receive);
    [[gnu::cold]] static void fail(velo_message_receive* receive);
    template <typename Take>
    Parked* taken(Take take) {
        std::lock_guard lock(mutex_);
        return take();
    }
    void drop(Parked* message);
    // nullptr: this process. Under the mutex, so that `departed` comes before or after.
    Peer* sender_of(const Parked& message) {
        Peer* from = message.from;
        const bool same =
            from == nullptr || from->generation.load(std::memory_order_relaxed) == message.generation;
        return same ? from : &engine_.departures().null_peer();
    }

    engine::Engine& engine_;
    std::size_t eager_limit_, network_eager_limit_;
    std::size_t pool_bytes_;
    mutable platform::OptionalMutex mutex_;
    velo_messenger_state state_{};
    Shares shares_;
    matching::PostedQueue posted_;
    bool heeds_posted_ = false;  // somebody holds messages back, or has died
    Unmatched unmatched_{state_};
    AwaitedSends awaited_;
    std::shared_ptr<Notes> notes_;  // the engine has it too
    EngineChannel channel_{engine_, shares_, mutex_, notes_};
    DeadSources dead_;
    Asking asking_{channel_, posted_, unmatched_};
    Holding holding_{channel_, shares_, awaited_, state_};
    Fetching fetching_{engine_.large(), channel_, notes_};
    Placing placing_{engine_.large(), channel_, awaited_, mutex_};
    MessengerEvents* events_ = nullptr;
};

}  // namespace velo::messaging
