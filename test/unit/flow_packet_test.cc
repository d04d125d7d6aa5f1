#include <gtest/gtest.h>

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
        for (std::uint32_t source : {0U, 1U, 0xabcdefU, Header::kMaxSource})
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

TEST(PacketHeader, LeavesTheLastTwoPayloadBytesToAPiggybackedCount) {
    Header header = data_header();
    header.length = kPayloadBytes;
    EXPECT_TRUE(header.plausible(4));
    header.flags |= kPiggyback;
    EXPECT_FALSE(header.plausible(4));
    header.length = kPayloadBytes - kPiggybackBytes;
    EXPECT_TRUE(header.plausible(4));
}

TEST(PacketHeader, IsImplausibleWithMorePayloadThanASlotHas) {
    Header header = data_header();
    header.length = kPayloadBytes + 1;
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

TEST(Packets, CarryAMessageInPiecesOfOnePayload) {
    EXPECT_EQ(packets_for(0), 1U);
    EXPECT_EQ(packets_for(56), 1U);
    EXPECT_EQ(packets_for(57), 2U);
    EXPECT_EQ(packets_for(2048 + 16), 37U);  // thesis section 5.3: 2 KB and the MPI header
}

}  // namespace
}  // namespace velo::wire
