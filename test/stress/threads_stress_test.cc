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
                                          false,
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

// Keeps the calling thread to one processor, of those that it may use: the first, or the last.
void stay_on(bool first) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0) return;
    int at = first ? 0 : CPU_SETSIZE - 1;
    while (!CPU_ISSET(at, &all)) at += first ? 1 : -1;
    CPU_ZERO(&one);
    CPU_SET(at, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

// The processor's store buffers: a sender's load of the word, whose line it has just reserved in, may pass
// its stores. Neither misses the other all the same.
TEST(DozeStressTest, a_packet_is_seen_before_the_sleep_or_its_sender_sees_the_sleeper) {
    struct alignas(kPointerSpacing) Line {
        std::atomic<std::uint64_t> value{0};
    };
    Line begun, ended;
    Pointers<> pointers{};
    std::vector<Slot<>> slots(kCapacity);
    const std::uint64_t rounds = test::stress_packets();
    constexpr std::uint32_t kSendersTurns = 4096;  // longer than the owner waits for stores
    constexpr std::uint32_t kStep = 16;
    auto wait_for = [](const Line& line, std::uint64_t round) {
        for (int looks = 0; line.value.load(std::memory_order_acquire) != round;)
            if (++looks % 1024 == 0) sched_yield();
    };
    auto linger = [](std::uint32_t turns) {
        for (; turns > 0; --turns) std::atomic_signal_fence(std::memory_order_seq_cst);
    };
    std::thread sender([&] {
        stay_on(false);
        std::mt19937 random(1);
        Writer<> writer(&pointers, slots.data(), kCapacity);
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            wait_for(begun, round);
            linger(kSendersTurns + random() % 128);
            const Cursor at = writer.reserve(1);
            std::memcpy(writer.payload(at), &round, sizeof round);
            writer.publish(at, {wire::PacketKind::kData, wire::kFirst, 0, sizeof round, 0, 0});
            platform::wake_if_asleep(pointers.doze);
            ended.value.store(round, std::memory_order_release);
        }
    });
    Reader<> reader(&pointers, slots.data(), kCapacity);
    std::uint64_t lost = 0, met = 0;
    std::thread owner([&] {
        stay_on(true);
        // That bring the owner's look to where the packet is seen in half of the rounds.
        std::uint32_t turns = 0;
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            begun.value.store(round, std::memory_order_release);
            linger(turns);
            bool seen = false;
            platform::doze(pointers.doze, 1, [&] {
                seen = reader.poll() != 0;
                if (seen) return false;
                wait_for(ended, round);
                // The sender will not come back, and whoever sleeps on 1 sleeps on.
                ++(pointers.doze.load(std::memory_order_relaxed) == 1 ? lost : met);
                return false;
            });
            // Without a bound, a sender that is not running would send it far away.
            turns = seen ? turns - std::min(turns, kStep) : std::min(turns + kStep, 4 * kSendersTurns);
            wait_for(ended, round);
            EXPECT_NE(reader.poll(), 0U);
            reader.advance(1);
        }
    });
    owner.join();
    sender.join();
    RecordProperty("met", std::to_string(met));
    EXPECT_EQ(lost, 0U) << "of " << rounds << " rounds; in " << met << " the sender saw the sleeper";
}

}  // namespace
}  // namespace velo::mailbox
