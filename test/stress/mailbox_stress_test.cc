// Many processes write to one mailbox as fast as they can, on the real memory model: each one's packets
// arrive in order and untorn, with credits and without.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <new>

#include "amount.h"
#include "mailbox/reader.h"
#include "mailbox/writer.h"

namespace velo::mailbox {
namespace {

constexpr std::uint32_t kWriters = 6;
constexpr std::uint32_t kCapacity = 24;
constexpr std::uint64_t kWordsInPayload = wire::kPayloadBytes / sizeof(std::uint64_t);

struct Shared {
    Pointers<> pointers;
    Slot<> slots[kCapacity];
    struct alignas(kPointerSpacing) Credit {
        std::atomic<std::uint32_t> returned;
    } credits[kWriters];
};

class StressTest : public ::testing::TestWithParam<bool> {
 protected:
    StressTest() {
        void* memory =
            mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        shared_ = new (memory) Shared{};
    }
    ~StressTest() override { munmap(shared_, sizeof(Shared)); }

    static void fill(std::byte* payload, std::uint32_t writer, std::uint64_t number) {
        std::array<std::uint64_t, kWordsInPayload> words;
        words.fill(number << 8 | writer);
        std::memcpy(payload, words.data(), sizeof words);
    }

    void write(std::uint32_t id) {
        Writer<> writer(&shared_->pointers, shared_->slots, kCapacity);
        std::uint32_t credits = kCapacity / kWriters, used = 0;
        for (std::uint64_t number = 0; number < test::stress_packets(); ++number) {
            Cursor at{};
            if (GetParam()) {
                while (used == credits + shared_->credits[id].returned.load(std::memory_order_acquire))
                    sched_yield();
                ++used;
                at = writer.reserve(1);
            } else {
                while (writer.try_reserve(1, 1, &at) == 0) sched_yield();
            }
            fill(writer.payload(at), id, number);
            writer.publish(at, {wire::PacketKind::kData, wire::kFirst, 0, wire::kPayloadBytes, 0, id});
        }
    }

    void read_all() {
        Reader<> reader(&shared_->pointers, shared_->slots, kCapacity);
        std::array<std::uint64_t, kWriters> next{};
        for (std::uint64_t total = 0; total < kWriters * test::stress_packets();) {
            std::uint64_t word = reader.poll();
            if (word == 0) {
                sched_yield();
                continue;
            }
            std::uint32_t writer = wire::Header::unpack(word).source;
            ASSERT_LT(writer, kWriters);
            std::array<std::uint64_t, kWordsInPayload> words;
            std::memcpy(words.data(), reader.payload(), sizeof words);
            std::uint64_t expected = next[writer]++ << 8 | writer;
            for (std::uint64_t value : words) ASSERT_EQ(value, expected) << "packet " << total;
            reader.advance(1);
            if (GetParam()) {
                shared_->credits[writer].returned.fetch_add(1, std::memory_order_release);
            } else {
                reader.publish();
            }
            ++total;
        }
    }

    Shared* shared_;
};

TEST_P(StressTest, packets_of_each_writer_arrive_in_order_and_whole) {
    std::array<pid_t, kWriters> writers{};
    for (std::uint32_t id = 0; id < kWriters; ++id) {
        writers[id] = fork();
        if (writers[id] == 0) {
            write(id);
            _exit(0);
        }
    }
    read_all();
    for (pid_t writer : writers) {
        if (HasFailure()) kill(writer, SIGKILL);
        int status = 0;
        ASSERT_EQ(waitpid(writer, &status, 0), writer);
        EXPECT_EQ(status, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutCredits, StressTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "credits" : "back_pressure"; });

}  // namespace
}  // namespace velo::mailbox
