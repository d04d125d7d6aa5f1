// Set-up; shares; what arrives.
#include "messaging/messenger.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "platform/failure.h"

namespace velo::messaging {
namespace {

template <typename T>
[[gnu::always_inline]] inline T read(const std::byte* data, std::size_t bytes) {
    if (bytes < sizeof(T)) throw Failure(VELO_ERR_PROTOCOL, "a message is shorter than its header");
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

// For what peers still say to a messenger that has closed: credits that nobody needs any more.
class Nobody final : public endpoint::MessageSink {
    void arrived(Peer&, std::byte*, std::size_t) override {}
    void departed(Peer&) override {}
} nobody;

std::uint32_t share_of_pool(const velo_messenger_config& config) {
    std::size_t cells = config.unexpected_pool / kCellBytes / std::max(config.sharers, 1U);
    return static_cast<std::uint32_t>(std::min<std::size_t>(cells, std::numeric_limits<std::int32_t>::max()));
}

// So few always, whatever the size of the job: one is enough for progress.
constexpr std::uint32_t kLeastHeaders = 4;

std::uint32_t headers_of_pool(const velo_messenger_config& config) {
    std::size_t headers = config.header_pool / kCellBytes / std::max(config.sharers, 1U);
    return static_cast<std::uint32_t>(
        std::clamp<std::size_t>(headers, kLeastHeaders, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

Messenger::Messenger(endpoint::Engine& engine, const velo_messenger_config& config)
    : engine_(engine),
      eager_limit_(config.eager_limit),
      network_eager_limit_(config.eager_limit),
      pool_bytes_(config.unexpected_pool),
      share_cells_(share_of_pool(config)),
      share_headers_(headers_of_pool(config)),
      return_from_(std::max(share_cells_ / 2, 1U)),
      address_{Address::kMagic, share_cells_, share_headers_},
      mutex_(engine.config().threads),
      notes_(std::make_shared<Notes>(engine.config().threads)) {
    const std::size_t most = engine.config().max_message_bytes - sizeof(SynchronousHeader);
    if (eager_limit_ > most)
        throw Failure(VELO_ERR_PARAMETER, "btl_velo_eager_limit is " + std::to_string(eager_limit_) +
                                              "; with btl_velo_max_send_size as it is, it must be at most " +
                                              std::to_string(most));
    if (!config.everywhere && engine.remote().eager_limit() > eager_limit_ + sizeof(SynchronousHeader))
        network_eager_limit_ = engine.remote().eager_limit() - sizeof(SynchronousHeader);
    own_.there = share_cells_;
    engine_.keep(notes_);
    engine_.retrieval().deliver_to(this);
}

// A peer may have announced receives that it has not posted, so that sends are still under way.
Messenger::~Messenger() {
    engine_.retrieval().deliver_to(&nobody);
    engine_.large().shared_gets().give_no_help();
}

void Messenger::connect(Peer& peer, const Address& address) {
    if (address.share > std::numeric_limits<std::int32_t>::max())
        throw Failure(VELO_ERR_PROTOCOL, "the address of a peer's messages is damaged");
    std::lock_guard lock(mutex_);
    Share& share = share_of(peer);
    if (share.connected) return;
    share.connected = share.reached = true;
    share.is_gone = false;
    share.there += address.share;
    share.headers = address.headers;
}

void Messenger::reach(Peer& peer, Share& share) {
    engine_.peers().reach(peer);
    share.reached = true;
}

// What it has sent stays. Whoever waits for an answer waits no longer, and the share is that of a process
// that was never met.
void Messenger::departed(Peer& peer) {
    std::vector<velo_message_send*> unanswered;
    std::vector<velo_message_receive*> in_vain;
    {
        std::lock_guard lock(mutex_);
        std::erase(holders_, &peer);
        Share& share = share_of(peer);
        if (share.backlog != nullptr)
            while (Held* held = share.backlog->oldest()) release_held(peer, held, *share.backlog);
        unanswered = awaited_.remove_all(peer.index);
        Peeks peeks = std::move(share.peeks);
        peeks.depart();
        share = Share();
        share.peeks = std::move(peeks);
        share.is_gone = true;
        if (is_dead_ != nullptr && peer.died.load(std::memory_order_relaxed)) {
            some_have_died_ = true;
            in_vain = take_those_of_dead();
        }
        note_holders();
    }
    if (!unanswered.empty() || !in_vain.empty()) engine_.large().failed(peer, 0);
    for (velo_message_send* send : unanswered) answered(send, VELO_ERR_REMOTE);
    for (velo_message_receive* receive : in_vain) fail(receive);
    if (events_ != nullptr) events_->departed(peer);
}

bool Messenger::give_back(Peer* from, std::uint32_t cells) {
    if (from == nullptr) {
        own_.there += cells;
        return false;
    }
    Share& share = share_of(*from);
    share.owed += cells;
    return share.owed >= return_from_;
}

void Messenger::return_credits(Peer& peer) {
    Header header{{}, 0, Kind::kCredits, 0};
    std::lock_guard lock(mutex_);
    Share& share = share_of(peer);
    header.returned = take_owed(share);
    if (header.returned == 0) return;
    const fabric::MessageView message{{reinterpret_cast<const std::byte*>(&header), nullptr},
                                      {sizeof header, 0}};
    if (engine_.send_now(peer, endpoint::kSinkTag, message) != VELO_OK) share.owed += header.returned;
}

// `id`: of a synchronous one.
inline void Messenger::eager_arrived(Peer& from, const Header& header, const std::uint64_t* id,
                                     const std::byte* payload, std::size_t bytes) {
    bool due;
    velo_message_receive* receive;
    {
        std::lock_guard lock(mutex_);
        Share& share = reached_share_of(from);
        share.there += header.returned;
        matching::Posted* posted = match(header.key);
        if (posted == nullptr) return park_eager(from, header, id == nullptr ? 0 : *id, payload, bytes);
        // What comes behind is most likely received next, and would be copied twice.
        if (posted_.empty()) engine_.retrieval().end_batch();
        ++state_.matched_at_once;
        receive = receive_of(posted);
        share.owed += cells_for(bytes);
        due = share.owed >= return_from_;
    }
    if (id != nullptr) say_done(from, *id, VELO_OK);
    deliver(receive, header.key, payload, bytes);
    if (due) [[unlikely]]
        return_credits(from);
}

// What is seldom needed is elsewhere, with its memory on the stack.
void Messenger::arrived(Peer& from, std::byte* data, std::size_t bytes) {
    if (bytes < sizeof(Header)) [[unlikely]]
        return other_arrived(from, data, bytes);
    const auto header = read<Header>(data, bytes);
    if (header.kind != Kind::kEager) [[unlikely]]
        return other_arrived(from, data, bytes);
    eager_arrived(from, header, nullptr, data + sizeof header, bytes - sizeof header);
}

void Messenger::other_arrived(Peer& from, const std::byte* data, std::size_t bytes) {
    const auto header = read<Header>(data, bytes);
    switch (header.kind) {
        case Kind::kSynchronous: {
            const auto synchronous = read<SynchronousHeader>(data, bytes);
            return eager_arrived(from, header, &synchronous.id, data + sizeof synchronous,
                                 bytes - sizeof synchronous);
        }
        case Kind::kRendezvous:
            return rendezvous_arrived(from, read<RendezvousHeader>(data, bytes));
        case Kind::kDone:
            return done_arrived(from, read<DoneHeader>(data, bytes));
        case Kind::kOffer:
            return offer_arrived(from, read<OfferHeader>(data, bytes));
        default: {
            std::lock_guard lock(mutex_);
            reached_share_of(from).there += header.returned;
            return control_arrived(from, header, data, bytes);
        }
    }
}

void Messenger::control_arrived(Peer& from, const Header& header, const std::byte* data, std::size_t bytes) {
    switch (header.kind) {
        case Kind::kCredits:
            return;
        case Kind::kHolding:
            return holding_arrived(from, header.key.tag != 0);
        case Kind::kAsk:
            return ask_arrived(from, read<AskHeader>(data, bytes));
        case Kind::kAnswer:
            return answer_arrived(from, read<AnswerHeader>(data, bytes));
        case Kind::kPeek:
            return peek_arrived(from, read<ProbeHeader>(data, bytes));
        case Kind::kSeen:
            return seen_arrived(from, read<ProbeHeader>(data, bytes));
        case Kind::kTake:
            return take_arrived(from, read<ProbeHeader>(data, bytes));
        case Kind::kTaken:
            return taken_arrived(from, read<ProbeHeader>(data, bytes));
        case Kind::kAnnounce:
            return announcement_arrived(from, read<AnnounceHeader>(data, bytes));
        case Kind::kNotice:
            if (events_ != nullptr) return events_->noticed(read<NoticeHeader>(data, bytes).notice);
            [[fallthrough]];
        default:
            throw Failure(VELO_ERR_PROTOCOL, "a message of an unknown kind has come");
    }
}

void Messenger::park_eager(Peer& from, const Header& header, std::uint64_t id, const std::byte* payload,
                           std::size_t bytes) {
    Parked like;
    like.key = header.key;
    like.from = &from;
    like.generation = from.generation.load(std::memory_order_relaxed);
    like.bytes = bytes;
    like.id = id;
    like.kind = header.kind;
    park(like, payload, bytes);
}

void Messenger::park(const Parked& like, const std::byte* data, std::size_t bytes) {
    ++state_.unexpected;
    if (like.kind == Kind::kRendezvous) {
        state_.headers_most = std::max(state_.headers_most, ++state_.headers);
    } else {
        state_.pool_used_bytes += cells_for(bytes) * kCellBytes;
        state_.pool_most_bytes = std::max(state_.pool_most_bytes, state_.pool_used_bytes);
    }
    unexpected_.push(pool_.park(like, data, bytes));
}

void Messenger::rendezvous_arrived(Peer& from, const RendezvousHeader& rendezvous) {
    const Parked like = parked_like(from, rendezvous);
    velo_message_receive* receive;
    {
        std::lock_guard lock(mutex_);
        Share& share = reached_share_of(from);
        share.there += rendezvous.header.returned;
        if (!share.peeks.empty()) [[unlikely]]
            share.peeks.forget(like.id);
        matching::Posted* posted = match(like.key);
        if (posted == nullptr) return park(like, nullptr, 0);
        ++state_.matched_at_once;
        receive = fetching(posted);
    }
    fetch(receive, like);
}

void Messenger::done_arrived(Peer& from, const DoneHeader& done) {
    velo_message_send* send;
    {
        std::lock_guard lock(mutex_);
        Share& share = reached_share_of(from);
        share.there += done.header.returned;
        send = awaited_.remove(done.id, from.index);
        if (send != nullptr && send->takes_header) {
            ++share.headers;
            if (share.backlog != nullptr) [[unlikely]]
                drain(from);
        }
    }
    if (send == nullptr) throw Failure(VELO_ERR_PROTOCOL, "a message was acknowledged that was not sent");
    answered(send, done.header.key.tag == VELO_OK ? VELO_OK : VELO_ERR_REMOTE);
}

velo_messenger_state Messenger::observe() const {
    std::lock_guard lock(mutex_);
    velo_messenger_state state = state_;
    state.pool_bytes = pool_bytes_;
    state.share_bytes = std::uint64_t{share_cells_} * kCellBytes;
    state.share_headers = share_headers_;
    state.memory_bytes = pool_.memory();
    state.placed = placed_.load(std::memory_order_relaxed);
    return state;
}

}  // namespace velo::messaging
