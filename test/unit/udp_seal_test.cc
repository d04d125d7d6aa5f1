// What every datagram of a multicast group is sealed with, and where a job's group is.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "fabric/udp/place.h"
#include "fabric/udp/seal.h"

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
    letter.content = {1ULL << 40, 9, 5000, 1400, 0};
    letter.payload = payload;
    return letter;
}

std::vector<std::byte> sealed(const SipHash& hash, const Letter& letter) {
    std::vector<std::byte> bytes(kMostHeaderBytes);
    bytes.resize(seal(hash, letter, bytes.data()));
    bytes.insert(bytes.end(), letter.payload.begin(), letter.payload.end());
    return bytes;
}

TEST(SealTest, WhatIsSealedIsOpenedAsItWas) {
    const SipHash hash(counted_key());
    const std::vector<std::byte> payload = counted(1399);
    const Letter letter = data_letter(payload);
    const std::vector<std::byte> bytes = sealed(hash, letter);
    const std::optional<Letter> back = opened(hash, bytes);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->from, letter.from);
    EXPECT_EQ(back->datagram, letter.datagram);
    EXPECT_EQ(back->content, letter.content);
    EXPECT_TRUE(std::ranges::equal(back->payload, payload));

    Letter nack;
    nack.datagram.kind = multicast::Kind::kNack;
    nack.datagram.missing = 0x8000000000000001;
    EXPECT_EQ(opened(hash, sealed(hash, nack))->datagram, nack.datagram);
    Letter answer;
    answer.call = Call::kAnswer;
    answer.heard = true;
    EXPECT_EQ(opened(hash, sealed(hash, answer))->call, Call::kAnswer);
    EXPECT_TRUE(opened(hash, sealed(hash, answer))->heard);
}

TEST(SealTest, OneBitOfDamageAnywhereIsSeen) {
    const SipHash hash(counted_key());
    const std::vector<std::byte> payload = counted(19);
    std::vector<std::byte> bytes = sealed(hash, data_letter(payload));
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_FALSE(opened(hash, bytes).has_value()) << "bit " << bit;
        bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
    EXPECT_TRUE(opened(hash, bytes).has_value());
}

TEST(SealTest, NeitherAnotherKeyNorAnotherLengthOpens) {
    const SipHash hash(counted_key());
    Key other = counted_key();
    other[7] ^= std::byte{1};
    const std::vector<std::byte> payload = counted(19);
    const std::vector<std::byte> bytes = sealed(hash, data_letter(payload));
    EXPECT_FALSE(opened(SipHash(other), bytes).has_value());
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(opened(hash, std::span(bytes).first(length)).has_value()) << length;
}

// With the key, too, nothing outside of the bytes is read.
TEST(SealTest, MoreEntriesThanThereAreBytesIsNoLetter) {
    const SipHash hash(counted_key());
    Letter ack;
    ack.datagram.acks = 1;
    std::vector<std::byte> bytes = sealed(hash, ack);
    for (const unsigned entries : {2U, 4U, 5U, 255U}) {
        bytes[7] = static_cast<std::byte>(entries);
        std::uint64_t tag = 0;
        std::memcpy(bytes.data() + 8, &tag, sizeof tag);
        tag = hash({bytes});
        std::memcpy(bytes.data() + 8, &tag, sizeof tag);
        EXPECT_FALSE(opened(hash, bytes).has_value()) << entries;
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
