// What every datagram of a multicast group is sealed with, and where a job's group is.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "collectives/udp/place.h"
#include "collectives/udp/seal.h"

namespace velo::fabric::udp {
namespace {

Key counted_key() {
    Key key;
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
    return key;
}

std::vector<std::byte> counted(std::size_t bytes) {
    std::vector<std::byte> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(i);
    return all;
}

std::vector<std::byte> text_of(std::size_t bytes) {
    std::vector<std::byte> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(i * 151 + i / 256 * 89 + 200);
    return all;
}

// The reference implementation's vectors (vectors_sip64), of texts 00 01 02 ... of 0 to 15 and of 63 bytes.
TEST(SipHashTest, IsThatOfThePublishedVectors) {
    const std::uint64_t expected[] = {
        0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
        0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
        0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
        0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5};
    const SipHash hash(counted_key());
    for (std::size_t bytes = 0; bytes < std::size(expected); ++bytes)
        EXPECT_EQ(hash({counted(bytes)}), expected[bytes]) << bytes;
    EXPECT_EQ(hash({counted(63)}), 0x958a324ceb064572);
}

TEST(SipHashTest, OfPartsIsThatOfTheWhole) {
    const SipHash hash(counted_key());
    const std::vector<std::byte> all = counted(61);
    const std::span<const std::byte> whole(all);
    EXPECT_EQ(hash({whole.first(24), whole.subspan(24, 16), whole.subspan(40)}), hash({whole}));
    EXPECT_EQ(hash({whole, {}}), hash({whole}));
}

// Of the definition, in halves of words: (m1 + k1)(m2 + k2) + ..., of a text of 16, 40 and 2000 bytes.
TEST(SealerTest, TagsByTheDigestsThatNhDefines) {
    const SipHash hash(counted_key());
    const auto word = [](std::span<const std::byte> bytes, std::size_t at) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < 8 && at + i < bytes.size(); ++i)
            value |= std::to_integer<std::uint64_t>(bytes[at + i]) << 8 * i;
        return value;
    };
    const auto key = [&](std::uint64_t i) { return hash({std::as_bytes(std::span(&i, 1))}); };
    const auto digest = [&](std::span<const std::byte> bytes) {
        std::uint64_t low = 0, high = 0;
        for (std::size_t at = 0; at < bytes.size(); at += 16) {
            const std::uint64_t a = word(bytes, at) + key(at / 8), b = word(bytes, at + 8) + key(at / 8 + 1);
            const std::uint64_t a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
            const std::uint64_t middle = (a0 * b0 >> 32) + (a1 * b0 & 0xffffffff) + a0 * b1;
            const std::uint64_t product_low = a * b;
            const std::uint64_t product_high = a1 * b1 + (a1 * b0 >> 32) + (middle >> 32);
            low += product_low;
            high += product_high + (low < product_low);
        }
        return std::pair(low, high);
    };
    const Sealer sealer(counted_key());
    const std::vector<std::byte> head = counted(40);
    for (const std::size_t bytes : {0UL, 16UL, 40UL, 1024UL, 2000UL}) {
        const std::vector<std::byte> payload = text_of(bytes);
        std::vector<std::uint64_t> words;
        const auto append = [&](std::span<const std::byte> block) {
            const auto [low, high] = digest(block);
            words.insert(words.end(), {low, high});
        };
        append(head);
        for (std::size_t at = 0; at < bytes; at += 1024)
            append(std::span(payload).subspan(at, std::min<std::size_t>(1024, bytes - at)));
        words.push_back(std::uint64_t{40} << 32 | bytes);
        EXPECT_EQ(sealer.tag(head, payload), hash({std::as_bytes(std::span(words))})) << bytes;
    }
}

Letter data_letter(std::span<const std::byte> payload) {
    Letter letter;
    letter.from = 3;
    letter.datagram.kind = multicast::Kind::kData;
    letter.datagram.again = true;
    letter.datagram.stream = 3;
    letter.datagram.sequence = 0xfffffffe;
    letter.datagram.low = 0xfffffff0;
    letter.datagram.acks = 2;
    letter.datagram.ack[0] = {1, 2, 77, 9};
    letter.datagram.ack[1] = {0, 5, 78, 4};
    letter.content = {1ULL << 40, 9ULL << 40, 5000, 1400};
    letter.payload = payload;
    return letter;
}

std::vector<std::byte> sealed(const Sealer& sealer, const Letter& letter) {
    std::vector<std::byte> bytes(kMostHeaderBytes);
    bytes.resize(seal(sealer, letter, bytes.data()));
    bytes.insert(bytes.end(), letter.payload.begin(), letter.payload.end());
    return bytes;
}

TEST(SealTest, WhatIsSealedIsOpenedAsItWas) {
    const Sealer sealer(counted_key());
    const std::vector<std::byte> payload = counted(1399);
    const Letter letter = data_letter(payload);
    const std::vector<std::byte> bytes = sealed(sealer, letter);
    const std::optional<Letter> back = opened(sealer, bytes);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->from, letter.from);
    EXPECT_EQ(back->datagram, letter.datagram);
    EXPECT_EQ(back->content, letter.content);
    EXPECT_TRUE(std::ranges::equal(back->payload, payload));

    Letter nack;
    nack.datagram.kind = multicast::Kind::kNack;
    nack.datagram.missing = 0x8000000000000001;
    EXPECT_EQ(opened(sealer, sealed(sealer, nack))->datagram, nack.datagram);
    Letter answer;
    answer.call = Call::kAnswer;
    answer.heard = true;
    EXPECT_EQ(opened(sealer, sealed(sealer, answer))->call, Call::kAnswer);
    EXPECT_TRUE(opened(sealer, sealed(sealer, answer))->heard);
}

TEST(SealTest, OneBitOfDamageAnywhereIsSeen) {
    const Sealer sealer(counted_key());
    const std::vector<std::byte> payload = counted(19);
    std::vector<std::byte> bytes = sealed(sealer, data_letter(payload));
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_FALSE(opened(sealer, bytes).has_value()) << "bit " << bit;
        bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
    EXPECT_TRUE(opened(sealer, bytes).has_value());
}

TEST(SealTest, NeitherAnotherKeyNorAnotherLengthOpens) {
    const Sealer sealer(counted_key());
    Key other = counted_key();
    other[7] ^= std::byte{1};
    const std::vector<std::byte> payload = counted(19);
    const std::vector<std::byte> bytes = sealed(sealer, data_letter(payload));
    EXPECT_FALSE(opened(Sealer(other), bytes).has_value());
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(opened(sealer, std::span(bytes).first(length)).has_value()) << length;
}

// With the key, too, nothing outside of the bytes is read.
TEST(SealTest, MoreEntriesThanThereAreBytesIsNoLetter) {
    const Sealer sealer(counted_key());
    Letter ack;
    ack.datagram.acks = 1;
    std::vector<std::byte> bytes = sealed(sealer, ack);
    for (const unsigned entries : {2U, 4U, 5U, 8U, 9U, 255U}) {
        bytes[7] = static_cast<std::byte>(entries);
        std::uint64_t tag = 0;
        std::memcpy(bytes.data() + 8, &tag, sizeof tag);
        tag = sealer.tag(bytes, {});
        std::memcpy(bytes.data() + 8, &tag, sizeof tag);
        EXPECT_FALSE(opened(sealer, bytes).has_value()) << entries;
    }
}

// Of data the place of entries is there, whether or not there are any; of others nothing follows them.
TEST(SealTest, AllDatagramsOfABroadcastAreEquallyLong) {
    const Sealer sealer(counted_key());
    const std::vector<std::byte> payload = counted(100);
    Letter letter = data_letter(payload);
    for (std::uint8_t acks = 0; acks <= multicast::Datagram::kMostAcks; ++acks) {
        letter.datagram.acks = acks;
        EXPECT_EQ(sealed(sealer, letter).size(), kMostHeaderBytes + payload.size()) << unsigned{acks};
        EXPECT_EQ(opened(sealer, sealed(sealer, letter))->content, letter.content);
    }
    Letter ack;
    std::vector<std::byte> bytes = sealed(sealer, ack);
    bytes.push_back(std::byte{0});
    const std::uint64_t none = 0;
    std::memcpy(bytes.data() + 8, &none, sizeof none);
    for (const std::size_t split : {bytes.size() - 1, bytes.size()}) {
        const std::span<const std::byte> all(bytes);
        const std::uint64_t tag = sealer.tag(all.first(split), all.subspan(split));
        std::vector<std::byte> longer = bytes;
        std::memcpy(longer.data() + 8, &tag, sizeof tag);
        EXPECT_FALSE(opened(sealer, longer).has_value());
    }
}

TEST(PlaceTest, IsOfTheKeyAloneAndAwayFromWhatOthersUse) {
    std::set<std::pair<in_addr_t, std::uint16_t>> places;
    for (unsigned i = 0; i < 256; ++i) {
        Key key = counted_key();
        key[i % 16] ^= static_cast<std::byte>(i);
        const Place place = place_of(key);
        const std::uint32_t address = ntohl(place.group);
        EXPECT_EQ(address >> 22, (239U << 24 | 64U << 16) >> 22) << "239.64.0.0/10";
        EXPECT_GE(place.port, 61000);
        EXPECT_LT(place.port, 65000);
        EXPECT_EQ(place_of(key).group, place.group);
        EXPECT_EQ(place_of(key).port, place.port);
        places.insert({place.group, place.port});
    }
    EXPECT_GT(places.size(), 200U);
}

TEST(InterfaceTest, ThereIsNoneOfAnotherName) {
    EXPECT_EQ(interface_named("nosuch0", nullptr).address, 0U);
    EXPECT_EQ(interface_named("", "nosuch0,nosuch1:1").address, 0U);
}

}  // namespace
}  // namespace velo::fabric::udp
