#include "rma/rma.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "fabric/shm/share_cell.h"
#include "rma/atomic.h"

namespace velo::rma {
namespace {

constexpr std::uint64_t kPartBytes = 128UL * 1024;
// Past the mailbox small messages have a way of their own, and each part costs a round trip.
constexpr std::uint64_t kLargePartBytes = 8UL * 1024 * 1024;

}  // namespace

// Kept until it has been sent. The velo_send comes first: `done` gets a pointer to it.
struct Rma::Message {
    velo_send send{};
    MessageHeader header{};
    Rma* owner = nullptr;
    Message* next = nullptr;
    Message* previous = nullptr;

    void unlink() {
        (previous != nullptr ? previous->next : owner->in_flight_) = next;
        if (next != nullptr) next->previous = previous;
    }
};

const std::size_t Rma::kBytesPerPeer = sizeof(Access);

Rma::Rma(const singlecopy::Mechanisms& mechanisms, std::uint32_t peers, Poster& poster)
    : mechanisms_(mechanisms), poster_(poster), access_(peers) {}

Rma::~Rma() {
    for (Message* message = in_flight_; message != nullptr;) delete std::exchange(message, message->next);
}

void Rma::connect(PeerIndex peer, const singlecopy::RemoteProcess& process) {
    if (access_[peer] == nullptr) access_[peer] = std::make_unique<Access>(process);
}

void Rma::connect_past_mailbox(PeerIndex peer) {
    access_[peer] = std::make_unique<Access>(singlecopy::RemoteProcess{});
    access_[peer]->probed = true;
    access_[peer]->past_mailbox = true;
}

std::uint64_t Rma::part_bytes(PeerIndex peer) const {
    return access_[peer] != nullptr && access_[peer]->past_mailbox ? kLargePartBytes : kPartBytes;
}

singlecopy::RemoteMemory* Rma::memory_of(PeerIndex peer) {
    if (access_[peer] == nullptr) return nullptr;
    Access& access = *access_[peer];
    if (!access.probed) access.memory = mechanisms_.reach(access.process);
    access.probed = true;
    return access.memory.get();
}

void Rma::ask_for_help(PeerIndex peer, const void* local, std::uint64_t remote, std::uint64_t bytes,
                       std::uint32_t ticket) {
    MessageHeader header{};
    header.operation = Operation::kHelp;
    header.address = remote;
    header.bytes = bytes;
    header.position = reinterpret_cast<std::uint64_t>(local);
    header.compare = ticket;
    post(peer, header, nullptr, 0);
}

void Rma::start(Direction direction, PeerIndex peer, void* local, std::uint64_t remote, std::uint64_t bytes,
                Completion completion) {
    std::uint64_t id = next_id_++;
    Transfer& transfer = transfers_[id];
    Operation operation = direction == Direction::kGet ? Operation::kGet : Operation::kPut;
    transfer = Transfer{peer, operation, static_cast<std::byte*>(local), remote, bytes, 0, 0, completion, {}};
    request_part(id, transfer);  // an empty transfer is one empty part
    for (std::size_t i = 1; i < kPartsAhead && transfer.requested < bytes; ++i) request_part(id, transfer);
}

void Rma::request_part(std::uint64_t id, Transfer& transfer) {
    MessageHeader header{};
    header.operation = transfer.operation;
    header.id = id;
    header.address = transfer.remote + transfer.requested;
    header.bytes = std::min(part_bytes(transfer.peer), transfer.bytes - transfer.requested);
    header.position = transfer.requested;
    *transfer.find(0, Part::State::kNone) = {header.position, header.bytes, Part::State::kAsked};
    const std::byte* data = transfer.local + transfer.requested;
    transfer.requested += header.bytes;
    bool carries = transfer.operation == Operation::kPut;
    post(transfer.peer, header, carries ? data : nullptr, carries ? header.bytes : 0);
}

velo_status Rma::start_atomic(PeerIndex peer, velo_atomic operation, unsigned width, std::uint64_t remote,
                              std::uint64_t operand, std::uint64_t compare, Completion completion) {
    if (!atomic_valid(operation, width, remote)) return VELO_ERR_UNSUPPORTED;
    std::uint64_t id = next_id_++;
    transfers_[id] = Transfer{peer, Operation::kAtomic, nullptr, remote, 0, 0, 0, completion, {}};
    MessageHeader header{};
    header.operation = Operation::kAtomic;
    header.atomic = static_cast<std::uint8_t>(operation);
    header.width = static_cast<std::uint8_t>(width);
    header.id = id;
    header.address = remote;
    header.operand = operand;
    header.compare = compare;
    post(peer, header, nullptr, 0);
    return VELO_QUEUED;
}

void Rma::post(PeerIndex to, const MessageHeader& header, const void* data, std::uint64_t bytes) {
    auto* message = new Message;
    message->header = header;
    message->owner = this;
    message->next = in_flight_;
    if (in_flight_ != nullptr) in_flight_->previous = message;
    in_flight_ = message;
    message->send.part[0] = &message->header;
    message->send.bytes[0] = sizeof message->header;
    message->send.part[1] = data;
    message->send.bytes[1] = bytes;
    message->send.flags = wire::kInternal;
    message->send.done = [](velo_send* send, velo_status) {
        auto* sent = reinterpret_cast<Message*>(send);
        sent->unlink();
        delete sent;
    };
    static_assert(offsetof(Message, send) == 0);
    poster_.post(to, &message->send);
}

Rma::Transfer* Rma::find(PeerIndex peer, std::uint64_t id, Operation operation) {
    auto found = transfers_.find(id);
    if (found == transfers_.end()) return nullptr;
    Transfer& transfer = found->second;
    return transfer.peer == peer && transfer.operation == operation ? &transfer : nullptr;
}

Rma::Part* Rma::Transfer::find(std::uint64_t position, Part::State state) {
    for (Part& part : parts) {
        if (part.state == state && (part.position == position || state == Part::State::kNone)) return &part;
    }
    return nullptr;
}

// The transfer that a reply with this header belongs to; nullptr if nothing like it was asked for, or if it
// has come already.
Rma::Transfer* Rma::begin_reply(PeerIndex peer, const MessageHeader& header, Operation operation) {
    Transfer* transfer = find(peer, header.id, operation);
    if (transfer == nullptr) return nullptr;
    Part* part = transfer->find(header.position, Part::State::kAsked);
    if (part == nullptr || part->bytes != header.bytes) return nullptr;
    part->state = Part::State::kArriving;
    return transfer;
}

bool Rma::begin(PeerIndex peer, const MessageHeader& header, Placement* placement) {
    *placement = Placement{};
    switch (header.operation) {
        case Operation::kGet:
            return header.bytes <= part_bytes(peer);
        case Operation::kPut:
            *placement = Placement{reinterpret_cast<std::byte*>(header.address), header.bytes};
            return header.bytes <= part_bytes(peer);
        case Operation::kGetReply: {
            Transfer* transfer = begin_reply(peer, header, Operation::kGet);
            if (transfer == nullptr) return false;
            *placement = Placement{transfer->local + header.position, header.bytes};
            return true;
        }
        case Operation::kPutReply:
            return begin_reply(peer, header, Operation::kPut) != nullptr;
        case Operation::kAtomic:
            return atomic_valid(header.atomic, header.width, header.address);
        case Operation::kAtomicReply:
            return find(peer, header.id, Operation::kAtomic) != nullptr;
        case Operation::kHelp:
            return (header.compare & 0xff) < fabric::shm::kShareCells;
    }
    return false;
}

Completion Rma::finish(PeerIndex peer, const MessageHeader& header) {
    MessageHeader reply = header;
    reply.status = VELO_OK;
    switch (header.operation) {
        case Operation::kGet:
            reply.operation = Operation::kGetReply;
            post(peer, reply, reinterpret_cast<const void*>(header.address), header.bytes);
            return {};
        case Operation::kPut:
            reply.operation = Operation::kPutReply;
            post(peer, reply, nullptr, 0);
            return {};
        case Operation::kAtomic:
            reply.operation = Operation::kAtomicReply;
            reply.operand = atomic_execute(static_cast<velo_atomic>(header.atomic), header.width,
                                           header.address, header.operand, header.compare);
            post(peer, reply, nullptr, 0);
            return {};
        case Operation::kHelp:
            return {};
        case Operation::kGetReply:
        case Operation::kPutReply:
            return part_arrived(header);
        case Operation::kAtomicReply: {
            Completion completion = transfers_[header.id].completion;
            completion.result = header.operand;
            transfers_.erase(header.id);
            return completion;
        }
    }
    return {};
}

void Rma::departed(PeerIndex peer, std::vector<Completion>* lost) {
    std::erase_if(transfers_, [&](const auto& entry) {
        const Transfer& transfer = entry.second;
        if (transfer.peer != peer) return false;
        lost->push_back(transfer.completion);
        lost->back().status = VELO_ERR_REMOTE;
        return true;
    });
    access_[peer].reset();
}

Completion Rma::part_arrived(const MessageHeader& header) {
    Transfer& transfer = transfers_[header.id];
    transfer.arrived += header.bytes;
    transfer.find(header.position, Part::State::kArriving)->state = Part::State::kNone;
    if (transfer.requested < transfer.bytes) {
        request_part(header.id, transfer);
        return {};
    }
    if (transfer.arrived < transfer.bytes) return {};
    Completion completion = transfer.completion;
    transfers_.erase(header.id);
    return completion;
}

}  // namespace velo::rma
