// The receiver's side: packets leave the mailbox in arrival order, their contents go up, their credits go
// back.
//
// A packet is delivered before its slot is accounted for: the upper layer reads it in place, and the slot may
// be overwritten as soon as its credit is on the way. For the flow control rules this is the schedule in
// which everything that the callback sends was sent just before the packet was retrieved.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "endpoint/engine.h"
#include "platform/failure.h"

namespace velo::endpoint {
namespace {

// Packets handled by one call of progress at most, so that the upper layer gets to act on what has come.
constexpr int kBatch = 256;
// Slots are given back to the writers of policy "none" in steps of this many.
constexpr std::uint64_t kFreeStep = 16;
constexpr std::uint32_t kSampleStep = 512, kLeastSampleStep = 64;
// Stalls and the age of the trace's buffer are looked at after this many polls of an empty mailbox.
constexpr std::uint64_t kPollsBetweenLooks = 2048;

template <typename T>
T read_payload(const std::byte* payload) {
    T value;
    std::memcpy(&value, payload, sizeof value);
    return value;
}

Payload payload_of(mailbox::Reader<>& reader, const wire::Header& header) {
    std::size_t contiguous = reader.contiguous();
    if (header.length <= contiguous) [[likely]]
        return {reader.payload(), header.length, nullptr, 0};
    return {reader.payload(), contiguous, reader.start(), header.length - contiguous};
}

}  // namespace

int Engine::progress() {
    if (failed_) return 0;
    if (!gate_.try_enter()) {
        idle_.turned_away();
        return 0;
    }
    int handled = 0;
    (void)contained([&] { handled = look(); },
                    [this](velo_status status, const char* text) { fail(status, text); });
    gate_.leave();
    return handled;
}

inline int Engine::look() {
    if (interceptor_.active()) {
        std::lock_guard lock(mutex_);
        interceptor_.look();
    }
    int handled = drain(velo_);
    if (limic_) handled += drain_other(*limic_);
    if (idle_.has_work()) {
        handled = idle_.run(handled);
    } else if (handled == 0 && idle_.sleeps()) {
        idle_.sleep();
    }
    if (handled > 0) {
        idle_.found_some();
    } else if (count_empty_poll() % kPollsBetweenLooks == 0) [[unlikely]] {
        look_around();
    }
    return handled;
}

int Engine::run(bool) {
    {
        std::lock_guard lock(mutex_);
        pending_.flush_all();
        assert_invariants();
    }
    pending_.call_back();
    return looks_left_ > 0 ? look_on() : 0;
}

// What the callbacks have sent waits behind what has left, and leaves with the next credits.
int Engine::look_on() {
    int handled = 0;
    for (; looks_left_ > 0 && observer_.any_stall() && !failed_; --looks_left_) {
        handled += drain_other(velo_);
        if (remote_.domain()) handled += remote_.run(true);
        {
            std::lock_guard lock(mutex_);
            pending_.flush_all();
        }
        pending_.call_back();
    }
    looks_left_ = 0;
    return handled;
}

// Only the thread that is in the gate counts.
inline std::uint64_t Engine::count_empty_poll() {
    const std::uint64_t polls = empty_polls_.load(std::memory_order_relaxed) + 1;
    empty_polls_.store(polls, std::memory_order_relaxed);
    return polls;
}

inline int Engine::drain(Domain& domain) {
    int handled = 0;
    batch_ = kBatch;
    while (handled < batch_ && !failed_) {
        const std::uint64_t word = domain.reader.word();
        int packets = 0;
        if (domain.reader.is_plain(word)) [[likely]]
            packets = retrieve_if_plain(domain, word);
        else if (domain.reader.is_plain_reference(word))
            packets = retrieve_reference_if_plain(domain, word);
        if (packets == 0) packets = domain.reader.is_header(word) ? retrieve_other(domain, word) : 0;
        if (packets == 0) break;
        handled += packets;
    }
    if (handled > 0) {
        domain.reader.publish();
    } else {
        release_delayed_credit(domain);
        domain.reader.fetch_awaited();
    }
    return handled;
}

int Engine::drain_other(Domain& domain) {
    return drain(domain);
}

void Engine::look_at_delayed_credit(Domain& domain) {
    std::lock_guard lock(mutex_);
    domain.ledger.look();
}

// Any run. Returns the number of packets, 0: it is not there yet.
int Engine::retrieve_other(Domain& domain, std::uint64_t word) {
    if (interceptor_.active()) {
        const fabric::Interceptor::Fate fate = interceptor_.arriving();
        if (fate == fabric::Interceptor::Fate::kHold) return 0;
        if (fate == fabric::Interceptor::Fate::kDrop) {
            const std::uint32_t packets =
                std::min(wire::Header::unpack(word).packets(), domain.reader.capacity());
            domain.reader.advance(packets);
            return static_cast<int>(packets);
        }
    }
    if (domain.reader.position() >= domain.next_sample) [[unlikely]]
        sample(domain);
    release_delayed_credit(domain);
    const int packets = handle(domain, word);
    if (!domain.limited && domain.reader.unpublished() >= kFreeStep) domain.reader.publish();
    return packets;
}

// CREDITs at the head of the mailbox: whoever sends without an end needs them before it polls, and nobody is
// called back for one. Under the mutex; not from within a callback, nor while another thread polls. What they
// let go is pushed here: so nothing may be queued for the peer whose message the caller is about to send,
// unless the caller is in the gate.
void Engine::take_credits() {
    if (interceptor_.active() || !velo_.limited || !gate_.try_enter()) return;
    struct Leaving {
        Gate& gate;
        ~Leaving() { gate.leave(); }
    } const leaving{gate_};
    for (;;) {
        const wire::Header header = wire::Header::unpack(velo_.reader.poll());
        if (header.kind != wire::PacketKind::kCredit || !header.plausible(velo_.senders)) break;
        velo_.ledger.look();
        retrieve_control(peers_.at(velo_.first_peer + header.source), header);
    }
}

bool Engine::is_quiet() const {
    return velo_.reader.poll() == 0 && (!limic_ || limic_->reader.poll() == 0) && remote_.is_quiet() &&
           (!contact_ || !contact_->has_rung()) && batches_.is_quiet();
}

// The senders' pointer is looked at only now and then: looking takes its line away from them.
void Engine::sample(Domain& domain) {
    const mailbox::Reader<>& reader = domain.reader;
    domain.next_sample = reader.position() + std::clamp(reader.capacity(), kLeastSampleStep, kSampleStep);
    if (domain.limited && buffers_.buffer_bytes() >= wire::kPayloadBytes)
        domain.plain_until = domain.next_sample;
    *domain.high_water = std::max(*domain.high_water, reader.occupancy());
    look_around();
}

int Engine::handle(Domain& domain, std::uint64_t word) {
    wire::Header header = wire::Header::unpack(word);
    if (!header.plausible(domain.senders)) refuse("an impossible packet is in the mailbox", header);
    Peer& peer = peers_.sender(domain.first_peer + header.source);
    if (header.kind == wire::PacketKind::kData) return retrieve_data<wire::PacketKind::kData>(peer, header);
    return handle_rarity(peer, header);
}

// What is not plain DATA.
int Engine::handle_rarity(Peer& peer, const wire::Header& header) {
    if (header.kind == wire::PacketKind::kBackloggedData)
        return retrieve_data<wire::PacketKind::kBackloggedData>(peer, header);

    std::lock_guard lock(mutex_);
    retrieve_control(peer, header);
    return 1;
}

// Under the mutex.
void Engine::retrieve_control(Peer& peer, const wire::Header& header) {
    const auto value = read_payload<std::uint32_t>(peer.domain.reader.payload());
    peer.domain.reader.advance(1);
    if (!peer.ledger().control_retrieved(peer, header.kind, value))
        refuse("a control packet that no correct peer sends", header);
    if (peer.ledger().contact_pending()) idle_.want();
    assert_invariants();
}

// The sender of a run that is plain, if it is known and nothing else is due; nullptr: look closer.
inline Peer* Engine::plain_sender(const Domain& domain, const wire::Header& header) {
    if (domain.reader.position() >= domain.plain_until || header.source >= domain.senders ||
        interceptor_.active()) [[unlikely]]
        return nullptr;
    Peer* const peer = peers_.find(domain.first_peer + header.source);
    if (peer == nullptr || peer->arriving != Incoming::State::kIdle) [[unlikely]]
        return nullptr;
    return peer;
}

// A message of a known peer in one piece, and nothing else to do with it: nearly all. What is done here is
// all that it needs. 0: nothing has been done.
inline int Engine::retrieve_if_plain(Domain& domain, std::uint64_t word) {
    const wire::Header header = wire::Header::unpack(word);
    Peer* const peer = plain_sender(domain, header);
    if (peer == nullptr) [[unlikely]]
        return 0;
    if (header.length <= wire::kPayloadBytes) return retrieve_plain(domain, *peer, header, 1);
    const std::uint32_t packets = wire::packets_in_run(header.length);
    if (!domain.reader.in_one_piece(packets) || header.length > buffers_.buffer_bytes()) [[unlikely]]
        return 0;
    return retrieve_plain(domain, *peer, header, packets);
}

inline int Engine::retrieve_plain(Domain& domain, Peer& peer, const wire::Header& header,
                                  std::uint32_t packets) {
    mailbox::Reader<>& reader = domain.reader;
    release_delayed_credit(domain);
    await_retrieval(peer, packets);
    hand_up(peer, header.tag, reader.payload(), header.length);
    reader.advance(packets);
    std::lock_guard lock(mutex_);
    account(peer, packets, false, 0);
    return static_cast<int>(packets);
}

// The same of one that went by reference inside the node.
int Engine::retrieve_reference_if_plain(Domain& domain, std::uint64_t word) {
    const wire::Header header = wire::Header::unpack(word);
    mailbox::Reader<>& reader = domain.reader;
    Peer* const peer = plain_sender(domain, header);
    if (peer == nullptr || header.length != sizeof(wire::Reference)) [[unlikely]]
        return 0;
    const auto reference = read_payload<wire::Reference>(reader.payload());
    if (!ReferenceReader::is_lent(peer->segment, reference) || reference.bytes > buffers_.buffer_bytes())
        [[unlikely]]
        return 0;
    release_delayed_credit(domain);
    const bool copies =
        header.tag != kListenerTag && reference_reader_.counts_as_streamed(*peer, reference.bytes);
    await_retrieval(*peer, 1);
    std::byte* const data = peer->segment.chunk(reference.place).data;
    reference_reader_.fetch_lines(*peer, data, reference);
    hand_up(*peer, header.tag, copies ? reference_reader_.copy_of(data, reference.bytes) : data,
            reference.bytes);
    ReferenceReader::release(*peer, reference);
    reader.advance(1);
    std::lock_guard lock(mutex_);
    account(*peer, 1, false, 0);
    return 1;
}

// What its lines can do while the run is looked at: the next is under way, or an answer is likely.
inline void Engine::await_retrieval(Peer& peer, std::uint32_t packets) {
    peer.domain.reader.fetch(packets);
    // Not with several threads: the place to prepare is moved under the lock.
    if (packets > 1 && peer.awaits_answer.load(std::memory_order_relaxed) && !config_.threads && rested(peer))
        peer.link.prepare(packets);
    peer.awaits_answer.store(false, std::memory_order_relaxed);
}

template <wire::PacketKind kKind>
inline int Engine::retrieve_data(Peer& peer, const wire::Header& header) {
    mailbox::Reader<>& reader = peer.domain.reader;
    std::uint32_t packets = header.packets();
    std::uint32_t credits = 0;
    if (peer.from_it.is_open()) [[unlikely]] {
        if (const int messages = batches_.read(peer, batch_); messages > 0) return messages;
        if (batch_ <= 0) return 0;
        if (peer.from_it.is_open()) refuse("a packet comes before the end of the batch before it", header);
    }
    await_retrieval(peer, packets);
    if (packets > reader.capacity() || !deliver(peer, header, payload_of(reader, header)))
        refuse("a packet does not belong to a message", header);
    if (header.flags & wire::kPiggyback) credits = reader.piggyback(header);
    reader.advance(packets);
    if (peer.policy().limited()) {
        std::lock_guard lock(mutex_);
        account(peer, packets, kKind == wire::PacketKind::kBackloggedData, credits);
    } else if (peer.domain.refusal != nullptr) {
        std::lock_guard lock(mutex_);
        count_retrieved(peer, packets);
    }
    if (peer.arriving == Incoming::State::kMessage || peer.arriving == Incoming::State::kRma) {
        release_delayed_credit(peer.domain);  // the rest of the message needs it
        packets += gather(peer);
    }
    return static_cast<int>(packets);
}

// As retrieve_data, for packets that have not been in the mailbox.
bool Engine::arrived(Peer& peer, const fabric::Delivery& delivery) {
    const bool limited = peer.policy().limited();
    const wire::Header header{delivery.kind, delivery.flags, delivery.tag, 0, 0, peer.source()};
    if (!deliver(peer, header, {delivery.data, delivery.bytes, nullptr, 0})) return false;
    peer.awaits_answer.store(false, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    if (limited)
        account(peer, delivery.packets, delivery.kind == wire::PacketKind::kBackloggedData, delivery.credits);
    else if (peer.domain.refusal != nullptr)
        count_retrieved(peer, delivery.packets);
    return true;
}

// Under the mutex.
inline void Engine::account(Peer& peer, std::uint32_t packets, bool waited, std::uint32_t credits) {
    const bool quiet = !waited && credits == 0 && peer.ledger().data_retrieved_if_quiet(peer, packets);
    if (!quiet && !peer.ledger().data_retrieved(peer, packets, waited, credits)) [[unlikely]]
        throw Failure(VELO_ERR_PROTOCOL, "a peer has sent more packets than it has credits for");
    assert_invariants();
}

// Under a policy that refuses by sender.
void Engine::count_retrieved(Peer& peer, std::uint32_t packets) {
    if (peer.is_remote()) return remote_.retrieved(peer, packets);
    fabric::shm::Acceptance::count(mailbox_.retrieved(peer.source()), packets);
}

// The middle runs of a message come in a row: takes as many as are there and for whose slots nothing is due.
// Returns the number of packets.
std::uint32_t Engine::gather(Peer& peer) {
    Incoming& incoming = peer.incoming;
    mailbox::Reader<>& reader = peer.domain.reader;
    std::uint8_t flags = peer.arriving == Incoming::State::kRma ? wire::kInternal : 0;
    std::unique_lock lock(mutex_);
    std::uint32_t quiet = std::min<std::uint32_t>(peer.ledger().quiet_packets(peer), kBatch);
    std::uint32_t packets = 0;
    for (;;) {
        std::uint64_t word = reader.poll();
        if (word == 0) break;
        wire::Header header = wire::Header::unpack(word);
        std::uint32_t run = header.packets();
        if (header.kind != wire::PacketKind::kData || header.flags != flags ||
            header.source != peer.source() || run > quiet - packets || run > reader.capacity() ||
            header.length > incoming.room)
            break;
        incoming.append(payload_of(reader, header));
        reader.advance(run);
        packets += run;
    }
    peer.ledger().data_retrieved_quietly(peer, packets);
    if (peer.domain.refusal != nullptr) count_retrieved(peer, packets);
    return packets;
}

inline void Engine::hand_up(Peer& peer, std::uint8_t tag, std::byte* data, std::size_t bytes) {
    if (tag == kListenerTag && listener_ != nullptr) return listener_->arrived(peer, data, bytes);
    arriving_ = peer.index;
    config_.message(config_.context, tag, data, bytes);
}

// False if the run does not fit what came before it.
inline bool Engine::deliver(Peer& peer, const wire::Header& header, const Payload& payload) {
    constexpr std::uint8_t kOneRun = wire::kFirst | wire::kLast;
    const bool first = header.flags & wire::kFirst;
    if (first != (peer.arriving == Incoming::State::kIdle)) return false;
    if ((header.flags & (kOneRun | wire::kInternal | wire::kReference)) == kOneRun && payload.more_bytes == 0)
        [[likely]] {
        if (payload.bytes > buffers_.buffer_bytes()) return false;
        hand_up(peer, header.tag, payload.data, payload.bytes);
        return true;
    }
    return deliver_part(peer, header, payload);
}

// What is not all of a message in one piece.
bool Engine::deliver_part(Peer& peer, const wire::Header& header, const Payload& payload) {
    if (header.flags & wire::kReference) {
        if (payload.bytes != sizeof(wire::Reference) || payload.more_bytes != 0) return false;
        const auto reference = read_payload<wire::Reference>(payload.data);
        std::byte* const data = ReferenceReader::data(peer.segment, reference, peers_.name_at(peer.index));
        if (header.flags & wire::kBatch) {
            if (reference.bytes < wire::batch_bytes(0)) return false;
            peer.tells_read(reference.read);
            batches_.follow(peer, reference, data);
            return true;
        }
        reference_reader_.fetch_lines(peer, data, reference);
        wire::Header plain = header;
        plain.flags &= static_cast<std::uint8_t>(~wire::kReference);
        const bool taken = deliver(peer, plain, {data, reference.bytes, nullptr, 0});
        ReferenceReader::release(peer, reference);
        return taken;
    }
    Incoming& incoming = peer.incoming;
    const bool first = header.flags & wire::kFirst;
    if (first ? !begin_message(peer, header, payload) : !incoming.append(payload)) return false;
    if (!(header.flags & wire::kLast)) return true;

    bool rma = peer.arriving == Incoming::State::kRma;
    peer.arriving = Incoming::State::kIdle;
    if (rma) {
        if (incoming.room != 0) return false;
        large_.finish(peer, incoming.rma);
        return true;
    }
    hand_up(peer, incoming.tag, incoming.buffer.get(), buffers_.buffer_bytes() - incoming.room);
    buffers_.give_back(std::move(incoming.buffer));
    return true;
}

// Of a batch: whole.
bool Engine::take_enclosed(Peer& peer, const wire::Enclosed& message, std::byte* data) {
    --batch_;
    peer.awaits_answer.store(false, std::memory_order_relaxed);
    wire::Header header{wire::PacketKind::kData, wire::kFirst | wire::kLast, message.tag, 0, 0, 0};
    header.flags |= message.flags & wire::kInternal;
    return deliver(peer, header, {data, message.bytes, nullptr, 0});
}

bool Engine::begin_message(Peer& peer, const wire::Header& header, Payload payload) {
    Incoming& incoming = peer.incoming;
    incoming.tag = header.tag;
    if (!(header.flags & wire::kInternal)) {
        peer.arriving = Incoming::State::kMessage;
        incoming.buffer = buffers_.take();
        incoming.to = incoming.buffer.get();
        incoming.room = buffers_.buffer_bytes();
        return incoming.append(payload);
    }
    // The first slot of a run is never cut by the end of the ring.
    if (payload.bytes < sizeof incoming.rma) return false;
    std::memcpy(&incoming.rma, payload.data, sizeof incoming.rma);
    rma::Placement placement;
    {
        std::lock_guard lock(mutex_);
        if (!large_.begin(peer.index, incoming.rma, &placement)) return false;
    }
    peer.arriving = Incoming::State::kRma;
    incoming.to = placement.data;
    incoming.room = placement.bytes;
    payload.data += sizeof incoming.rma;
    payload.bytes -= sizeof incoming.rma;
    return incoming.append(payload);
}

}  // namespace velo::endpoint
