// The unit that sends by reference, without an engine: chunks, REFs, and what becomes of both when a peer
// ends.
#include "engine/staging/references.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>

#include "node_process.h"

namespace velo::test {
namespace {

using engine::Peer;
using engine::References;

class ReferencesTest : public ::testing::Test {
 protected:
    std::optional<std::size_t> send(const std::string& text, bool whole) {
        const fabric::MessageView message{{reinterpret_cast<const std::byte*>(text.data()), nullptr},
                                          {text.size(), 0}};
        return references_.send(reader_, {message, 0, wire::PacketKind::kData, 1, 0, whole});
    }
    // What the reader's segment of the owner has at the last REF.
    std::string referred() {
        const wire::Reference& last = reader_.sent_references.last;
        return {reinterpret_cast<const char*>(owner_at_reader_.segment.chunk(last.place)), last.bytes};
    }

    NodeProcess own_{10, "static"}, other_{11, "static"};
    Peer& owner_at_reader_ = other_.expect(own_);
    Peer& reader_ = own_.expect(other_);
    References references_{own_.staging(), own_.observer().counts};
};

TEST_F(ReferencesTest, a_message_lies_where_its_REF_says_until_the_reader_has_read_it) {
    const std::string text(2000, 'x'), next(2000, 'y');
    EXPECT_EQ(send(text, true), text.size());
    EXPECT_EQ(referred(), text);
    const wire::Reference first = reader_.sent_references.last;
    EXPECT_EQ(send(next, true), next.size());
    EXPECT_NE(reader_.sent_references.last.place, first.place);
    EXPECT_EQ(referred(), next);
    EXPECT_EQ(own_.observer().counts.messages_by_reference, 2U);
}

// The largest chunk holds 32 KiB and some.
TEST_F(ReferencesTest, what_no_chunk_holds_leaves_in_parts_or_not_at_all) {
    const std::string text(100'000, 'x');
    EXPECT_FALSE(send(text, true).has_value());
    EXPECT_EQ(reader_.sent_references.chunks, 0U);
    const auto part = send(text, false);
    ASSERT_TRUE(part.has_value());
    EXPECT_LT(*part, text.size());
    EXPECT_EQ(referred(), text.substr(0, *part));
    EXPECT_EQ(own_.observer().counts.messages_by_reference, 0U);
}

// Between its end and its departure messages for it go in packets: nobody would give a chunk back.
TEST_F(ReferencesTest, a_peer_that_has_ended_holds_no_chunk_and_is_lent_none) {
    send(std::string(2000, 'x'), true);
    EXPECT_EQ(reader_.sent_references.chunks, 1U);
    reader_.ending = true;
    references_.ended(reader_);
    EXPECT_EQ(reader_.sent_references.chunks, 0U);
    EXPECT_FALSE(send(std::string(2000, 'x'), true).has_value());
    EXPECT_EQ(reader_.sent_references.chunks, 0U);
    references_.departed(reader_);
    EXPECT_EQ(reader_.sent_references.unread(), 0U);
    EXPECT_STREQ(own_.staging().violation(), "");
}

// A look or a REF may be late, or lie: never does more count as unread than before, or less than nothing.
TEST(SentReferencesTest, what_has_been_read_is_what_the_last_look_or_REF_has_told_at_most) {
    engine::SentReferences sent;
    std::atomic<std::uint32_t> count{0};
    sent.follow(count);
    sent.sent = 5;
    sent.tell(2);
    sent.note_told();
    EXPECT_EQ(sent.unread(), 3U);
    count = 4;
    sent.look();
    EXPECT_EQ(sent.unread(), 1U);
    for (const std::uint32_t late_or_a_lie : {3U, 6U, UINT32_MAX}) {
        count = late_or_a_lie;
        sent.look();
        EXPECT_EQ(sent.unread(), 1U) << late_or_a_lie;
    }
    sent.note_told();
    EXPECT_EQ(sent.unread(), 1U);
    sent.forget();
    EXPECT_EQ(sent.unread(), 0U);
    sent.look();
    EXPECT_EQ(sent.unread(), 0U);
}

TEST(SentReferencesTest, a_look_counts_beyond_32_bits) {
    engine::SentReferences sent;
    std::atomic<std::uint32_t> count{UINT32_MAX};
    sent.follow(count);
    sent.sent = (std::uint64_t{1} << 32) + 1;
    sent.read = sent.sent - 2;
    sent.look();
    EXPECT_EQ(sent.unread(), 2U);
    count = 1;
    sent.look();
    EXPECT_EQ(sent.unread(), 0U);
}

// That is where the next message is likely to lie.
TEST(SentReferencesTest, the_last_that_has_been_read_is_known_if_it_is_one_of_two) {
    engine::SentReferences sent;
    sent.sent = 7;
    sent.last = {100, 1};
    sent.before_last = {200, 2};
    EXPECT_EQ(sent.read_last().bytes, 0U);
    sent.tell(6);
    EXPECT_EQ(sent.read_last().place, 200U);
    sent.tell(7);
    EXPECT_EQ(sent.read_last().place, 100U);
}

}  // namespace
}  // namespace velo::test
