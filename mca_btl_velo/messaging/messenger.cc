// Set-up; what arrives.
#include "messaging/messenger.h"

#include <cstring>

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
class Nobody final : public engine::MessageSink {
    void arrived(Peer&, std::byte*, std::size_t) override {}
    void departed(Peer&) override {}
} nobody;

}  // namespace

Messenger::Messenger(engine::Engine& engine, const velo_messenger_config& config)
    : engine_(engine),
      eager_limit_(config.eager_limit),
      network_eager_limit_(config.eager_limit),
      pool_bytes_(config.unexpected_pool),
      mutex_(engine.config().threads),
      shares_(config),
      notes_(std::make_shared<Notes>(engine.config().threads)) {
    const std::size_t most = engine.config().max_message_bytes - sizeof(SynchronousHeader);
    if (eager_limit_ > most)
        throw Failure(VELO_ERR_PARAMETER, "btl_velo_eager_limit is " + std::to_string(eager_limit_) +
                                              "; with btl_velo_max_send_size as it is, it must be at most " +
                                              std::to_string(most));
    if (!config.everywhere && engine.remote().eager_limit() > eager_limit_ + sizeof(SynchronousHeader))
        network_eager_limit_ = engine.remote().eager_limit() - sizeof(SynchronousHeader);
    engine_.keep(notes_);
    engine_.retrieval().deliver_to(this);
}

// A peer may have announced receives that it has not posted, so that sends are still under way.
Messenger::~Messenger() {
    engine_.retrieval().deliver_to(&nobody);
    engine_.large().shared_gets().give_no_help();
}

// What it has sent stays. Whoever waits for an answer waits no longer.
void Messenger::departed(Peer& peer) {
    std::vector<velo_message_send*> unanswered;
    std::vector<matching::Posted*> in_vain;
    {
        std::lock_guard lock(mutex_);
        holding_.departed(peer);
        asking_.departed(peer);
        placing_.departed(peer);
        shares_.departed(peer);
        unanswered = awaited_.remove_all(peer.index);
        in_vain = dead_.departed(peer, posted_);
        for (matching::Posted* posted : in_vain) (void)receive_of(posted);
        heeds_posted_ = dead_.any() || asking_.any();
    }
    if (!unanswered.empty() || !in_vain.empty()) channel_.failed(peer);
    for (velo_message_send* send : unanswered) Placing::answered(send, VELO_ERR_REMOTE);
    for (matching::Posted* posted : in_vain) fail(waiting_of(posted));
    if (events_ != nullptr) events_->departed(peer);
}

// `id`: of a synchronous one.
inline void Messenger::eager_arrived(Peer& from, const Header& header, const std::uint64_t* id,
                                     const std::byte* payload, std::size_t bytes) {
    bool due;
    velo_message_receive* receive;
    {
        std::lock_guard lock(mutex_);
        Shares::Share& share = share_of_sender(from);
        share.there += header.returned;
        matching::Posted* posted = match(header.key);
        if (posted == nullptr) return park_eager(from, header, id == nullptr ? 0 : *id, payload, bytes);
        // What comes behind is most likely received next, and would be copied twice.
        if (posted_.empty()) engine_.retrieval().end_batch();
        ++state_.matched_at_once;
        receive = receive_of(posted);
        share.owed += cells_for(bytes);
        due = shares_.is_due(share);
    }
    if (id != nullptr) channel_.say_done(from, *id, VELO_OK);
    deliver(receive, header.key, payload, bytes);
    if (due) [[unlikely]]
        channel_.return_cells(from);
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
            share_of_sender(from).there += header.returned;
            return control_arrived(from, header, data, bytes);
        }
    }
}

void Messenger::control_arrived(Peer& from, const Header& header, const std::byte* data, std::size_t bytes) {
    switch (header.kind) {
        case Kind::kCredits:
            return;
        case Kind::kHolding:
            asking_.holding_arrived(from, header.key.tag != 0);
            heeds_posted_ = dead_.any() || asking_.any();
            return;
        case Kind::kAsk:
            return holding_.ask_arrived(from, read<AskHeader>(data, bytes));
        case Kind::kAnswer:
            return holding_.answer_arrived(from, read<AnswerHeader>(data, bytes));
        case Kind::kPeek:
            return holding_.peek_arrived(from, read<ProbeHeader>(data, bytes));
        case Kind::kSeen:
            return asking_.seen_arrived(from, read<ProbeHeader>(data, bytes));
        case Kind::kTake:
            return holding_.take_arrived(from, read<ProbeHeader>(data, bytes));
        case Kind::kTaken:
            return asking_.taken_arrived(from, read<ProbeHeader>(data, bytes));
        case Kind::kAnnounce:
            return placing_.announcement_arrived(from, read<AnnounceHeader>(data, bytes));
        case Kind::kNotice:
            if (events_ != nullptr) return events_->noticed(read<NoticeHeader>(data, bytes).notice);
            [[fallthrough]];
        default:
            throw Failure(VELO_ERR_PROTOCOL, "a message of an unknown kind has come");
    }
}

void Messenger::park_eager(Peer& from, const Header& header, std::uint64_t id, const std::byte* payload,
                           std::size_t bytes) {
    unmatched_.park(parked_like(&from, header.key, header.kind, bytes, id), payload, bytes);
}

void Messenger::rendezvous_arrived(Peer& from, const RendezvousHeader& rendezvous) {
    const Parked like = parked_like(from, rendezvous);
    velo_message_receive* receive;
    {
        std::lock_guard lock(mutex_);
        share_of_sender(from).there += rendezvous.header.returned;
        asking_.forget(from, like.id);
        matching::Posted* posted = match(like.key);
        if (posted == nullptr) return unmatched_.park(like, nullptr, 0);
        ++state_.matched_at_once;
        receive = fetching(posted);
    }
    fetching_.fetch(receive, like);
}

void Messenger::offer_arrived(Peer& from, const OfferHeader& offer) {
    const Parked like = parked_like(from, offer.rendezvous);
    velo_message_receive* receive = nullptr;
    {
        std::lock_guard lock(mutex_);
        share_of_sender(from).there += offer.rendezvous.header.returned;
        const Answer verdict = asking_.answer_to(offer);
        if (verdict == Answer::kAccepted) {
            ++state_.matched_at_once;
            receive = fetching(match(like.key));
        }
        asking_.answer(from, offer, verdict);
    }
    if (receive != nullptr) fetching_.fetch(receive, like);
}

void Messenger::done_arrived(Peer& from, const DoneHeader& done) {
    velo_message_send* send;
    {
        std::lock_guard lock(mutex_);
        Shares::Share& share = share_of_sender(from);
        share.there += done.header.returned;
        send = awaited_.remove(done.id, from.index);
        if (send != nullptr && send->takes_header) {
            ++share.headers;
            if (share.holds) [[unlikely]]
                holding_.drain(from);
        }
    }
    if (send == nullptr) throw Failure(VELO_ERR_PROTOCOL, "a message was acknowledged that was not sent");
    Placing::answered(send, done.header.key.tag == VELO_OK ? VELO_OK : VELO_ERR_REMOTE);
}

velo_messenger_state Messenger::observe() const {
    std::lock_guard lock(mutex_);
    velo_messenger_state state = state_;
    state.pool_bytes = pool_bytes_;
    state.share_bytes = std::uint64_t{address().share} * kCellBytes;
    state.share_headers = address().headers;
    state.memory_bytes = unmatched_.memory();
    state.placed = placing_.placed();
    return state;
}

}  // namespace velo::messaging
