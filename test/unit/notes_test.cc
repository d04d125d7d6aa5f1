// Memory that outlives a messenger.
#include "messaging/notes.h"

#include <gtest/gtest.h>

#include <string>

namespace velo::messaging {
namespace {

TEST(NotesTest, a_text_is_kept_until_its_send_is_done) {
    Notes notes(false);
    std::string text = "some credits";
    velo_send* const first = notes.keep(text.data(), text.size(), 3);
    velo_send* const second = notes.keep("x", 1, 4);
    text.assign(text.size(), '-');
    EXPECT_EQ(std::string(static_cast<const char*>(first->part[0]), first->bytes[0]), "some credits");
    EXPECT_EQ(first->bytes[1], 0U);
    EXPECT_EQ(first->tag, 3U);
    EXPECT_EQ(notes.waiting(), 2U);
    first->done(first, VELO_OK);
    EXPECT_EQ(notes.waiting(), 1U);
    Notes::drop(second);
    EXPECT_EQ(notes.waiting(), 0U);
}

TEST(NotesTest, a_part_that_nobody_has_dropped_ends_with_them) {
    Notes notes(true);
    void* const part = notes.take_part(100);
    std::memset(part, 1, 100);
    std::memset(notes.take_part(1), 2, 1);
    notes.drop_part(part);
    notes.drop_part(nullptr);
}

}  // namespace
}  // namespace velo::messaging
