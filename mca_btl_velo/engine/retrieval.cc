#include "engine/retrieval.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "engine/retrieve_now.h"
#include "platform/failure.h"

namespace velo::engine {
namespace {

// Slots are given back to the writers of policy "none" in steps of this many.
constexpr std::uint64_t kFreeStep = 16;
constexpr std::uint32_t kSampleStep = 512, kLeastSampleStep = 64;

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

int Retrieval::drain(Domain& domain) {
    return drain_now(domain);
}

void Retrieval::look_at_delayed_credit(Domain& domain) {
    std::lock_guard lock(mutex_);
    domain.ledger.look();
}

// Any run. Returns the number of packets, 0: it is not there yet.
int Retrieval::retrieve_other(Domain& domain, std::uint64_t word) {
    if (with_.faults.active()) {
        const fabric::Interceptor::Fate fate = with_.faults.arriving();
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

void Retrieval::take_credits(Domain& domain) {
    if (with_.faults.active() || !domain.limited || !with_.gate.try_enter()) return;
    struct Leaving {
        platform::Gate& gate;
        ~Leaving() { gate.leave(); }
    } const leaving{with_.gate};
    for (;;) {
        const wire::Header header = wire::Header::unpack(domain.reader.poll());
        if (header.kind != wire::PacketKind::kCredit || !header.plausible(domain.senders)) break;
        domain.ledger.look();
        retrieve_control(peers_.at(domain.first_peer + header.source), header);
    }
}

// The senders' pointer is looked at only now and then: looking takes its line away from them.
void Retrieval::sample(Domain& domain) {
    const mailbox::Reader<>& reader = domain.reader;
    domain.next_sample = reader.position() + std::clamp(reader.capacity(), kLeastSampleStep, kSampleStep);
    if (domain.limited && buffers_.buffer_bytes() >= wire::kPayloadBytes)
        domain.plain_until = domain.next_sample;
    *domain.high_water = std::max(*domain.high_water, reader.occupancy());
    with_.idle.look_around();
}

int Retrieval::handle(Domain& domain, std::uint64_t word) {
    wire::Header header = wire::Header::unpack(word);
    if (!header.plausible(domain.senders)) refuse("an impossible packet is in the mailbox", header);
    Peer& peer = peers_.sender(domain.first_peer + header.source);
    if (header.kind == wire::PacketKind::kData) return retrieve_data<wire::PacketKind::kData>(peer, header);
    return handle_rarity(peer, header);
}

// What is not plain DATA.
int Retrieval::handle_rarity(Peer& peer, const wire::Header& header) {
    if (header.kind == wire::PacketKind::kBackloggedData)
        return retrieve_data<wire::PacketKind::kBackloggedData>(peer, header);

    std::lock_guard lock(mutex_);
    retrieve_control(peer, header);
    return 1;
}

// Under the mutex.
void Retrieval::retrieve_control(Peer& peer, const wire::Header& header) {
    const auto value = read_payload<std::uint32_t>(peer.domain.reader.payload());
    peer.domain.reader.advance(1);
    if (!peer.ledger().control_retrieved(peer, header.kind, value))
        refuse("a control packet that no correct peer sends", header);
    if (peer.ledger().contact_pending()) with_.idle.want();
    assert_invariants();
}

// Retrieves a plain REF: hands the message up in place, in the sender's outbox. 0: no effect.
int Retrieval::try_retrieve_reference_fast(Domain& domain, std::uint64_t word) {
    const wire::Header header = wire::Header::unpack(word);
    mailbox::Reader<>& reader = domain.reader;
    Peer* const peer = plain_sender(domain, header);
    if (peer == nullptr || header.length != sizeof(wire::Reference)) [[unlikely]]
        return 0;
    const auto reference = read_payload<wire::Reference>(reader.payload());
    if (!ReferenceReader::is_chunk(peer->segment, reference) || reference.bytes > buffers_.buffer_bytes())
        [[unlikely]]
        return 0;
    const std::uint32_t credits = header.flags & wire::kPiggyback ? reader.piggyback(header) : 0;
    release_delayed_credit(domain);
    const bool copies =
        header.tag != kSinkTag && reference_reader_.counts_as_streamed(*peer, reference.bytes);
    await_retrieval(*peer, 1);
    std::byte* const data = peer->segment.chunk(reference.place);
    reference_reader_.fetch_lines(*peer, data, reference);
    hand_up(*peer, header.tag, copies ? reference_reader_.copy_of(data, reference.bytes) : data,
            reference.bytes);
    reference_reader_.release(*peer);
    reader.advance(1);
    std::lock_guard lock(mutex_);
    account(*peer, 1, false, credits);
    return 1;
}

template <wire::PacketKind kKind>
inline int Retrieval::retrieve_data(Peer& peer, const wire::Header& header) {
    mailbox::Reader<>& reader = peer.domain.reader;
    std::uint32_t packets = header.packets();
    std::uint32_t credits = 0;
    if (peer.batch_in.is_open()) [[unlikely]] {
        if (const int messages = with_.batches.read(peer, batch_); messages > 0) return messages;
        if (batch_ <= 0) return 0;
        if (peer.batch_in.is_open()) refuse("a packet comes before the end of the batch before it", header);
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
bool Retrieval::arrived(Peer& peer, const fabric::Delivery& delivery) {
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

// Under a policy that refuses by sender.
void Retrieval::count_retrieved(Peer& peer, std::uint32_t packets) {
    if (peer.is_remote()) return with_.remote.retrieved(peer, packets);
    fabric::shm::Acceptance::count(with_.mailbox.retrieved(peer.source()), packets);
}

// The middle runs of a message come in a row: takes as many as are there and for whose slots nothing is due.
// Returns the number of packets.
std::uint32_t Retrieval::gather(Peer& peer) {
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

// False if the run does not fit what came before it.
inline bool Retrieval::deliver(Peer& peer, const wire::Header& header, const Payload& payload) {
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
bool Retrieval::deliver_part(Peer& peer, const wire::Header& header, const Payload& payload) {
    if (header.flags & wire::kReference) {
        if (payload.bytes != sizeof(wire::Reference) || payload.more_bytes != 0) return false;
        const auto reference = read_payload<wire::Reference>(payload.data);
        std::byte* const data = ReferenceReader::data(peer.segment, reference, peers_.name_at(peer.index));
        if (header.flags & wire::kBatch) {
            if (reference.bytes < wire::batch_bytes(0)) return false;
            peer.sent_references.tell(reference.read);
            with_.batches.follow(peer, data, reference.bytes);
            return true;
        }
        reference_reader_.fetch_lines(peer, data, reference);
        wire::Header plain = header;
        plain.flags &= static_cast<std::uint8_t>(~wire::kReference);
        const bool taken = deliver(peer, plain, {data, reference.bytes, nullptr, 0});
        reference_reader_.release(peer);
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
        with_.large.finish(peer, incoming.rma);
        return true;
    }
    hand_up(peer, incoming.tag, incoming.buffer.get(), buffers_.buffer_bytes() - incoming.room);
    buffers_.give_back(std::move(incoming.buffer));
    return true;
}

// Of a batch: whole.
bool Retrieval::take_enclosed(Peer& peer, const wire::Enclosed& message, std::byte* data) {
    --batch_;
    peer.awaits_answer.store(false, std::memory_order_relaxed);
    wire::Header header{wire::PacketKind::kData, wire::kFirst | wire::kLast, message.tag, 0, 0, 0};
    header.flags |= message.flags & wire::kInternal;
    return deliver(peer, header, {data, message.bytes, nullptr, 0});
}

bool Retrieval::begin_message(Peer& peer, const wire::Header& header, Payload payload) {
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
        if (!with_.large.begin(peer.index, incoming.rma, &placement)) return false;
    }
    peer.arriving = Incoming::State::kRma;
    incoming.to = placement.data;
    incoming.room = placement.bytes;
    payload.data += sizeof incoming.rma;
    payload.bytes -= sizeof incoming.rma;
    return incoming.append(payload);
}

void Retrieval::departed(Peer& peer) {
    Incoming& incoming = peer.incoming;
    if (peer.arriving == Incoming::State::kMessage) buffers_.give_back(std::move(incoming.buffer));
    peer.arriving = Incoming::State::kIdle;
}

void Retrieval::gone(Peer& peer) {
    if (sink_ != nullptr) sink_->departed(peer);
}

void Retrieval::refuse(const char* what, const wire::Header& header) {
    throw Failure(VELO_ERR_PROTOCOL, what + (": " + wire::to_string(header)));
}

}  // namespace velo::engine
