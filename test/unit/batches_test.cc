// Batches: their layout, the unit that opens, reads and closes them, and what they save an engine.
#include "engine/staging/batches.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "engine_party.h"
#include "fabric/shm/segment.h"
#include "lone_domain.h"
#include "platform/failure.h"
#include "wire/batch.h"

namespace velo::test {
namespace {

using engine::Batches;
using engine::Incoming;
using engine::Peer;
using wire::Enclosed;

// A chunk that is full of what lay there before.
struct Room {
    explicit Room(std::byte before = std::byte{0xff}) { bytes.fill(before); }
    alignas(64) std::array<std::byte, 4096> bytes{};
};

void append(wire::BatchWriter& writer, const std::string& text, std::uint8_t tag = 1) {
    std::memcpy(writer.data(), text.data(), text.size());
    writer.append(text.size(), tag, 0);
}

TEST(BatchTest, a_message_is_there_when_it_has_been_appended_whatever_lay_in_the_chunk) {
    Room room;
    wire::BatchWriter writer(room.bytes.data() + 16, 3000);
    wire::BatchReader reader(room.bytes.data() + 16, 3000);
    for (const std::size_t bytes : {0, 1, 56, 57, 255, 256, 700}) {
        EXPECT_EQ(reader.next().kind, Enclosed::kNothing);
        const std::string text = pattern(bytes, 1);
        ASSERT_TRUE(writer.holds(bytes)) << bytes;
        append(writer, text, static_cast<std::uint8_t>(bytes));
        const Enclosed next = reader.next();
        ASSERT_TRUE(reader.is_sound(next));
        EXPECT_EQ(next.bytes, bytes);
        EXPECT_EQ(next.tag, static_cast<std::uint8_t>(bytes));
        EXPECT_EQ(std::string(reinterpret_cast<char*>(reader.data()), bytes), text);
        reader.pass(next);
    }
    EXPECT_FALSE(writer.holds(700));
    writer.close();
    EXPECT_EQ(reader.next().kind, Enclosed::kEnd);
    EXPECT_TRUE(reader.is_sound(reader.next()));
    EXPECT_FALSE(writer.is_open());
}

// Wherever the chunk begins; the least room for one is what batch_bytes says.
TEST(BatchTest, nothing_is_stored_outside_of_the_chunk) {
    for (std::size_t begin = 0; begin < 64; begin += 8) {
        Room room(std::byte{0x5a});
        const std::size_t bytes = wire::batch_bytes(300);
        wire::BatchWriter writer(room.bytes.data() + begin, bytes);
        ASSERT_TRUE(writer.holds(300));
        append(writer, pattern(300, 2));
        EXPECT_FALSE(writer.holds(300));
        writer.close();
        for (std::size_t at = 0; at < room.bytes.size(); ++at)
            if (at < begin || at >= begin + bytes) ASSERT_EQ(room.bytes[at], std::byte{0x5a}) << at;
    }
}

TEST(BatchTest, what_goes_beyond_the_chunk_or_is_of_no_kind_is_not_sound) {
    Room room;
    const wire::BatchReader reader(room.bytes.data(), 1000);
    EXPECT_TRUE(reader.is_sound({600 - 8, 1, 0, Enclosed::kMessage}) == reader.holds(600 - 8));
    for (const std::uint32_t bytes : {1000U, 993U, UINT32_MAX, UINT32_MAX - 8})
        EXPECT_FALSE(reader.is_sound({bytes, 1, 0, Enclosed::kMessage})) << bytes;
    for (const std::uint16_t kind : {3, 0x100, 0xffff})
        EXPECT_FALSE(reader.is_sound({1, 1, 0, kind})) << kind;
}

// The unit, without an engine.
class BatchesTest : public ::testing::Test, protected engine::BatchesHost, protected engine::IdleHost {
 protected:
    bool take_enclosed(Peer& from, const Enclosed& message, std::byte* data) override {
        EXPECT_EQ(from.arriving, Incoming::State::kIdle);
        --left_;
        heard_ += std::to_string(from.index) + ":" +
                  std::string(reinterpret_cast<char*>(data), message.bytes) + " ";
        return message.tag != 66;
    }
    void has_read(Peer& peer) override { heard_ += "end" + std::to_string(peer.index) + " "; }
    int left_of_poll() const override { return left_; }
    bool is_quiet() const override { return batches_.is_quiet(); }
    void look_around() override {}

    // A peer that has told of a batch in `room`, which the test fills as that peer.
    wire::BatchWriter follow(Peer& peer, Room& room) {
        wire::BatchWriter writer(room.bytes.data(), room.bytes.size());
        batches_.follow(peer, room.bytes.data(), room.bytes.size());
        return writer;
    }
    std::string take() { return std::exchange(heard_, ""); }

    LoneDomain domain_{"static"};
    std::unique_ptr<fabric::shm::SegmentHeader> own_ = std::make_unique<fabric::shm::SegmentHeader>();
    platform::OptionalMutex mutex_{false};
    engine::Idle idle_{*this, mutex_, *own_, 0, true};
    engine::Pace pace_;
    Batches batches_{*this, mutex_, idle_, pace_};
    std::string heard_;
    int left_ = 100;
};

TEST_F(BatchesTest, what_is_appended_is_read_at_each_poll_and_the_chunk_is_given_back_at_the_end) {
    Room first, second;
    wire::BatchWriter a = follow(domain_[0], first), b = follow(domain_[1], second);
    EXPECT_TRUE(idle_.is_wanted());
    EXPECT_TRUE(batches_.any());
    EXPECT_TRUE(batches_.is_quiet());
    append(a, "one");
    EXPECT_FALSE(batches_.is_quiet());
    append(b, "1");
    append(b, "2");
    EXPECT_EQ(batches_.run(false), 3);
    EXPECT_EQ(take(), "0:one 1:1 1:2 ");
    EXPECT_EQ(domain_[0].arriving, Incoming::State::kBatch);
    append(a, "two");
    a.close();
    EXPECT_EQ(batches_.run(false), 1);
    EXPECT_EQ(take(), "0:two end0 ");
    EXPECT_EQ(domain_[0].arriving, Incoming::State::kIdle);
    EXPECT_TRUE(batches_.any());
    b.close();
    batches_.run(false);
    EXPECT_EQ(take(), "end1 ");
    EXPECT_FALSE(batches_.any());
}

TEST_F(BatchesTest, a_poll_hands_up_no_more_than_it_may_and_the_next_goes_on_there) {
    Room room;
    wire::BatchWriter writer = follow(domain_[2], room);
    for (const char* text : {"a", "b", "c"}) append(writer, text);
    left_ = 2;
    EXPECT_EQ(batches_.read(domain_[2], 9), 2);
    EXPECT_EQ(batches_.read(domain_[2], 9), 0);
    left_ = 9;
    EXPECT_EQ(batches_.read(domain_[2], 1), 1);
    EXPECT_EQ(take(), "2:a 2:b 2:c ");
}

TEST_F(BatchesTest, a_message_that_no_correct_peer_appends_is_refused_behind_those_before_it) {
    for (const bool taken : {true, false}) {
        Room room;
        wire::BatchWriter writer = follow(domain_[0], room);
        append(writer, "right");
        append(writer, "wrong", taken ? 66 : 1);
        const std::uint64_t beyond = std::bit_cast<std::uint64_t>(Enclosed{5000, 1, 0, Enclosed::kMessage});
        if (!taken) std::memcpy(room.bytes.data() + wire::enclosed_bytes(5), &beyond, sizeof beyond);
        EXPECT_THROW(batches_.read(domain_[0], 9), Failure);
        EXPECT_EQ(take(), taken ? "0:right 0:wrong " : "0:right ");
        batches_.departed(domain_[0]);
    }
}

// Three peers that always have more than a poll hands up; one begins anew each time that its batch ends.
TEST_F(BatchesTest, peers_that_refill_their_batches_get_equal_shares) {
    std::array<Room, 3> rooms;
    std::array<wire::BatchWriter, 3> writers;
    for (flow::PeerIndex i = 0; i < 3; ++i) writers[i] = follow(domain_[i], rooms[i]);
    std::array<std::size_t, 3> got{};
    for (int poll = 0; poll < 300; ++poll) {
        for (flow::PeerIndex i = 0; i < 3; ++i) {
            if (!domain_[i].batch_in.is_open()) writers[i] = follow(domain_[i], rooms[i]);
            while (writers[i].is_open() && writers[i].holds(1)) append(writers[i], std::to_string(i));
            if (writers[i].is_open()) writers[i].close();
        }
        left_ = 4;
        batches_.run(false);
        const std::string heard = take();
        for (flow::PeerIndex i = 0; i < 3; ++i) {
            const std::string mark = std::to_string(i) + ":";
            for (std::size_t at = heard.find(mark); at != std::string::npos; at = heard.find(mark, at + 1))
                ++got[i];
        }
    }
    const auto [least, most] = std::minmax_element(got.begin(), got.end());
    EXPECT_GT(*least, 200U);
    EXPECT_LE(*most, *least + *least / 4);
}

// Nothing may pass what has been appended, until it has its end.
TEST_F(BatchesTest, while_one_is_open_its_peer_is_not_plain_and_it_is_closed_when_the_process_rests) {
    Room room;
    domain_[0].may_be_plain = true;
    domain_[0].plain = true;
    batches_.open(domain_[0], room.bytes.data(), room.bytes.size());
    EXPECT_FALSE(domain_[0].is_plain());
    EXPECT_FALSE(batches_.lets_sleep());
    batches_.run(false);
    EXPECT_TRUE(domain_[0].batch_out.is_open());
    for (std::uint64_t i = 0; i < engine::Pace::kLeastPolls; ++i) pace_.count_empty_poll();
    batches_.run(false);
    EXPECT_FALSE(domain_[0].batch_out.is_open());
    EXPECT_TRUE(domain_[0].is_plain());
    EXPECT_EQ(wire::BatchReader(room.bytes.data(), room.bytes.size()).next().kind, Enclosed::kEnd);
    EXPECT_FALSE(batches_.any());
}

TEST_F(BatchesTest, of_a_peer_that_has_ended_what_it_appended_is_read_before_it_departs) {
    Room to, from;
    batches_.open(domain_[0], to.bytes.data(), to.bytes.size());
    wire::BatchWriter writer = follow(domain_[0], from);
    append(writer, "last");
    batches_.ended(domain_[0]);
    EXPECT_FALSE(domain_[0].batch_out.is_open());
    EXPECT_FALSE(batches_.may_depart(domain_[0]));
    batches_.run(false);
    EXPECT_EQ(take(), "0:last ");
    EXPECT_TRUE(batches_.may_depart(domain_[0]));
    batches_.departed(domain_[0]);
    EXPECT_FALSE(batches_.any());
    EXPECT_FALSE(domain_[0].batch_in.is_open());
}

// ---- in an engine

PartyConfig few_slots(const char* policy) {
    PartyConfig config;
    config.flow_control = policy;
    config.slots_per_peer = 8;
    return config;
}

// Thesis section 7.3: with eight slots. Counts, whatever the machine.
TEST(BatchingTest, a_window_of_64_messages_takes_few_credits_with_eight_slots) {
    struct Case {
        std::size_t bytes;
        unsigned most;
    };
    for (const char* policy : {"static", "dynamic"})
        for (const auto& [bytes, most] :
             {Case{8, 4}, Case{40, 4}, Case{100, 6}, Case{256, 8}, Case{900, 10}}) {
            Party party(few_slots(policy));
            for (unsigned i = 0; i < 64; ++i) {
                EXPECT_EQ(party.send(0, 1, 1, pattern(bytes, i)), VELO_OK) << bytes << " " << i;
                if (i % 8 == 7) velo_progress(party[1].engine);  // the receiver alone
            }
            EXPECT_LE(counter(party[0], "data_packets"), most) << bytes;
            EXPECT_GE(counter(party[0], "batched_messages"), 64U - most) << bytes;
            EXPECT_EQ(counter(party[0], "messages_delayed"), 0U);
            velo_progress(party[1].engine);
            ASSERT_EQ(party[1].received.size(), 64U) << bytes;
            for (unsigned i = 0; i < 64; ++i)
                EXPECT_TRUE(party[1].received[i].data == pattern(bytes, i)) << i;
        }
}

// The same among many: a window of 64 messages from everyone to everyone else, each of whom looks now and
// then.
TEST(BatchingTest, windows_of_everyone_to_everyone_take_few_credits_with_eight_slots) {
    constexpr unsigned kWindow = 64;
    for (const char* policy : {"static", "dynamic", "lazy"})
        for (const std::size_t ranks : {4, 8, 16}) {
            PartyConfig config = few_slots(policy);
            config.size = ranks;
            config.lazy_slots = static_cast<std::uint32_t>(6 * (ranks - 1));
            config.outbox = std::size_t{2} << 20;
            Party party(config);
            for (std::size_t step = 1; step < ranks; ++step)
                for (std::size_t from = 0; from < ranks; ++from)
                    party.send(from, (from + step) % ranks, 1, pattern(8, 0));
            party.settle();
            std::vector<std::uint64_t> before(ranks);
            for (std::size_t rank = 0; rank < ranks; ++rank) {
                before[rank] = counter(party[rank], "data_packets");
                party[rank].received.clear();
            }
            for (std::size_t step = 1; step < ranks; ++step) {
                for (std::size_t from = 0; from < ranks; ++from)
                    for (unsigned i = 0; i < kWindow; ++i)
                        party.send(from, (from + step) % ranks, static_cast<std::uint8_t>(from),
                                   pattern(256, i));
                for (std::size_t rank = 0; rank < ranks; ++rank) velo_progress(party[rank].engine);
            }
            party.settle();
            for (std::size_t rank = 0; rank < ranks; ++rank) {
                EXPECT_LE((counter(party[rank], "data_packets") - before[rank]) * 8, kWindow * (ranks - 1))
                    << policy << " " << ranks;
                EXPECT_EQ(party[rank].received.size(), kWindow * (ranks - 1));
                std::vector<unsigned> next(ranks);
                for (const Received& message : party[rank].received)
                    ASSERT_TRUE(message.data == pattern(256, next[message.tag]++)) << policy << " " << ranks;
            }
        }
}

// The receiver looks at nothing, and the sender does not poll.
TEST(BatchingTest, what_follows_the_message_that_takes_the_last_credit_is_appended) {
    Party party(few_slots("static"));
    for (unsigned i = 0; i < 40; ++i) {
        ASSERT_EQ(party.send(0, 1, 1, pattern(8, i)), VELO_OK) << i;
        if (i == 4) party.settle();  // the credits at hand are few, and the sender has rested
    }
    velo_progress(party[1].engine);
    EXPECT_EQ(party[1].received.size(), 40U);
}

// A receiver that does not look for a while holds nobody up: its sender's credits carry a burst.
TEST(BatchingTest, six_credits_carry_a_thousand_short_messages) {
    Party party(few_slots("static"));
    unsigned sent = 0;
    while (sent < 2000 && party.send(0, 1, 1, pattern(8, sent)) == VELO_OK) ++sent;
    EXPECT_GE(sent, 1500U);
    party.settle();
    ASSERT_GE(party[1].received.size(), sent);
    for (unsigned i = 0; i < sent; ++i) ASSERT_TRUE(party[1].received[i].data == pattern(8, i)) << i;
}

// A REF and a batch that have not been read are a stream: what follows takes no chunk.
TEST(BatchingTest, behind_what_is_unread_the_next_batch_lies_in_memory_that_goes_round) {
    Party party(few_slots("static"));
    for (unsigned i = 0; i < 60; ++i) EXPECT_EQ(party.send(0, 1, 1, pattern(2000, i)), VELO_OK) << i;
    EXPECT_EQ(counter(party[0], "outbox_high_water"), 2304U + 32'960U) << "of chunks";
    party.settle();
    ASSERT_EQ(party[1].received.size(), 60U);
    for (unsigned i = 0; i < 60; ++i) ASSERT_TRUE(party[1].received[i].data == pattern(2000, i)) << i;
}

// A sender that never polls: the CREDITs that lie in its mailbox are taken when it has none left.
TEST(BatchingTest, who_only_sends_finds_the_credits_that_have_come) {
    Party party(few_slots("static"));
    for (unsigned i = 0; i < 400; ++i) {
        ASSERT_EQ(party.send(0, 1, 1, pattern(2000, i)), VELO_OK) << i;
        for (int poll = 0; poll < 3; ++poll) velo_progress(party[1].engine);
        ASSERT_TRUE(party[1].received.back().data == pattern(2000, i)) << i;
        party[1].received.clear();
    }
    EXPECT_LT(counter(party[0], "data_packets"), 200U);
}

// A callback that sends, in the middle of a batch.
TEST(BatchingTest, a_callback_that_answers_from_within_a_batch_answers_each_message) {
    Party party(few_slots("dynamic"));
    party[1].on_message = [&](const Received& message) { party.send(1, 0, message.tag, "answer"); };
    for (unsigned i = 0; i < 60; ++i) party.send(0, 1, static_cast<std::uint8_t>(i), "question");
    party.settle();
    ASSERT_EQ(party[0].received.size(), 60U);
    for (unsigned i = 0; i < 60; ++i) EXPECT_EQ(party[0].received[i].tag, static_cast<std::uint8_t>(i));
}

// After a rest the chunk is free, and the next message goes in a packet as before.
// How many chunks of rank 0 its peer has yet to read.
std::uint64_t unread_chunks(Party& party) {
    engine::SentReferences& sent = party[0].peers[1]->sent_references;
    sent.look();
    return sent.unread();
}

TEST(BatchingTest, a_batch_ends_when_its_sender_rests_and_its_chunk_comes_back) {
    Party party(few_slots("static"));
    for (unsigned i = 0; i < 20; ++i) party.send(0, 1, 1, pattern(8, i));
    EXPECT_EQ(unread_chunks(party), 1U);
    party.settle();
    EXPECT_EQ(unread_chunks(party), 0U) << "before another message goes";
    for (unsigned round = 1; round < 200; ++round) {
        for (unsigned i = 0; i < 20; ++i) party.send(0, 1, 1, pattern(8, i));
        party.settle();
    }
    EXPECT_EQ(counter(party[0], "batches"), 200U);
    EXPECT_EQ(counter(party[0], "outbox_full"), 0U);
    const std::uint64_t packets = counter(party[0], "data_packets");
    party.send(0, 1, 1, "alone");
    EXPECT_EQ(counter(party[0], "data_packets"), packets + 1);
    EXPECT_EQ(counter(party[0], "batches"), 200U);
}

}  // namespace
}  // namespace velo::test
