// Messages with MPI's matching over the engine. One messenger listens to one engine.
//
// A sender holds a share of each receiver's pool, counted in cells. Payload is sent along only while the
// share lasts; the cells come back when the message has matched. Without it a message goes by rendezvous: one
// packet, which needs no share, so that there is always a way for a message that will match. Nothing waits
// for cells to come back, so they may be told late: with the next message in that direction, or in one of
// their own when half of the share is free again.
//
// The rendezvous that a sender has under way to one receiver are limited too, because each may leave a header
// there. Beyond that it holds its messages back, in order, until one of the others is done (holding.cc), or
// until the receiver asks for a message that a receive or a probe would match (asking.cc).
//
// The mutex protects queues, pool and shares. It may be held while the engine's is taken, never the other way
// round; no callback runs under it, and no payload is copied to a receive.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "endpoint/gate.h"
#include "endpoint/send_now.h"
#include "matching/posted_queue.h"
#include "matching/unexpected_queue.h"
#include "messaging/announcements.h"
#include "messaging/awaited_sends.h"
#include "messaging/backlog.h"
#include "messaging/notes.h"
#include "messaging/peeks.h"
#include "messaging/pool.h"
#include "messaging/protocol.h"
#include "types/messages.h"

namespace velo::messaging {

using endpoint::Peer;

// What a messenger needs to know about a peer's, carried by the job's start-up exchange.
struct Address {
    static constexpr std::uint64_t kMagic = 0x344d6f6c6556;  // "VeloM4"
    std::uint64_t magic;
    std::uint32_t share;    // cells
    std::uint32_t headers;  // rendezvous that may be under way
};

// What a header of this peer's would be if nothing waited for it.
inline Parked parked_like(endpoint::Peer& from, const RendezvousHeader& rendezvous) {
    Parked like;
    like.key = rendezvous.header.key;
    like.from = &from;
    like.generation = from.generation.load(std::memory_order_relaxed);
    like.bytes = rendezvous.bytes;
    like.id = rendezvous.id;
    like.address = rendezvous.address;
    like.kind = Kind::kRendezvous;
    like.deposit = rendezvous.header.kind == Kind::kRendezvous ? rendezvous.header.unused : 0;
    return like;
}

// Two words, because the header is fetched as such in a moment.
inline Header header_of(matching::Key key, std::uint16_t returned, Kind kind) {
    static_assert(std::endian::native == std::endian::little);
    const std::array<std::uint64_t, 2> words{
        std::uint64_t{static_cast<std::uint32_t>(key.source)} << 32 | key.context,
        static_cast<std::uint64_t>(kind) << 48 | std::uint64_t{returned} << 32 |
            static_cast<std::uint32_t>(key.tag)};
    return std::bit_cast<Header>(words);
}

// Who uses a messenger, and hears of more than messages. Called as MessageSink::departed is.
class MessengerEvents {
 public:
    virtual void departed(Peer& peer) = 0;
    // Comes after the messages that the peer has sent before.
    virtual void noticed(const Notice& notice) = 0;

 protected:
    ~MessengerEvents() = default;
};

class Messenger final : private endpoint::MessageSink {
 public:
    Messenger(endpoint::Engine& engine, const velo_messenger_config& config);
    ~Messenger();

    const Address& address() const noexcept { return address_; }
    // Throws Failure.
    void connect(Peer& peer, const Address& address);

    // Keys by value: see velo_message_start.
    // To a peer towards which nothing is held back or due: nearly all small messages, and all that they need.
    // False: nothing has been done. Where a peer is plain there is a single thread: without the mutex.
    [[gnu::always_inline]] bool try_send_fast(Peer& to, matching::Key key, const std::byte* data,
                                              std::size_t bytes) noexcept;
    // To another node, before a message that would leave by rendezvous, two journeys more, because the share
    // there is full: looks whether something of it was given back.
    void look_for_room(Peer& to, std::size_t bytes) {
        if (engine_.remote().has(to.index) && lacks_room(to, bytes)) (void)engine_.progress();
    }
    // It is short enough to be over when it has left, but would wait for its receive: there is no room for
    // it.
    bool would_wait(const Peer* to, std::size_t bytes);
    velo_status send(Peer* peer, matching::Key key, const std::byte* data, std::size_t bytes,
                     velo_send_mode mode, velo_message_send* send);
    using CopyBy = endpoint::CopyBy;
    [[gnu::always_inline]] void receive(matching::Key pattern, velo_message_receive* receive,
                                        CopyBy by = CopyBy::kFastest);
    bool cancel(velo_message_receive* receive);
    // Receives from a process that was killed end with an error instead of waiting: is_dead(context, source)
    // says whether one is from such a process, under the mutex.
    void watch(bool (*is_dead)(void*, std::uint32_t, std::int32_t), void* context) {
        is_dead_ = is_dead;
        of_is_dead_ = context;
    }
    // After receive(), of a large receive without wildcards and with a key that no other receive has while it
    // lasts: its sender may copy the data to it, when it has nothing else to do if each is to copy its own.
    void announce(Peer& from, const matching::Key& key, velo_message_receive* receive);
    // Only if somebody has broken the rules is this so when `done` is called; withdraw has to follow then.
    static bool is_announced(const velo_message_receive* receive) {
        return (receive->announced & ~kByOneself) != 0;
    }
    // Nobody writes to it any more. False: nobody will when `done` is called, possibly once more.
    bool withdraw(velo_message_receive* receive);
    // The message stays.
    bool probe(const matching::Key& pattern, matching::Key* key, std::size_t* bytes);
    Parked* take(const matching::Key& pattern);
    // What take has returned.
    void consume(Parked* message, velo_message_receive* receive);
    void forget(std::uint32_t context);
    // Those of them that fit.
    template <typename Fits>
    void forget(std::uint32_t context, Fits fits) {
        for (;;) {
            Parked* message;
            {
                std::lock_guard lock(mutex_);
                if (unexpected_.any_of(context) == nullptr) return;
                message = static_cast<Parked*>(unexpected_.find_of(context, fits));
                if (message == nullptr) return;
                unexpected_.remove(message);
            }
            drop(message);
        }
    }
    void drop(Parked* message);
    // The key of a message of the context that has come, fits, and has met no receive; looks at all messages.
    template <typename Fits>
    std::optional<matching::Key> unexpected(std::uint32_t context, Fits fits) {
        std::lock_guard lock(mutex_);
        const matching::Unexpected* message = unexpected_.find_of(context, fits);
        return message == nullptr ? std::nullopt : std::optional(message->key);
    }
    velo_messenger_state observe() const;
    // In one packet, of no share.
    void notify(Peer& peer, const Notice& notice);
    // Before the first message.
    void report_to(MessengerEvents* events) { events_ = events; }

 private:
    // Of one peer. A line of the cache for each.
    struct alignas(64) Share {
        std::uint32_t there = 0;           // cells that this process may still fill in the peer's pool
        std::uint32_t owed = 0;            // cells that the peer may fill again and has not been told of
        bool reached = false;              // there is a way to the peer
        bool connected = false;            // its share is known
        bool is_gone = false;              // the peer has departed
        std::uint32_t headers = 0;         // rendezvous that this process may still start
        std::unique_ptr<Backlog> backlog;  // of messages to the peer, if any are held back
        Peeks peeks;                       // while the peer holds something back
        std::unique_ptr<Announcements> announcements;  // of the peer
    };
    // A message whose receive has been announced. It is answered, and it is copied; either may be over first.
    struct Placement {
        velo_message_send answer;  // in the place of the send among those that are awaited
        Messenger* messenger;
        std::atomic<velo_message_send*> send;  // nullptr: complete
        std::uint64_t bytes;
        std::optional<rma::Help> help;
        rma::Share::Range first;
        bool when_idle;

        void complete(velo_status status) {
            if (velo_message_send* whole = send.exchange(nullptr, std::memory_order_acq_rel))
                settle(whole, status);
        }
    };
    // The rest of try_send_fast: of several packets, and what both need.
    [[gnu::noinline]] bool try_send_longer_fast(Peer& to, matching::Key key, const std::byte* data,
                                                std::size_t bytes) noexcept;
    template <typename TrySend>
    [[gnu::always_inline]] bool send_by(TrySend try_send, Peer& to, matching::Key key, const std::byte* data,
                                        std::size_t bytes) noexcept;

    void arrived(Peer& from, std::byte* data, std::size_t bytes) override;
    [[gnu::noinline]] void other_arrived(Peer& from, const std::byte* data, std::size_t bytes);
    void departed(Peer& peer) override;
    [[gnu::always_inline]] void eager_arrived(Peer& from, const Header& header, const std::uint64_t* id,
                                              const std::byte* payload, std::size_t bytes);
    void rendezvous_arrived(Peer& from, const RendezvousHeader& rendezvous);
    void done_arrived(Peer& from, const DoneHeader& done);
    void control_arrived(Peer& from, const Header& header, const std::byte* data, std::size_t bytes);
    void park(const Parked& like, const std::byte* data, std::size_t bytes);
    [[gnu::noinline]] void park_eager(Peer& from, const Header& header, std::uint64_t id,
                                      const std::byte* payload, std::size_t bytes);

    velo_status send_to_self(const matching::Key& key, const std::byte* data, std::size_t bytes,
                             velo_send_mode mode, velo_message_send* send);
    velo_status queue(Peer& peer, std::size_t header_bytes, const std::byte* data, std::size_t bytes,
                      velo_message_send* send);
    velo_status send_without_credit(Peer& to, matching::Key key, std::uint16_t returned,
                                    const std::byte* data, std::size_t bytes, velo_message_send* send);
    static void expect(velo_message_send* send, std::uint32_t events);
    void deposit(Peer& to, const std::byte* data, std::size_t bytes, velo_message_send* send);
    static bool is_last(velo_message_send* send);
    static void settle(velo_message_send* send, velo_status status);

    // holding.cc, all under the mutex: the sender's side of messages that are held back.
    velo_status hold(Peer& to, const matching::Key& key, const std::byte* data, std::size_t bytes,
                     velo_message_send* send);
    void drain(Peer& to);
    void stop_holding_if_empty(Peer& to);
    void offer(Peer& to, const matching::Key& key);
    void ask_arrived(Peer& from, const AskHeader& ask);
    void answer_arrived(Peer& from, const AnswerHeader& answer);
    void peek_arrived(Peer& from, const ProbeHeader& peek);
    void take_arrived(Peer& from, const ProbeHeader& take);
    void release_held(Peer& to, Held* held, Backlog& backlog);

    // asking.cc: the receiver's. All but offer_arrived and take_held under the mutex.
    void holding_arrived(Peer& from, bool holds);
    void ask(Peer& holder, const matching::Posted& receive);
    void ask_all(const matching::Posted& receive);
    void ask_for_next(const matching::Key& pattern);
    [[gnu::cold]] void heed(matching::Posted& posted, velo_message_receive* receive);
    void note_holders() { heeds_posted_ = some_have_died_ || !holders_.empty(); }
    bool is_of_dead(const matching::Key& pattern) const {
        return pattern.source != matching::kAnySource &&
               is_dead_(of_is_dead_, pattern.context, pattern.source);
    }
    std::vector<velo_message_receive*> take_those_of_dead();
    [[gnu::cold]] static void fail(velo_message_receive* receive);
    [[gnu::always_inline]] matching::Posted* match(const matching::Key& key) {
        matching::Posted* posted = posted_.match(key);
        if (!holders_.empty() && posted != nullptr) [[unlikely]]
            ask_for_next(posted->pattern);
        return posted;
    }
    void offer_arrived(Peer& from, const OfferHeader& offer);
    Answer answer_to(const OfferHeader& offer) const;
    Peek* peek(Peer& holder, const matching::Key& pattern);
    Peek* seen_by_probe(const matching::Key& pattern, Peer** holder);
    void seen_arrived(Peer& from, const ProbeHeader& seen);
    void taken_arrived(Peer& from, const ProbeHeader& taken);
    Parked* take_held(const matching::Key& pattern);

    // placing.cc
    void announcement_arrived(Peer& from, const AnnounceHeader& header);
    Placement* begin_placing(Peer& to, const Announcement& announcement, const std::byte* data,
                             velo_message_send* send, bool when_idle);
    void place(Peer& to, Placement& placement);
    static void copied(void* placement, velo_status status, std::uint64_t bytes);
    static void answered(velo_message_send* send, velo_status status);

    // receiving.cc
    static void deliver(velo_message_receive* receive, matching::Key key, const std::byte* data,
                        std::size_t bytes);
    static void copy_out(velo_message_receive* receive, const Parked& message);
    bool release(Parked* message);
    void fetch(velo_message_receive* receive, const Parked& rendezvous);
    void fetch_parts(velo_message_receive* receive);
    void fetched(velo_message_receive* receive, velo_status status);

    // velo_message_receive::turn: whether a receive may be cancelled, and later who goes on with its parts.
    enum Turn : std::uint32_t { kWaiting, kMatched, kFirst, kSecond, kAnnounced, kMatchedAnnounced };
    static constexpr std::uint64_t kFailed = UINT64_MAX;  // velo_message_receive::position
    // velo_message_receive::announced: the ticket, or 0, and this.
    static constexpr std::uint32_t kByOneself = 1U << 7;
    static_assert(fabric::shm::kShareCells <= kByOneself);
    static std::uint32_t take_ticket(velo_message_receive* receive) {
        return std::exchange(receive->announced, receive->announced & kByOneself) & ~kByOneself;
    }

    static velo_message_receive* waiting_of(matching::Posted* posted) {
        return reinterpret_cast<velo_message_receive*>(reinterpret_cast<std::byte*>(posted) -
                                                       offsetof(velo_message_receive, posted));
    }
    // The receive that has matched.
    static velo_message_receive* receive_of(matching::Posted* posted) {
        velo_message_receive* receive = waiting_of(posted);
        receive->turn = kMatched;
        return receive;
    }
    // The same of a message that will be fetched.
    static velo_message_receive* fetching(matching::Posted* posted) {
        velo_message_receive* receive = waiting_of(posted);
        receive->turn = receive->turn == kAnnounced ? kMatchedAnnounced : kMatched;
        return receive;
    }
    Share& share_of(const Peer& peer) {
        if (peer.index >= shares_.size()) [[unlikely]]
            shares_.resize(peer.index + 1);
        return shares_[peer.index];
    }
    // Of a peer that has sent something, which may be all that is known of it.
    Share& reached_share_of(Peer& peer) {
        Share& share = share_of(peer);
        if (!share.reached) [[unlikely]]
            reach(peer, share);
        return share;
    }
    void reach(Peer& peer, Share& share);
    // nullptr: this process. Under the mutex, so that `departed` comes before or after.
    Peer* sender_of(const Parked& message) {
        Peer* from = message.from;
        const bool same =
            from == nullptr || from->generation.load(std::memory_order_relaxed) == message.generation;
        return same ? from : &engine_.departures().null_peer();
    }
    static std::uint16_t take_owed(Share& share) {
        const std::uint32_t told = std::min<std::uint32_t>(share.owed, UINT16_MAX);
        share.owed -= told;
        return static_cast<std::uint16_t>(told);
    }
    bool lacks_room(const Peer& to, std::size_t bytes);
    // True if the peer should be told now.
    bool give_back(Peer* from, std::uint32_t cells);
    void return_credits(Peer& peer);
    void say_done(Peer& peer, std::uint64_t id, velo_status status);
    // A message of one of the types of protocol.h, with what is owed. Under the mutex.
    void say(Peer& peer, Header& header, const void* message, std::size_t bytes);
    bool many_notes_wait() const { return notes_->waiting() >= Peeks::kMost; }
    template <typename Message>
    void say(Peer& peer, Header& header, Message& message) {
        say(peer, header, &message, sizeof message);
    }

    endpoint::Engine& engine_;
    std::size_t eager_limit_of(const Peer& to) const {
        return engine_.remote().has(to.index) ? network_eager_limit_ : eager_limit_;
    }
    std::size_t eager_limit_, network_eager_limit_;
    std::size_t pool_bytes_;
    std::uint32_t share_cells_;
    std::uint32_t share_headers_;
    std::uint32_t return_from_;  // owed cells that are worth a message
    Address address_;
    mutable endpoint::OptionalMutex mutex_;
    matching::PostedQueue posted_;
    bool (*is_dead_)(void* context, std::uint32_t, std::int32_t) = nullptr;
    void* of_is_dead_ = nullptr;
    bool some_have_died_ = false;  // and is_dead_ says who
    bool heeds_posted_ = false;    // for their sake, or for that of holders_
    matching::UnexpectedQueue unexpected_;
    Pool pool_;
    std::vector<Share> shares_;  // by index of the peer
    Share own_;                  // of this process in its own pool
    AwaitedSends awaited_;
    std::deque<Placement> placements_;
    std::vector<Placement*> free_placements_;
    std::atomic<std::uint64_t> placed_{0};
    std::shared_ptr<Notes> notes_;  // the engine has it too
    std::vector<Peer*> holders_;    // peers that hold messages to this process back
    MessengerEvents* events_ = nullptr;
    velo_messenger_state state_{};
};

inline bool Messenger::try_send_fast(Peer& to, matching::Key key, const std::byte* data,
                                     std::size_t bytes) noexcept {
    constexpr auto packet = [] [[gnu::always_inline]] (endpoint::Engine & engine, Peer & peer,
                                                       const fabric::MessageView& message) {
        return engine.try_send_fast(peer, endpoint::kSinkTag, message);
    };
    if (bytes > wire::kPayloadBytes - sizeof(Header)) return try_send_longer_fast(to, key, data, bytes);
    return send_by(packet, to, key, data, bytes);
}

template <typename TrySend>
inline bool Messenger::send_by(TrySend try_send, Peer& to, matching::Key key, const std::byte* data,
                               std::size_t bytes) noexcept {
    if (!to.is_plain() || to.index >= shares_.size() || bytes > eager_limit_) return false;
    Share& share = shares_[to.index];
    const std::uint32_t cells = cells_for(bytes);
    if (cells > share.there || share.owed > UINT16_MAX || share.backlog != nullptr) return false;
    const Header header = header_of(key, static_cast<std::uint16_t>(share.owed), Kind::kEager);
    if (!try_send(engine_, to, {{reinterpret_cast<const std::byte*>(&header), data}, {sizeof header, bytes}}))
        return false;
    share.there -= cells;
    share.owed = 0;
    ++state_.eager;
    return true;
}

inline void Messenger::receive(matching::Key pattern, velo_message_receive* receive, CopyBy by) {
    static_assert(sizeof receive->posted >= sizeof(matching::Posted));
    receive->messenger = reinterpret_cast<velo_messenger*>(this);
    receive->turn = kWaiting;
    receive->announced = by == CopyBy::kReader ? kByOneself : 0;
    Parked* message;
    {
        std::lock_guard lock(mutex_);
        message =
            unexpected_.size() == 0 ? nullptr : static_cast<Parked*>(unexpected_.take(in_memory(pattern)));
        if (message == nullptr) {
            auto* posted = new (receive->posted) matching::Posted;
            posted_.push(posted, pattern);
            if (heeds_posted_) [[unlikely]]
                heed(*posted, receive);
            return;
        }
    }
    consume(message, receive);
}

}  // namespace velo::messaging
