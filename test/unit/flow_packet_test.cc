#include <gtest/gtest.h>

#include <algorithm>

#include "wire/packet.h"

namespace velo::wire {
namespace {

Header data_header() {
    return {
        .kind = PacketKind::kData, .flags = kFirst | kLast, .tag = 65, .length = 22, .lap = 1, .source = 3};
}

TEST(PacketHeader, UnpacksToWhatWasPacked) {
    for (PacketKind kind :
         {PacketKind::kData, PacketKind::kCredit, PacketKind::kRequest, PacketKind::kResponse})
        for (std::uint32_t source : {0U, 1U, 0xabcdU, Header::kMaxSource})
            for (unsigned lap : {1U, 0x8000U, 0xffffU}) {
                const Header header{.kind = kind,
                                    .flags = kPiggyback | kInternal,
                                    .tag = 0xa5,
                                    .length = 54,
                                    .lap = static_cast<std::uint16_t>(lap),
                                    .source = source};

                const Header back = Header::unpack(header.pack());

                EXPECT_EQ(back.kind, header.kind);
                EXPECT_EQ(back.flags, header.flags);
                EXPECT_EQ(back.tag, header.tag);
                EXPECT_EQ(back.length, header.length);
                EXPECT_EQ(back.lap, header.lap);
                EXPECT_EQ(back.source, header.source);
                EXPECT_EQ(Header::lap_of(header.pack()), header.lap);
            }
}

TEST(PacketHeader, IsImplausibleFromAnUnknownSource) {
    EXPECT_TRUE(data_header().plausible(4));
    EXPECT_FALSE(data_header().plausible(3));
}

TEST(PacketHeader, IsImplausibleWithAnUnknownKind) {
    Header header = data_header();
    for (unsigned kind : {0U, 10U, 15U}) {
        header.kind = static_cast<PacketKind>(kind);
        EXPECT_FALSE(header.plausible(4));
    }
}

TEST(PacketHeader, CountsTheSlotsOfItsRunAndLeavesTheLastTwoBytesToAPiggybackedCount) {
    Header header = data_header();
    struct Row {
        std::uint16_t length;
        std::uint32_t packets, with_piggyback;
    };
    for (const Row& row : {Row{0, 1, 1}, Row{54, 1, 1}, Row{55, 1, 2}, Row{56, 1, 2}, Row{57, 2, 2},
                           Row{118, 2, 2}, Row{119, 2, 3}, Row{120, 2, 3}, Row{121, 3, 3}}) {
        header.length = row.length;
        header.flags = kFirst;
        EXPECT_EQ(header.packets(), row.packets) << row.length;
        header.flags |= kPiggyback;
        EXPECT_EQ(header.packets(), row.with_piggyback) << row.length;
        EXPECT_GE(header.piggyback_offset(), row.length);
        EXPECT_EQ(header.piggyback_offset() + 2 + kHeaderBytes, row.with_piggyback * kPacketBytes);
    }
}

TEST(PacketHeader, IsImplausibleWithAControlPacketOfSeveralSlots) {
    Header header = data_header();
    header.length = kPayloadBytes + 1;
    EXPECT_TRUE(header.plausible(4));
    header.kind = PacketKind::kCredit;
    EXPECT_FALSE(header.plausible(4));
}

TEST(PacketHeader, ReadsAsOneLineOfText) {
    EXPECT_EQ(to_string(data_header()), "DATA src 3 tag 65 len 22 first last lap 1");
    EXPECT_EQ(
        to_string({.kind = PacketKind::kResponse, .flags = 0, .tag = 0, .length = 2, .lap = 9, .source = 1}),
        "RESP src 1 tag 0 len 2 lap 9");
    EXPECT_EQ(to_string({.kind = static_cast<PacketKind>(13),
                         .flags = kPiggyback,
                         .tag = 0,
                         .length = 0,
                         .lap = 0,
                         .source = 0}),
              "kind 13 src 0 tag 0 len 0 piggyback lap 0");
}

TEST(Framing, OfTheThesisPutsAHeaderIntoEveryPacket) {
    EXPECT_EQ(kClassicFraming.packets_for(0), 1U);
    EXPECT_EQ(kClassicFraming.packets_for(56), 1U);
    EXPECT_EQ(kClassicFraming.packets_for(57), 2U);
    EXPECT_EQ(kClassicFraming.packets_for(2048 + 16), 37U);  // thesis section 5.3: 2 KB and the MPI header
    EXPECT_TRUE(kClassicFraming.room_for_piggyback(56 + 54));
    EXPECT_FALSE(kClassicFraming.room_for_piggyback(56 + 55));
}

// The packets that a message needs are those of its runs, cut one after the other.
TEST(Framing, CountsThePacketsOfTheRunsThatItCuts) {
    for (const Framing& framing :
         {kClassicFraming, Framing{57, 80, 40}, Framing{57, 24, 40}, Framing{449, 16, 16}}) {
        for (std::size_t bytes = 0; bytes < 20000; bytes += bytes < 600 ? 1 : 37) {
            const std::size_t full = run_capacity(framing.run_packets(bytes));
            std::size_t left = bytes;
            std::uint64_t packets = 0;
            do {
                std::size_t run = std::min(left, full);
                packets += packets_in_run(run);
                if (run == left) {
                    EXPECT_EQ(framing.room_for_piggyback(bytes),
                              packets_in_run(run) == packets_in_run(run + 2));
                }
                left -= run;
            } while (left > 0);
            ASSERT_EQ(framing.packets_for(bytes), packets) << bytes;
            ASSERT_LE(full, Header::kMaxLength);
        }
    }
}

}  // namespace
}  // namespace velo::wire
