#include "fabric/shm/segment.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <new>

#include "platform/failure.h"

namespace velo::fabric::shm {
namespace {

// How long to wait for a segment whose owner must publish it for another namespace first.
constexpr int kPublishPatienceMs = 20'000;
constexpr std::size_t kPageBytes = 4096;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

constexpr std::size_t directory_offset() {
    return round_up(sizeof(SegmentHeader), mailbox::kPointerSpacing);
}

std::size_t slots_offset(const flow::PolicyConfig& flow) {
    return round_up(directory_offset() + flow.total_peers() * sizeof(DirectoryEntry), kPageBytes);
}

std::string process_text(std::uint64_t name) {
    char text[48];
    std::snprintf(text, sizeof text, "[%" PRIu64 ",%" PRIu64 "]", name >> 32, name & 0xffffffff);
    return text;
}

void check(bool sane, const Address& address, const char* what) {
    if (!sane) {
        throw Failure(VELO_ERR_PROTOCOL, "the shared memory segment of process " +
                                             process_text(address.process_name) +
                                             " is not a valid Velo segment (" + what + ")");
    }
}

std::string differs(const char* parameter, const std::string& mine, const std::string& theirs) {
    return std::string("btl_velo_") + parameter + " must be the same in all processes, but it is " + mine +
           " in one and " + theirs + " in another";
}

}  // namespace

std::string difference(const Agreement& mine, const Agreement& theirs) {
    std::string policy(mine.flow_control, strnlen(mine.flow_control, sizeof mine.flow_control));
    std::string other(theirs.flow_control, strnlen(theirs.flow_control, sizeof theirs.flow_control));
    if (policy != other) return differs("flow_control", policy, other);

    struct Number {
        const char* parameter;
        std::uint64_t mine, theirs;
    };
    for (const Number& number : {Number{"slots_per_peer", mine.slots_per_peer, theirs.slots_per_peer},
                                 Number{"credit_slots", mine.credit_slots, theirs.credit_slots},
                                 Number{"piggyback", mine.piggyback, theirs.piggyback},
                                 Number{"eager_limit", mine.eager_limit, theirs.eager_limit},
                                 Number{"max_send_size", mine.max_message_bytes, theirs.max_message_bytes}}) {
        if (number.mine != number.theirs) {
            return differs(number.parameter, std::to_string(number.mine), std::to_string(number.theirs));
        }
    }
    return {};
}

std::size_t Segment::bytes_for(const flow::PolicyConfig& flow) {
    return round_up(slots_offset(flow) + std::size_t{flow.mailbox_slots()} * wire::kPacketBytes, kPageBytes);
}

Segment Segment::create(const std::string& directory, const Layout& layout, std::uint64_t* probe) {
    Segment segment;
    segment.flow_ = layout.flow;
    segment.file_ = platform::SharedFile::create(directory, bytes_for(layout.flow));
    *probe = segment.file_.address().nonce;
    segment.address_ = Address{Address::kMagic, layout.owner, reinterpret_cast<std::uint64_t>(probe),
                               segment.file_.address()};

    auto* header = new (segment.file_.data()) SegmentHeader{};
    header->nonce = segment.file_.address().nonce;
    header->owner = layout.owner;
    header->agreement = layout.agreement;
    header->peers = layout.flow.peers;
    header->spare_peers = layout.flow.spare_peers;
    header->data_slots = layout.flow.data_slots;
    header->capacity = layout.flow.mailbox_slots();
    header->directory_offset = directory_offset();
    header->slots_offset = slots_offset(layout.flow);
    for (std::uint32_t i = 0; i < layout.flow.total_peers(); ++i) {
        auto* entry = new (segment.directory() + i) DirectoryEntry{};
        entry->name.store(i < layout.flow.peers ? layout.node_peers[i] : DirectoryEntry::kFree,
                          std::memory_order_relaxed);
    }
    header->magic = Address::kMagic;
    return segment;
}

Segment Segment::attach(const Address& address) {
    check(address.magic == Address::kMagic, address, "another version of Velo");
    check(address.file.bytes >= sizeof(SegmentHeader), address, "too small");
    Segment segment;
    segment.address_ = address;
    segment.file_ = platform::SharedFile::open(address.file, kPublishPatienceMs);

    const SegmentHeader& header = segment.header();
    check(header.magic == Address::kMagic, address, "magic number");
    check(header.nonce == address.file.nonce && header.owner == address.process_name, address, "owner");
    flow::PolicyConfig flow;
    flow.peers = header.peers;
    flow.spare_peers = header.spare_peers;
    flow.data_slots = header.data_slots;
    flow.credit_slots = header.agreement.credit_slots;
    flow.piggyback = header.agreement.piggyback != 0;
    constexpr std::uint32_t kSane = 1U << 24;
    check(
        flow.peers < kSane && flow.spare_peers < kSane && flow.data_slots < kSane && flow.credit_slots <= 255,
        address, "counts");
    check(header.capacity == flow.mailbox_slots() && header.capacity > 0, address, "capacity");
    check(header.directory_offset == directory_offset() && header.slots_offset == slots_offset(flow) &&
              bytes_for(flow) == address.file.bytes,
          address, "layout");
    segment.flow_ = flow;
    return segment;
}

flow::PeerIndex Segment::claim(std::uint64_t name) {
    // Entries are taken in order and never given back, so that two claimers of one name meet at the same
    // entry.
    for (flow::PeerIndex i = 0; i < flow_.total_peers(); ++i) {
        std::uint64_t found = directory()[i].name.load(std::memory_order_acquire);
        if (found == DirectoryEntry::kFree &&
            directory()[i].name.compare_exchange_strong(found, name, std::memory_order_acq_rel)) {
            return i;
        }
        if (found == name) return i;
    }
    throw Failure(VELO_ERR_RESOURCE, "the mailbox of process " + process_text(address_.process_name) +
                                         " has no entry left for process " + process_text(name) +
                                         ": raise btl_velo_spare_peers (now " +
                                         std::to_string(flow_.spare_peers) +
                                         "), the number of processes of other jobs that it can serve");
}

void Segment::introduce(flow::PeerIndex index, const Address& sender) {
    DirectoryEntry& entry = directory()[index];
    if (entry.present.load(std::memory_order_acquire) != 0) return;
    entry.address = sender;
    entry.present.store(1, std::memory_order_release);
}

const Address* Segment::introduced(flow::PeerIndex index) const {
    const DirectoryEntry& entry = directory()[index];
    return entry.present.load(std::memory_order_acquire) != 0 ? &entry.address : nullptr;
}

std::uint64_t Segment::sender_name(flow::PeerIndex index) const {
    return directory()[index].name.load(std::memory_order_relaxed);
}

DirectoryEntry* Segment::directory() const {
    return reinterpret_cast<DirectoryEntry*>(file_.data() + directory_offset());
}

mailbox::Slot<>* Segment::slots() const {
    return reinterpret_cast<mailbox::Slot<>*>(file_.data() + slots_offset(flow_));
}

}  // namespace velo::fabric::shm
