// Threads on one mapping of a mailbox, with the link that stores packets in production: ThreadSanitizer sees
// every access of both sides, and reports each that the memory orders do not keep apart.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "amount.h"
#include "fabric/shm/shm_link.h"
#include "mailbox/reader.h"
#include "mailbox/writer.h"
#include "platform/doze.h"

namespace velo::mailbox {
namespace {

constexpr std::uint32_t kWriters = 4;
constexpr std::uint32_t kQuota = 9;
// Runs end anywhere in the ring, and go over its end.
constexpr std::uint32_t kCapacity = kWriters * kQuota + 1;
constexpr std::uint32_t kMostPackets = 7;  // of a message
constexpr wire::Framing kFraming{200, 4, 2};

// Sizes and contents of a sender's messages; sender and receiver draw the same.
class Messages {
 public:
    explicit Messages(std::uint32_t sender) : random_(sender) {}

    const std::vector<std::byte>& next() {
        bytes_.resize(1 + random_() % wire::run_capacity(kMostPackets));
        std::uint32_t word = random_();
        for (std::byte& byte : bytes_)
            byte = static_cast<std::byte>((word = word * 1664525 + 1013904223) >> 24);
        return bytes_;
    }
    std::uint32_t credits() const { return 1 + static_cast<std::uint32_t>(bytes_.size()) % 999; }

 private:
    std::mt19937 random_;
    std::vector<std::byte> bytes_;
};

class ThreadsStressTest : public ::testing::TestWithParam<bool> {
 protected:
    static std::uint64_t messages_each() { return test::stress_packets() / 4; }

    void write(std::uint32_t id) {
        fabric::shm::ShmLink link(Writer<>(&pointers_, slots_.data(), kCapacity), id);
        Messages messages(id);
        std::uint32_t used = 0;
        for (std::uint64_t number = 0; number < messages_each(); ++number) {
            const std::vector<std::byte>& message = messages.next();
            for (std::size_t sent = 0; sent < message.size();) {
                const std::size_t rest = message.size() - sent;
                const auto wanted = static_cast<std::uint32_t>(kFraming.packets_for(rest));
                const std::uint32_t credits =
                    GetParam() ? kQuota - used + returned_[id].credits.load(std::memory_order_acquire)
                               : wanted;
                const std::uint32_t packets = std::min(wanted, credits);
                const bool spare = packets == wanted && kFraming.room_for_piggyback(rest);
                fabric::Carried carried{};
                if (packets > 0) {
                    carried = link.carry({{{message.data(), nullptr}, {message.size(), 0}},
                                          sent,
                                          packets,
                                          wire::PacketKind::kData,
                                          0,
                                          0,
                                          spare ? messages.credits() : 0,
                                          GetParam(),
                                          false,
                                          number % 2 == 0,
                                          kFraming});
                }
                if (carried.packets == 0) sched_yield();
                used += carried.packets;
                sent += carried.bytes;
            }
        }
    }

    void read_all() {
        Reader<> reader(&pointers_, slots_.data(), kCapacity);
        struct Sender {
            Messages messages;
            std::vector<std::byte> expected;
            std::size_t received = 0;
        };
        std::vector<Sender> senders;
        for (std::uint32_t id = 0; id < kWriters; ++id) senders.push_back({Messages(id), {}});
        std::array<std::byte, wire::run_capacity(kMostPackets)> run;
        for (std::uint64_t left = kWriters * messages_each(); left > 0;) {
            const std::uint64_t word = reader.poll();
            if (word == 0) {
                sched_yield();
                continue;
            }
            const wire::Header header = wire::Header::unpack(word);
            ASSERT_LT(header.source, kWriters);
            Sender& sender = senders[header.source];
            if (header.flags & wire::kFirst) {
                ASSERT_EQ(sender.received, sender.expected.size());
                sender.expected = sender.messages.next();
                sender.received = 0;
            }
            const std::size_t head = std::min<std::size_t>(header.length, reader.contiguous());
            std::memcpy(run.data(), reader.payload(), head);
            std::memcpy(run.data() + head, reader.start(), header.length - head);
            ASSERT_LE(sender.received + header.length, sender.expected.size());
            ASSERT_EQ(std::memcmp(run.data(), sender.expected.data() + sender.received, header.length), 0)
                << "sender " << header.source << ", " << left << " messages before the end";
            sender.received += header.length;
            if (header.flags & wire::kPiggyback) {
                ASSERT_EQ(reader.piggyback(header), sender.messages.credits());
            }
            reader.advance(header.packets());
            if (GetParam()) {
                returned_[header.source].credits.fetch_add(header.packets(), std::memory_order_release);
            } else {
                reader.publish();
            }
            left -= (header.flags & wire::kLast) != 0;
        }
        EXPECT_EQ(reader.poll(), 0U);
        EXPECT_EQ(reader.occupancy(), 0U);
    }

    Pointers<> pointers_{};
    std::vector<Slot<>> slots_{kCapacity};
    struct alignas(kPointerSpacing) Returned {
        std::atomic<std::uint32_t> credits{0};
    };
    std::array<Returned, kWriters> returned_;
};

TEST_P(ThreadsStressTest, messages_of_all_lengths_arrive_in_order_and_whole) {
    std::vector<std::thread> writers;
    for (std::uint32_t id = 0; id < kWriters; ++id) writers.emplace_back([this, id] { write(id); });
    read_all();
    // A writer that the reader has left alone waits for ever.
    if (HasFatalFailure()) std::abort();
    for (std::thread& writer : writers) writer.join();
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutCredits, ThreadsStressTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "credits" : "back_pressure"; });

// The processor's store buffers: a sender's load of the word may pass its stores. Neither misses the other
// all the same.
TEST(DozeStressTest, a_store_is_seen_before_the_sleep_or_its_sender_sees_the_sleeper) {
    struct alignas(kPointerSpacing) Line {
        std::atomic<std::uint64_t> value{0};
    };
    Line begun, payload, mailbox, ended;
    alignas(kPointerSpacing) std::atomic<std::uint32_t> word{0};
    const std::uint64_t rounds = test::stress_packets();
    auto wait_for = [](const Line& line, std::uint64_t round) {
        for (int looks = 0; line.value.load(std::memory_order_acquire) != round;)
            if (++looks % 1024 == 0) sched_yield();
    };
    std::thread sender([&] {
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            wait_for(begun, round);
            for (std::uint64_t i = 0; i < round % 64; ++i)
                std::atomic_signal_fence(std::memory_order_seq_cst);
            payload.value.store(round, std::memory_order_relaxed);
            mailbox.value.store(round, std::memory_order_release);
            platform::wake_if_asleep(word);
            ended.value.store(round, std::memory_order_release);
        }
    });
    std::uint64_t lost = 0, met = 0;
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        payload.value.store(0, std::memory_order_relaxed);
        begun.value.store(round, std::memory_order_release);
        platform::doze(word, 1, [&] {
            if (mailbox.value.load(std::memory_order_acquire) == round) return false;
            wait_for(ended, round);
            // The sender will not come back, and whoever sleeps on 1 sleeps on.
            ++(word.load(std::memory_order_relaxed) == 1 ? lost : met);
            return false;
        });
        wait_for(ended, round);
    }
    sender.join();
    RecordProperty("met", std::to_string(met));
    EXPECT_EQ(lost, 0U) << "of " << rounds << " rounds; in " << met << " the sender saw the sleeper";
}

}  // namespace
}  // namespace velo::mailbox
