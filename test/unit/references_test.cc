// The unit that sends by reference, without an engine: chunks, REFs, and what becomes of both when a peer
// ends.
#include "engine/staging/references.h"

#include <gtest/gtest.h>

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
        const wire::Reference& last = reader_.last_reference;
        return {reinterpret_cast<const char*>(owner_at_reader_.segment.chunk(last.place).data), last.bytes};
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
    const wire::Reference first = reader_.last_reference;
    EXPECT_EQ(own_.mailbox().chunk(first.place).unread, 1U);
    EXPECT_EQ(send(next, true), next.size());
    EXPECT_NE(reader_.last_reference.place, first.place);
    EXPECT_EQ(referred(), next);
    EXPECT_EQ(own_.observer().counts.messages_by_reference, 2U);
}

// The largest chunk holds 32 KiB and some.
TEST_F(ReferencesTest, what_no_chunk_holds_leaves_in_parts_or_not_at_all) {
    const std::string text(100'000, 'x');
    EXPECT_FALSE(send(text, true).has_value());
    EXPECT_EQ(reader_.chunks_in_flight.chunks, 0U);
    const auto part = send(text, false);
    ASSERT_TRUE(part.has_value());
    EXPECT_LT(*part, text.size());
    EXPECT_EQ(referred(), text.substr(0, *part));
    EXPECT_EQ(own_.observer().counts.messages_by_reference, 0U);
}

// Between its end and its departure messages for it go in packets: nobody would give a chunk back.
TEST_F(ReferencesTest, a_peer_that_has_ended_holds_no_chunk_and_is_lent_none) {
    send(std::string(2000, 'x'), true);
    EXPECT_EQ(reader_.chunks_in_flight.chunks, 1U);
    reader_.ending = true;
    references_.ended(reader_);
    EXPECT_EQ(reader_.chunks_in_flight.chunks, 0U);
    EXPECT_FALSE(send(std::string(2000, 'x'), true).has_value());
    EXPECT_EQ(reader_.chunks_in_flight.chunks, 0U);
    references_.departed(reader_);
    EXPECT_EQ(reader_.unread_references(), 0U);
    EXPECT_STREQ(own_.staging().violation(), "");
}

}  // namespace
}  // namespace velo::test
