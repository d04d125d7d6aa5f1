// Seeded interleavings of one reader and several writers of a small mailbox, at every atomic operation: no
// packet is lost, doubled, torn or overwritten, and each writer's packets stay in order.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "baton.h"
#include "mailbox/reader.h"
#include "mailbox/writer.h"

namespace velo::test {
namespace {

constexpr std::uint32_t kWriters = 3;
constexpr std::uint32_t kPackets = 12;  // of each writer

struct Contents {
    std::uint32_t writer, number;
};

using Pointers = mailbox::Pointers<ScheduledAtom>;
using Slot = mailbox::Slot<ScheduledAtom>;
using Writer = mailbox::Writer<ScheduledAtom>;
using Reader = mailbox::Reader<ScheduledAtom>;

class Interleaving {
 public:
    Interleaving(std::uint64_t seed, std::uint32_t capacity)
        : baton_(seed), capacity_(capacity), slots_(capacity) {}

    // Every writer reserves in runs of up to two slots, or one by one with credits that the reader returns.
    void run(bool credits) {
        for (auto& credit : credits_) credit = static_cast<int>(capacity_ / kWriters);
        std::vector<std::function<void()>> bodies;
        for (std::uint32_t writer = 0; writer < kWriters; ++writer) {
            bodies.emplace_back(
                [this, writer, credits] { credits ? write_credited(writer) : write_refusable(writer); });
        }
        bodies.emplace_back([this, credits] { read_all(credits); });
        baton_.run(bodies);
    }

 private:
    void store(Writer& writer, mailbox::Cursor at, Contents contents) {
        std::memcpy(writer.payload(at), &contents, sizeof contents);
        writer.publish(at, {wire::PacketKind::kData, wire::kFirst, 0, sizeof contents, 0, contents.writer});
    }

    void write_refusable(std::uint32_t id) {
        Writer writer(&pointers_, slots_.data(), capacity_);
        for (std::uint32_t number = 0; number < kPackets;) {
            mailbox::Cursor at{};
            std::uint32_t count = writer.try_reserve(1, std::min(2U, kPackets - number), &at);
            for (; count > 0; --count, at.advance(capacity_, 1)) store(writer, at, {id, number++});
        }
    }

    void write_credited(std::uint32_t id) {
        Writer writer(&pointers_, slots_.data(), capacity_);
        for (std::uint32_t number = 0; number < kPackets; ++number) {
            while (credits_[id] == 0) Baton::point();
            --credits_[id];
            store(writer, writer.reserve(1), {id, number});
        }
    }

    void read_all(bool credits) {
        Reader reader(&pointers_, slots_.data(), capacity_);
        std::array<std::uint32_t, kWriters> next{};
        for (std::uint32_t total = 0; total < kWriters * kPackets;) {
            std::uint64_t word = reader.poll();
            if (word == 0) continue;
            Contents contents;
            std::memcpy(&contents, reader.payload(), sizeof contents);
            ASSERT_LT(contents.writer, kWriters);
            ASSERT_EQ(wire::Header::unpack(word).source, contents.writer);
            ASSERT_EQ(contents.number, next[contents.writer]++);
            ASSERT_LE(reader.occupancy(), capacity_);
            reader.advance(1);
            reader.publish();
            if (credits) ++credits_[contents.writer];
            ++total;
        }
        EXPECT_EQ(reader.poll(), 0U);
    }

    Baton baton_;
    std::uint32_t capacity_;
    Pointers pointers_{};
    std::vector<Slot> slots_;
    std::array<int, kWriters> credits_{};
};

std::uint64_t seeds() {
    const char* scale = std::getenv("VELO_INTERLEAVINGS");
    return scale != nullptr ? std::strtoull(scale, nullptr, 10) : 60;
}

TEST(MailboxInterleavingTest, writers_that_a_full_mailbox_refuses_lose_nothing) {
    for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        Interleaving(seed, 3 + static_cast<std::uint32_t>(seed % 4)).run(false);
        ASSERT_FALSE(HasFailure());
    }
}

TEST(MailboxInterleavingTest, writers_with_credits_never_meet_in_a_slot) {
    for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        Interleaving(seed, 3 + static_cast<std::uint32_t>(seed % 4)).run(true);
        ASSERT_FALSE(HasFailure());
    }
}

}  // namespace
}  // namespace velo::test
