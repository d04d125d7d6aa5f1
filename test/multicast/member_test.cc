// What a member says, to whom and when; what it makes of what no correct member sends.
#include "collectives/multicast/member.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "goal/allocations.h"
#include "schedule/random.h"

namespace velo::multicast {
namespace {

struct Said final : Carrier {
    struct Message {
        std::uint32_t to;
        Datagram datagram;
    };
    static constexpr std::uint32_t kAll = UINT32_MAX;

    void multicast(const Datagram& datagram) override { messages.push_back({kAll, datagram}); }
    void send(std::uint32_t to, const Datagram& datagram) override { messages.push_back({to, datagram}); }
    void keep(std::uint32_t, Sequence sequence) override { kept.push_back(sequence); }
    void deliver(std::uint32_t, Sequence sequence) override { delivered.push_back(sequence); }

    std::vector<Message> take() { return std::exchange(messages, {}); }

    std::vector<Message> messages;
    std::vector<Sequence> kept, delivered;
};

Config group(Scheme scheme, std::uint32_t members, std::uint32_t me) {
    Config config;
    config.scheme = scheme;
    config.members = members;
    config.me = me;
    return config;
}

Datagram data(Sequence sequence, Sequence low = 0, bool again = false) {
    Datagram datagram;
    datagram.kind = Kind::kData;
    datagram.sequence = sequence;
    datagram.low = low;
    datagram.again = again;
    return datagram;
}
Datagram acknowledgement(std::uint32_t to, Sequence next) {
    Datagram datagram;
    datagram.acks = 1;
    datagram.ack[0] = {to, 0, next};
    return datagram;
}
Datagram probe(Sequence end) {
    Datagram datagram;
    datagram.kind = Kind::kProbe;
    datagram.sequence = end;
    return datagram;
}
Datagram nack(Sequence first, std::uint64_t missing) {
    Datagram datagram;
    datagram.kind = Kind::kNack;
    datagram.sequence = first;
    datagram.missing = missing;
    return datagram;
}

TEST(MulticastMember, names_what_is_wrong_with_a_configuration) {
    const auto objection = [](auto change) {
        Config config = group(Scheme::kCoroot, 4, 1);
        change(config);
        return Member::objection(config);
    };
    EXPECT_EQ(objection([](Config&) {}), "");
    EXPECT_NE(objection([](Config& c) { c.members = 1; }), "");
    EXPECT_NE(objection([](Config& c) { c.me = 4; }), "");
    EXPECT_EQ(objection([](Config& c) { c.me = 4, c.attached = true; }), "");
    EXPECT_NE(objection([](Config& c) { c.window = 48; }), "");
    EXPECT_NE(objection([](Config& c) { c.window = 0; }), "");
    EXPECT_NE(objection([](Config& c) { c.ack_every = 0; }), "");
    EXPECT_NE(objection([](Config& c) { c.co_roots = 4; }), "");
    EXPECT_NE(objection([](Config& c) { c.most_backoff = 0; }), "");
    EXPECT_NE(objection([](Config& c) { c.sources = {}; }), "");
    EXPECT_NE(objection([](Config& c) { c.sources = {4}; }), "");
    EXPECT_NE(objection([](Config& c) { c.sources = {1, 2, 1}; }), "");
}

TEST(MulticastMember, one_acknowledgement_for_every_tenth_datagram_each_member_at_another_one) {
    std::map<Sequence, int> at;  // after which datagram how many are sent
    for (std::uint32_t me = 1; me <= 20; ++me) {
        Member member(group(Scheme::kWindow, 21, me));
        Said said;
        int acks = 0;
        for (Sequence s = 0; s < 100; ++s) {
            member.arrived(0, data(s, s), s, said);
            for (const Said::Message& message : said.take()) {
                EXPECT_EQ(message.to, 0U);
                EXPECT_EQ(message.datagram.ack[0], (Ack{0, 0, s + 1, me}));
                ++at[s];
                ++acks;
            }
        }
        EXPECT_EQ(acks, 10);
    }
    for (const auto& [sequence, acks] : at) EXPECT_EQ(acks, 2) << sequence;
}

TEST(MulticastMember, an_acknowledgement_waits_for_others_and_no_longer_than_its_time) {
    Member member(group(Scheme::kWindow, 2, 1));
    Said said;
    member.arrived(0, data(0), 1000, said);
    EXPECT_TRUE(said.messages.empty());
    EXPECT_EQ(member.deadline(), 501'000U);
    member.arrived(0, data(1), 2000, said);
    EXPECT_EQ(member.deadline(), 501'000U) << "the first one counts";
    member.tick(501'000, said);
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.messages[0].datagram.ack[0].next, 2U);
    EXPECT_TRUE(member.quiet());
}

TEST(MulticastMember, acknowledgements_of_several_streams_leave_together) {
    Config config = group(Scheme::kCoroot, 16, 13);  // sets of four: 12 collects from 13 for all but its own
    constexpr std::uint32_t kSources = Datagram::kMostAcks + 2;
    config.sources.resize(kSources);
    std::iota(config.sources.begin(), config.sources.end(), 0U);
    Member member(config);
    Said said;
    for (std::uint32_t stream = 0; stream < kSources; ++stream) {
        Datagram datagram = data(0);
        datagram.stream = stream;
        member.arrived(config.sources[stream], datagram, stream, said);
    }
    EXPECT_TRUE(said.messages.empty());
    member.tick(member.deadline(), said);
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.messages[0].to, 12U);
    EXPECT_EQ(said.messages[0].datagram.acks, Datagram::kMostAcks);
    EXPECT_EQ(member.counters().acks_joined, Datagram::kMostAcks - 1);
    while (!member.quiet()) member.tick(member.deadline(), said);
    EXPECT_EQ(said.messages.size(), 2U);
    EXPECT_EQ(member.counters().acks, kSources);
}

TEST(MulticastMember, acknowledgements_ride_on_what_leaves_for_their_collector) {
    Config config = group(Scheme::kCoroot, 4, 1);
    config.sources = {0, 1};
    Member member(config);
    Said said;
    member.arrived(0, data(0), 0, said);
    ASSERT_TRUE(member.broadcast(10, said));
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.messages[0].datagram.kind, Kind::kData);
    ASSERT_EQ(said.messages[0].datagram.acks, 1);
    EXPECT_EQ(said.messages[0].datagram.ack[0], (Ack{0, 0, 1, 1}));
    // And on what others send.
    member.arrived(0, data(1), 20, said);
    Ack room[2];
    EXPECT_EQ(member.ride(3, room, 2), 0U) << "3 does not collect it";
    EXPECT_EQ(member.ride(0, room, 2), 1U);
    EXPECT_EQ(room[0], (Ack{0, 0, 2, 1}));
    EXPECT_EQ(member.counters().acks_piggybacked, 2U);
    EXPECT_EQ(member.counters().ack_datagrams, 0U);
}

// Member 1 acknowledges at 9, 19, ...: what has just had a ride is not worth a datagram.
TEST(MulticastMember, what_has_just_had_a_ride_is_not_acknowledged_again_at_the_next_datagram_for_it) {
    for (const bool rides : {false, true}) {
        Member member(group(Scheme::kCoroot, 4, 1));
        Said said;
        Ack room[1];
        for (Sequence s = 0; s < 19; ++s) {
            member.arrived(0, data(s), 0, said);
            if (s == 7 && rides) {
                EXPECT_EQ(member.ride(0, room, 1), 1U);
            }
            EXPECT_EQ(said.messages.size(), (s >= 8 && !rides) + (s >= 18)) << s << rides;
        }
    }
}

TEST(MulticastMember, a_source_that_hears_what_rode_with_something_else_frees_its_ring) {
    Member member(group(Scheme::kWindow, 2, 0));
    Said said;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(member.broadcast(0, said));
    member.acknowledged(1, {0, 0, 2}, 10, said);
    EXPECT_EQ(member.freed(), 2U);
    member.acknowledged(1, {0, 0, 3}, 10, said);
    EXPECT_TRUE(member.quiet());
}

TEST(MulticastMember, basic_lets_nothing_go_before_all_have_acknowledged) {
    Member member(group(Scheme::kBasic, 3, 0));
    Said said;
    ASSERT_TRUE(member.broadcast(0, said));
    EXPECT_FALSE(member.broadcast(0, said));
    member.arrived(1, acknowledgement(0, 1), 1, said);
    EXPECT_FALSE(member.broadcast(1, said));
    member.arrived(2, acknowledgement(0, 1), 2, said);
    EXPECT_TRUE(member.broadcast(2, said));
}

TEST(MulticastMember, a_full_window_counts_as_a_time_out_and_the_oldest_is_sent_again) {
    Config config = group(Scheme::kWindow, 3, 0);
    config.window = 4;
    Member member(config);
    Said said;
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(member.broadcast(0, said));
    EXPECT_EQ(member.deadline(), config.probe_ns);
    member.arrived(1, acknowledgement(0, 4), 5, said);
    said.take();
    EXPECT_FALSE(member.broadcast(10, said));
    EXPECT_EQ(member.deadline(), config.full_ns);
    member.tick(config.full_ns, said);
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.messages[0].to, Said::kAll);
    EXPECT_TRUE(said.messages[0].datagram.again);
    EXPECT_EQ(said.messages[0].datagram.sequence, 0U);
}

// Of 16 places: as many as go at once, alone; beside others its share, or what has not lost anything.
TEST(MulticastMember, a_static_share_is_all_that_may_be_under_way_beside_others) {
    Config config = group(Scheme::kCoroot, 2, 0);
    config.window = 16;
    config.share = 3;
    config.shares = Shares::kStatic;
    Member member(config);
    Said said;
    EXPECT_FALSE(member.broadcast(0, said, 17));
    EXPECT_EQ(member.broadcast(0, said, 2), 0U);
    EXPECT_FALSE(member.broadcast(0, said, 2));
    EXPECT_EQ(member.broadcast(0, said), 2U);
    EXPECT_FALSE(member.has_room());
    member.arrived(1, acknowledgement(0, 3), 5, said);
    EXPECT_EQ(member.broadcast(5, said, 16), 3U);
    EXPECT_FALSE(member.has_room());
    member.arrived(1, acknowledgement(0, 19), 9, said);
    EXPECT_EQ(member.share(), 3U);
    EXPECT_EQ(member.counters().sent, 19U);
    EXPECT_EQ(said.take().size(), 19U);
}

TEST(MulticastMember, a_dynamic_share_is_halved_once_for_all_that_was_under_way_and_comes_back) {
    Config config = group(Scheme::kCoroot, 2, 0);
    config.window = 16;
    config.share = 3;
    Member member(config);
    Said said;
    Sequence next = 0;
    const auto send = [&](std::uint32_t count) {
        for (; count > 0; --count) {
            ASSERT_EQ(member.broadcast(0, said), next++);
        }
    };
    const auto acknowledge = [&](Sequence up_to) { member.arrived(1, acknowledgement(0, up_to), 1, said); };
    send(16);
    EXPECT_FALSE(member.has_room());
    member.arrived(1, nack(0, 1), 1, said);
    member.arrived(1, nack(2, 0b1011), 1, said);
    EXPECT_EQ(member.share(), 8U) << "one loss, or many";
    acknowledge(7);
    EXPECT_FALSE(member.has_room()) << "nine are under way";
    acknowledge(8);
    EXPECT_EQ(member.share(), 9U) << "eight have come";
    send(1);
    member.arrived(1, nack(16, 1), 1, said);
    EXPECT_EQ(member.share(), 4U) << "it was sent later";
    acknowledge(next);
    send(4);
    member.arrived(1, nack(next - 1, 1), 1, said);
    EXPECT_EQ(member.share(), 3U) << "no less than it has for itself";
    member.arrived(1, nack(next - 1, 1), 1, said);
    acknowledge(next);
    for (std::uint32_t share = member.share(); share < 16; ++share) {
        EXPECT_EQ(member.share(), share);
        send(share);
        EXPECT_FALSE(member.has_room());
        acknowledge(next - 1);
        EXPECT_EQ(member.share(), share) << "not all of them yet";
        acknowledge(next);
    }
    EXPECT_EQ(member.share(), 16U);
    send(16);
    acknowledge(next);
    EXPECT_EQ(member.share(), 16U);
}

// In steps that only the share itself can take: a member would have to send all of them.
TEST(MulticastMember, a_loss_counts_however_many_datagrams_were_not_lost_before) {
    Config config = group(Scheme::kCoroot, 2, 0);
    config.window = 16;
    config.share = 3;
    Share share(config);
    Sequence low = 0;
    constexpr Sequence kStep = 1U << 30;
    for (int turn = 0; turn < 9; ++turn) {  // twice around the circle
        for (share.lost(low, low + 16); share.now() < 16;) share.got_on(16, low += 16);
        share.got_on(kStep, low += kStep);
        share.lost(low - 1, low + 16);
        EXPECT_EQ(share.now(), 16U) << "everybody has it, turn " << turn;
        share.lost(low, low + 16);
        EXPECT_EQ(share.now(), 8U) << "turn " << turn;
        share.lost(low + 15, low + 16);
        EXPECT_EQ(share.now(), 8U) << "it was under way with the other one, turn " << turn;
        for (int steps = turn % 3; steps > 0; --steps) share.got_on(kStep, low += kStep);
    }
}

TEST(MulticastMember, members_acknowledge_before_a_share_is_full) {
    Config config = group(Scheme::kCoroot, 2, 1);
    config.window = 128;
    config.ack_every = 32;
    config.skewed = false;
    for (const auto& [share, every] : {std::pair{0U, 32U}, std::pair{20U, 10U}, std::pair{1U, 1U}}) {
        config.share = share;
        Member member(config);
        Said said;
        for (Sequence s = 0; s < every; ++s) {
            EXPECT_TRUE(said.messages.empty()) << share;
            member.arrived(0, data(s), 1, said);
        }
        EXPECT_EQ(said.take().size(), 1U) << share;
    }
}

TEST(MulticastMember, waits_for_an_answer_get_longer_until_somebody_gets_on) {
    Config config = group(Scheme::kWindow, 2, 0);
    config.most_backoff = 4;
    Member member(config);
    Said said;
    member.broadcast(0, said);
    member.broadcast(0, said);
    std::vector<std::uint64_t> waits;
    for (std::uint64_t last = 0, i = 0; i < 4; ++i) {
        waits.push_back((member.deadline() - last) / config.probe_ns);
        last = member.deadline();
        member.tick(last, said);
    }
    EXPECT_EQ(waits, (std::vector<std::uint64_t>{1, 2, 4, 4}));
    member.arrived(1, acknowledgement(0, 1), 100'000'000, said);
    EXPECT_EQ(member.deadline(), 100'000'000 + config.probe_ns);
}

TEST(MulticastMember, what_comes_out_of_order_is_kept_and_what_comes_twice_dropped) {
    Member member(group(Scheme::kCoroot, 4, 1));
    Said said;
    for (const Sequence s : {2U, 1U, 2U, 0U, 1U, 3U}) member.arrived(0, data(s), 0, said);
    EXPECT_EQ(said.kept, (std::vector<Sequence>{2, 1, 0, 3}));
    EXPECT_EQ(said.delivered, (std::vector<Sequence>{0, 1, 2, 3}));
    EXPECT_EQ(member.counters().duplicates, 2U);
    EXPECT_EQ(member.counters().kept, 2U);
}

TEST(MulticastMember, a_gap_is_asked_for_when_it_is_no_mere_reordering) {
    Config config = group(Scheme::kCoroot, 4, 1);
    Member member(config);
    Said said;
    member.arrived(0, data(0), 0, said);
    member.arrived(0, data(2), 100, said);
    member.arrived(0, data(5), 200, said);
    EXPECT_TRUE(said.messages.empty());
    EXPECT_EQ(member.deadline(), 100 + config.reorder_ns);
    member.tick(100 + config.reorder_ns, said);
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.messages[0].to, 0U);
    EXPECT_EQ(said.messages[0].datagram.kind, Kind::kNack);
    EXPECT_EQ(said.messages[0].datagram.sequence, 1U);
    EXPECT_EQ(said.messages[0].datagram.missing, 0b1101U);
    EXPECT_EQ(said.messages[0].datagram.acks, 1) << "with the acknowledgement of what is here";
}

TEST(MulticastMember, a_gap_that_stays_open_is_asked_for_again_later_each_time) {
    Config config = group(Scheme::kCoroot, 4, 1);
    Member member(config);
    Said said;
    member.arrived(0, data(3), 0, said);
    std::vector<std::uint64_t> waits;
    for (std::uint64_t last = 0, i = 0; i < 4; ++i) {
        waits.push_back((member.deadline() - last) / config.reorder_ns);
        last = member.deadline();
        member.tick(last, said);
    }
    EXPECT_EQ(waits, (std::vector<std::uint64_t>{1, 2, 4, 8}));
    EXPECT_EQ(said.messages.size(), 4U);
    // Something of it comes: no reason to ask for the rest more often.
    member.arrived(0, data(0), 1'000'000'000, said);
    member.tick(1'000'000'000 + config.ack_delay_ns, said);
    EXPECT_EQ(member.deadline(), 1'000'000'000 + 16 * config.reorder_ns);
    // What is lost after the gap has closed is another matter.
    for (const Sequence s : {1U, 2U, 5U}) member.arrived(0, data(s), 2'000'000'000, said);
    EXPECT_EQ(member.deadline(), 2'000'000'000 + config.reorder_ns);
}

TEST(MulticastMember, a_probe_tells_of_a_lost_last_datagram) {
    Member member(group(Scheme::kCoroot, 4, 1));
    Said said;
    member.arrived(0, data(0), 0, said);
    member.arrived(0, probe(3), 10, said);
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.messages[0].datagram.missing, 0b11U);
    EXPECT_EQ(said.messages[0].datagram.ack[0].next, 1U);
    member.arrived(0, data(1), 20, said);
    member.arrived(0, data(2), 20, said);
    said.take();
    member.arrived(0, probe(3), 30, said);
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.messages[0].datagram.ack[0].next, 3U);
}

TEST(MulticastMember, what_one_lacks_is_repaired_for_it_and_what_many_lack_for_all) {
    Config config = group(Scheme::kCoroot, 9, 0);
    config.co_roots = 1;  // sets of 5 and 4: the root collects from 1 to 4, and from 5
    Member member(config);
    Said said;
    for (int i = 0; i < 3; ++i) member.broadcast(0, said);
    said.take();
    member.arrived(1, nack(1, 1), 10, said);
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.messages[0].to, 1U);
    EXPECT_EQ(said.take()[0].datagram.sequence, 1U);
    member.arrived(1, nack(1, 1), 10, said);
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.take()[0].to, 1U) << "the same one again";
    member.arrived(2, nack(1, 0b11), 10, said);
    ASSERT_EQ(said.messages.size(), 2U);
    EXPECT_EQ(said.messages[0].to, Said::kAll);
    EXPECT_EQ(said.messages[0].datagram.sequence, 1U);
    EXPECT_EQ(said.messages[1].to, 2U) << "the other one only one lacks";
    said.take();
    member.arrived(7, nack(1, 1), 10, said);
    EXPECT_TRUE(said.messages.empty()) << "7 has a collector of its own";
    EXPECT_EQ(member.counters().strange, 1U);
}

TEST(MulticastMember, a_co_root_repairs_its_set_and_reports_the_slowest) {
    Config config = group(Scheme::kCoroot, 9, 5);
    config.co_roots = 1;
    config.ack_every = 1;
    Member member(config);
    Said said;
    member.arrived(0, data(0), 0, said);
    EXPECT_TRUE(said.messages.empty());
    member.arrived(6, acknowledgement(5, 1), 1, said);
    member.arrived(7, acknowledgement(5, 1), 1, said);
    member.arrived(8, nack(0, 1), 1, said);
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.messages[0].to, 8U);
    EXPECT_EQ(said.take()[0].datagram.kind, Kind::kData);
    member.arrived(8, acknowledgement(5, 1), 1, said);
    ASSERT_EQ(said.messages.size(), 1U);
    EXPECT_EQ(said.messages[0].to, 0U);
    EXPECT_EQ(said.messages[0].datagram.ack[0], (Ack{0, 0, 1, 5}));
}

TEST(MulticastMember, a_co_root_passes_on_what_it_gets_whichever_way_it_comes_first) {
    Config config = group(Scheme::kCoroot, 8, 4);
    config.co_roots = 7;
    config.reliable_transfer = true;  // a tree from 0: 4 to 5 and 6
    Member member(config);
    Said said;
    member.arrived(0, data(0), 0, said);
    member.arrived(0, data(0), 0, said);
    ASSERT_EQ(said.messages.size(), 2U);
    EXPECT_EQ(said.messages[0].to, 5U);
    EXPECT_EQ(said.messages[1].to, 6U);
    for (const Said::Message& message : said.messages) EXPECT_EQ(message.datagram.kind, Kind::kData);
    EXPECT_EQ(member.counters().transfers, 2U);
}

TEST(MulticastMember, who_is_attached_takes_what_comes_either_way_and_says_nothing) {
    Config config = group(Scheme::kCoroot, 4, 4);
    config.attached = true;
    config.window = 4;
    Member member(config);
    Said said;
    member.skip_to(0, 100, 0, said);
    member.arrived(0, data(101, 98), 0, said);
    member.arrived(0, data(99, 98), 0, said);    // the leader had it
    member.arrived(0, data(104, 104), 0, said);  // too early
    EXPECT_EQ(said.delivered, std::vector<Sequence>{});
    member.arrived(0, data(100, 98), 0, said);
    EXPECT_EQ(said.delivered, (std::vector<Sequence>{100, 101}));
    member.arrived(0, data(103, 100), 0, said);
    member.skip_to(0, 103, 0, said);
    EXPECT_EQ(said.delivered, (std::vector<Sequence>{100, 101, 103}));
    member.arrived(0, probe(110), 0, said);
    EXPECT_TRUE(said.messages.empty());
    EXPECT_TRUE(member.quiet());
    EXPECT_EQ(member.expected(0), 104U);
    // Far behind: nothing of before is here by mistake.
    member.arrived(0, data(106, 104), 0, said);
    member.skip_to(0, 1'000'000'002, 0, said);
    EXPECT_EQ(member.expected(0), 1'000'000'002U);
    EXPECT_EQ(member.counters().missed, 1U);
    EXPECT_EQ(member.counters().strange, 0U);
}

// A member that joins late has heard nothing of where the streams are.
TEST(MulticastMember, who_is_attached_finds_a_stream_anywhere_on_the_circle) {
    for (const Sequence at : {1U, 0x7fff'ffffU, 0x8000'0000U, 0x8000'0003U, 0xffff'fffeU}) {
        Config config = group(Scheme::kCoroot, 4, 4);
        config.attached = true;
        config.window = 4;
        Member member(config);
        Said said;
        member.skip_to(0, at, 0, said);
        member.arrived(0, data(at, at), 0, said);
        member.skip_to(0, at - 2, 0, said);  // overtaken
        member.arrived(0, data(at - 1, at - 2), 0, said);
        member.arrived(0, data(at + 1, at), 0, said);
        EXPECT_EQ(said.delivered, (std::vector<Sequence>{at, at + 1})) << at;
        EXPECT_EQ(member.counters().duplicates, 1U) << at;
    }
}

// Member 1 of 4 with a window of 4, which has 10 datagrams, of which all have acknowledged 8; 12 is ahead.
Member busy(Said& said, Scheme scheme = Scheme::kCoroot) {
    Config config = group(scheme, 4, 1);
    config.window = 4;
    Member member(config);
    for (Sequence s = 0; s < 10; ++s) member.arrived(0, data(s, s > 2 ? s - 2 : 0), 0, said);
    member.arrived(0, data(11, 8), 0, said);
    said.take();
    return member;
}

TEST(MulticastMember, what_no_correct_member_sends_changes_nothing) {
    const auto wrong = [](std::uint32_t from, Datagram datagram, Scheme scheme = Scheme::kCoroot) {
        Said said;
        Member member = busy(said, scheme);
        const std::string before = member.state(0);
        const std::size_t delivered = said.delivered.size();
        member.arrived(from, datagram, 0, said);
        return member.counters().strange == 1 && member.state(0) == before && said.messages.empty() &&
               said.delivered.size() == delivered;
    };
    Datagram many_acks = data(10, 8), no_stream = data(10, 8), no_kind = data(10, 8);
    many_acks.acks = Datagram::kMostAcks + 1;
    no_stream.stream = 1;
    no_kind.kind = static_cast<Kind>(9);
    Datagram wrong_stream = acknowledgement(1, 3);
    wrong_stream.ack[0].stream = 7;
    EXPECT_TRUE(wrong(0, many_acks));
    EXPECT_TRUE(wrong(0, no_stream));
    EXPECT_TRUE(wrong(0, no_kind));
    EXPECT_TRUE(wrong(0, wrong_stream));
    EXPECT_TRUE(wrong(4, data(10, 8))) << "from nobody";
    EXPECT_TRUE(wrong(1, data(10, 8))) << "from itself";
    EXPECT_TRUE(wrong(3, data(10, 8))) << "3 repairs nothing";
    EXPECT_TRUE(wrong(0, data(12, 8))) << "beyond the window of the source";
    EXPECT_TRUE(wrong(0, data(7, 8))) << "freed already";
    EXPECT_TRUE(wrong(0, data(14, 11))) << "what is missing here has been freed";
    EXPECT_TRUE(wrong(0, probe(15))) << "so many cannot have been sent";
    EXPECT_TRUE(wrong(2, probe(11))) << "2 is not its collector";
    EXPECT_TRUE(wrong(0, probe(11), Scheme::kWindow));
    EXPECT_TRUE(wrong(2, nack(10, 1))) << "it collects from nobody";
    EXPECT_TRUE(wrong(2, acknowledgement(1, 9)));
}

TEST(MulticastMember, a_source_believes_no_acknowledgement_of_what_it_has_not_sent) {
    Config config = group(Scheme::kWindow, 3, 0);
    Member member(config);
    Said said;
    for (int i = 0; i < 3; ++i) member.broadcast(0, said);
    member.arrived(1, acknowledgement(0, 4), 0, said);
    member.arrived(2, acknowledgement(0, 3), 0, said);
    EXPECT_EQ(member.counters().strange, 1U);
    EXPECT_EQ(member.freed(), 0U);
    member.arrived(1, acknowledgement(0, 2), 0, said);
    member.arrived(1, acknowledgement(0, 1), 0, said);  // overtaken
    EXPECT_EQ(member.freed(), 2U);
}

TEST(MulticastMember, what_is_replayed_is_handed_on_to_nobody) {
    schedule::Random random(3);
    Said said;
    Member member = busy(said);
    const Sequence expected = member.expected(0);
    const std::size_t delivered = said.delivered.size();
    for (int i = 0; i < 10'000; ++i) {
        const Sequence sequence = random.below(10);
        member.arrived(0, data(sequence, sequence > 2 ? sequence - 2 : 0, random.chance(1, 2)), 0, said);
    }
    EXPECT_EQ(said.delivered.size(), delivered);
    EXPECT_EQ(member.expected(0), expected);
    EXPECT_EQ(member.counters().duplicates, 10'000U);
}

// Whatever the fields are: in order, once, inside the ring.
TEST(MulticastMember, damaged_datagrams_break_nothing) {
    schedule::Random random(7);
    for (int round = 0; round < 300; ++round) {
        Config config = group(static_cast<Scheme>(random.below(4)), random.between(2, 9), 0);
        config.me = random.below(config.members);
        config.window = 1U << random.below(8);
        config.co_roots = random.below(config.members);
        config.reliable_transfer = random.chance(1, 2);
        config.attached = random.chance(1, 8);
        config.sources = {random.below(config.members)};
        if (config.me == config.sources[0]) config.attached = false;
        Member member(config);
        Said said;
        const bool sends = config.me == config.sources[0];
        for (int i = 0; i < 1000; ++i) {
            const auto near = [&] {
                return random.chance(1, 10) ? static_cast<std::uint32_t>(random.next())
                                            : member.expected(0) + random.below(20) - 10;
            };
            Datagram datagram;
            datagram.kind = static_cast<Kind>(random.below(5));
            datagram.again = random.chance(1, 4);
            datagram.acks = static_cast<std::uint8_t>(random.below(6));
            datagram.stream = random.chance(1, 20) ? 1 : 0;
            datagram.sequence = near();
            datagram.low = random.chance(1, 2) ? datagram.sequence : near();
            datagram.missing = random.next();
            for (Ack& ack : datagram.ack) ack = {random.below(10), random.below(2), near()};
            member.arrived(random.below(10), datagram, static_cast<std::uint64_t>(i), said);
            if (sends && random.chance(1, 3)) member.broadcast(static_cast<std::uint64_t>(i), said);
            if (random.chance(1, 5) && !member.quiet()) member.tick(member.deadline(), said);
            if (sends) {
                EXPECT_LE(member.next() - member.freed(), member.config().window);
            }
            for (const Said::Message& message : said.take())
                EXPECT_TRUE(message.to == Said::kAll || message.to < config.members);
        }
        for (std::size_t i = 0; i < said.delivered.size(); ++i)
            EXPECT_EQ(said.delivered[i], said.delivered[0] + i);
        EXPECT_LE(said.delivered.size(), said.kept.size());
    }
}

struct Nothing final : Carrier {
    void multicast(const Datagram&) override {}
    void send(std::uint32_t, const Datagram&) override {}
    void keep(std::uint32_t, Sequence) override {}
    void deliver(std::uint32_t, Sequence) override {}
};

TEST(MulticastMember, a_member_asks_for_memory_when_it_is_made_and_never_again) {
    for (const std::uint32_t me : {0U, 1U, 8U}) {
        Config config = group(Scheme::kCoroot, 64, me);
        config.sources = {0, 1, 2, 3, 4, 5, 6, 7};
        config.reliable_transfer = true;
        Member member(config);
        Nothing out;
        const std::size_t before = goal::allocations();
        for (Sequence s = 0; s < 5000; ++s) {
            for (std::uint32_t stream = 0; stream < 8; ++stream) {
                Datagram datagram = data(s ^ 1, s > 40 ? s - 40 : 0);
                datagram.stream = stream;
                member.arrived(config.sources[stream], datagram, s, out);
                member.arrived(9, acknowledgement(me, s), s, out);
                member.arrived(9, nack(s, 0xff), s, out);
            }
            if (me < 8) member.broadcast(s, out);
            if (!member.quiet() && member.deadline() < s) member.tick(s, out);
        }
        EXPECT_EQ(goal::allocations(), before);
        EXPECT_GT(member.counters().delivered, 5000U);
    }
}

}  // namespace
}  // namespace velo::multicast
