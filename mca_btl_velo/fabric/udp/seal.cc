#include "fabric/udp/seal.h"

namespace velo::fabric::udp {
namespace {

using multicast::Ack;
using multicast::Datagram;
using multicast::Kind;

// In the order of this machine: all processes of a job have the same.
struct Header {
    static constexpr std::uint32_t kMagic = 0x4d4c4556;  // "VELM"
    static constexpr std::uint8_t kVersion = 1;

    std::uint32_t magic = kMagic;
    std::uint8_t version = kVersion;
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;  // 1: again, or heard; above it: the call
    std::uint8_t acks = 0;
    std::uint64_t tag = 0;
    std::uint32_t from = 0;
    std::uint32_t stream = 0;
    std::uint32_t sequence = 0;
    std::uint32_t low = 0;
    std::uint64_t missing = 0;
};
static_assert(sizeof(Header) == kHeaderBytes);

struct Entry {
    std::uint32_t to, stream, next, slowest;
};
static_assert(sizeof(Entry) == kAckBytes && sizeof(Content) % 8 == 0);

bool has_data(const Letter& letter) {
    return letter.call == Call::kNone && letter.datagram.kind == Kind::kData;
}

}  // namespace

std::size_t seal(const SipHash& hash, const Letter& letter, std::byte* room) {
    const Datagram& d = letter.datagram;
    Header header;
    header.kind = static_cast<std::uint8_t>(d.kind);
    header.flags = static_cast<std::uint8_t>(static_cast<unsigned>(letter.call) << 1 |
                                             (letter.call == Call::kNone ? d.again : letter.heard));
    header.acks = d.acks;
    header.from = letter.from;
    header.stream = d.stream;
    header.sequence = d.sequence;
    header.low = d.low;
    header.missing = d.missing;
    std::size_t bytes = sizeof header;
    for (std::size_t i = 0; i < d.acks; ++i, bytes += sizeof(Entry)) {
        const Entry entry{d.ack[i].to, d.ack[i].stream, d.ack[i].next, d.ack[i].slowest};
        std::memcpy(room + bytes, &entry, sizeof entry);
    }
    if (has_data(letter)) {
        std::memcpy(room + bytes, &letter.content, sizeof letter.content);
        bytes += sizeof letter.content;
    }
    std::memcpy(room, &header, sizeof header);
    header.tag = hash({{room, bytes}, letter.payload});
    std::memcpy(room, &header, sizeof header);
    return bytes;
}

std::optional<Letter> opened(const SipHash& hash, std::span<const std::byte> bytes) {
    Header header;
    if (bytes.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != Header::kMagic || header.version != Header::kVersion) return std::nullopt;
    const std::uint64_t tag = header.tag;
    header.tag = 0;
    const auto* first = reinterpret_cast<const std::byte*>(&header);
    if (hash({{first, sizeof header}, bytes.subspan(sizeof header)}) != tag) return std::nullopt;
    if (header.acks > Datagram::kMostAcks || header.kind > static_cast<std::uint8_t>(Kind::kProbe) ||
        header.flags >> 1 > static_cast<unsigned>(Call::kNoUse))
        return std::nullopt;
    Letter letter;
    letter.call = static_cast<Call>(header.flags >> 1);
    letter.from = header.from;
    Datagram& d = letter.datagram;
    d.kind = static_cast<Kind>(header.kind);
    (letter.call == Call::kNone ? d.again : letter.heard) = (header.flags & 1) != 0;
    d.acks = header.acks;
    d.stream = header.stream;
    d.sequence = header.sequence;
    d.low = header.low;
    d.missing = header.missing;
    std::size_t at = sizeof header;
    if (bytes.size() < at + d.acks * sizeof(Entry) + (has_data(letter) ? sizeof letter.content : 0))
        return std::nullopt;
    for (std::size_t i = 0; i < d.acks; ++i, at += sizeof(Entry)) {
        Entry entry;
        std::memcpy(&entry, bytes.data() + at, sizeof entry);
        d.ack[i] = {entry.to, entry.stream, entry.next, entry.slowest};
    }
    if (has_data(letter)) {
        std::memcpy(&letter.content, bytes.data() + at, sizeof letter.content);
        letter.payload = bytes.subspan(at + sizeof letter.content);
    }
    return letter;
}

}  // namespace velo::fabric::udp
