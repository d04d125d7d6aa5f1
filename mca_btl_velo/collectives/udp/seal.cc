#include "collectives/udp/seal.h"

#include <algorithm>

namespace velo::fabric::udp {
namespace {

using multicast::Ack;
using multicast::Datagram;
using multicast::Kind;

// In the order of this machine: all processes of a job have the same.
struct Header {
    static constexpr std::uint32_t kMagic = 0x4d4c4556;  // "VELM"
    static constexpr std::uint8_t kVersion = 3;

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

struct Digest {
    std::uint64_t low, high;
};

__extension__ using Word128 = unsigned __int128;

Digest digest(const std::uint64_t* key, std::span<const std::byte> bytes) {
    const auto product = [](const std::uint64_t* by, const std::byte* from) {
        std::uint64_t words[2];
        std::memcpy(words, from, sizeof words);
        return Word128{words[0] + by[0]} * Word128{words[1] + by[1]};
    };
    Word128 sum = 0, other = 0;
    std::size_t at = 0;
    for (; at + 32 <= bytes.size(); at += 32, key += 4) {
        sum += product(key, bytes.data() + at);
        other += product(key + 2, bytes.data() + at + 16);
    }
    sum += other;
    for (; at + 16 <= bytes.size(); at += 16, key += 2) sum += product(key, bytes.data() + at);
    if (at < bytes.size()) {
        std::array<std::byte, 16> last{};
        std::memcpy(last.data(), bytes.data() + at, bytes.size() - at);
        sum += product(key, last.data());
    }
    return {static_cast<std::uint64_t>(sum), static_cast<std::uint64_t>(sum >> 64)};
}

// Bytes in front of the payload.
std::size_t head_bytes(bool data, std::size_t acks) {
    return data ? kMostHeaderBytes : kHeaderBytes + acks * sizeof(Entry);
}

bool is_data(Call call, Kind kind) {
    return call == Call::kNone && kind == Kind::kData;
}

}  // namespace

Sealer::Sealer(const Key& key) : hash_(key) {
    for (std::uint64_t i = 0; i < words_.size(); ++i) words_[i] = hash_({std::as_bytes(std::span(&i, 1))});
}

std::uint64_t Sealer::tag(std::span<const std::byte> head, std::span<const std::byte> payload) const {
    static_assert(kMostHeaderBytes <= kBlockBytes);
    std::array<Digest, 1 + kMostPayloadBytes / kBlockBytes> digests;
    std::size_t count = 0;
    digests[count++] = digest(words_.data(), head);
    for (std::size_t at = 0; at < payload.size(); at += kBlockBytes)
        digests[count++] =
            digest(words_.data(), payload.subspan(at, std::min(kBlockBytes, payload.size() - at)));
    const std::uint64_t lengths = head.size() << 32 | payload.size();
    return hash_({std::as_bytes(std::span(digests).first(count)), std::as_bytes(std::span(&lengths, 1))});
}

std::size_t seal(const Sealer& sealer, const Letter& letter, std::byte* room) {
    const Datagram& d = letter.datagram;
    const bool data = is_data(letter.call, d.kind);
    const std::size_t bytes = head_bytes(data, d.acks);
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
    std::memset(room, 0, bytes);
    for (std::size_t i = 0; i < d.acks; ++i) {
        const Entry entry{d.ack[i].to, d.ack[i].stream, d.ack[i].next, d.ack[i].slowest};
        std::memcpy(room + kHeaderBytes + i * sizeof entry, &entry, sizeof entry);
    }
    if (data) std::memcpy(room + bytes - sizeof letter.content, &letter.content, sizeof letter.content);
    std::memcpy(room, &header, sizeof header);
    header.tag = sealer.tag({room, bytes}, letter.payload);
    std::memcpy(room, &header, sizeof header);
    return bytes;
}

std::optional<Letter> opened(const Sealer& sealer, std::span<const std::byte> bytes) {
    Header header;
    if (bytes.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != Header::kMagic || header.version != Header::kVersion ||
        header.acks > Datagram::kMostAcks || header.kind > static_cast<std::uint8_t>(Kind::kProbe) ||
        header.flags >> 1 > static_cast<unsigned>(Call::kNoUse))
        return std::nullopt;
    Letter letter;
    letter.call = static_cast<Call>(header.flags >> 1);
    letter.from = header.from;
    Datagram& d = letter.datagram;
    d.kind = static_cast<Kind>(header.kind);
    const bool data = is_data(letter.call, d.kind);
    const std::size_t before = head_bytes(data, header.acks);
    if (bytes.size() < before || bytes.size() - before > (data ? kMostPayloadBytes : 0)) return std::nullopt;
    std::array<std::byte, kMostHeaderBytes> head;
    std::memcpy(head.data(), bytes.data(), before);
    std::memset(head.data() + offsetof(Header, tag), 0, sizeof header.tag);
    letter.payload = bytes.subspan(before);
    if (sealer.tag({head.data(), before}, letter.payload) != header.tag) return std::nullopt;
    (letter.call == Call::kNone ? d.again : letter.heard) = (header.flags & 1) != 0;
    d.acks = header.acks;
    d.stream = header.stream;
    d.sequence = header.sequence;
    d.low = header.low;
    d.missing = header.missing;
    for (std::size_t i = 0; i < d.acks; ++i) {
        Entry entry;
        std::memcpy(&entry, bytes.data() + kHeaderBytes + i * sizeof entry, sizeof entry);
        d.ack[i] = {entry.to, entry.stream, entry.next, entry.slowest};
    }
    if (data)
        std::memcpy(&letter.content, bytes.data() + before - sizeof letter.content, sizeof letter.content);
    return letter;
}

}  // namespace velo::fabric::udp
