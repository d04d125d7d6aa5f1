// MPI_THREAD_MULTIPLE below MPI: several threads of several engines send, get, put, count and make progress
// at once. Built with ThreadSanitizer, this looks at every path of the engine that threads share.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "engine_party.h"

namespace velo::test {
namespace {

constexpr std::size_t kRanks = 4, kThreads = 4;
constexpr std::size_t kRegion = 64 * 1024;

// What one message carries in front of its pattern.
struct Stamp {
    std::uint16_t rank;
    std::uint16_t thread;
    std::uint32_t sequence;
};

unsigned seed_of(const Stamp& stamp) {
    return stamp.rank * 1000U + stamp.thread * 100U + stamp.sequence;
}

std::string stamped(const Stamp& stamp, std::size_t bytes) {
    std::string text(sizeof stamp, '\0');
    std::memcpy(text.data(), &stamp, sizeof stamp);
    return text + pattern(bytes, seed_of(stamp));
}

// Memory of a rank that others read, write and count in.
struct Memory {
    std::array<char, kRegion> constant;
    std::array<std::array<std::array<char, kRegion>, kThreads>, kRanks>
        written;  // by rank and thread that put it
    std::atomic<std::uint64_t> count{0};
};

struct Queued {
    velo_send send;
    std::string contents;
    std::atomic<int>* open;
};

class Worker {
 public:
    Worker(Party* party, std::vector<std::unique_ptr<Memory>>* memory, std::size_t rank, std::size_t thread)
        : party_(*party),
          memory_(*memory),
          rank_(rank),
          thread_(thread),
          dice_(static_cast<unsigned>(rank * 10 + thread)) {}

    void step() {
        const std::size_t to = (rank_ + 1 + dice_() % (kRanks - 1)) % kRanks;
        switch (dice_() % 5) {
            case 0:
                get(to);
                break;
            case 1:
                put(to);
                break;
            case 2:
                add(to);
                break;
            default:
                send(to);
        }
        wait_for(8);
    }

    void finish() { wait_for(0); }

    std::array<std::uint32_t, kRanks> sent{};
    std::uint64_t added = 0;

 private:
    velo_engine* engine() { return party_[rank_].engine; }
    velo_peer* peer(std::size_t to) { return party_[rank_].peers[to]; }

    void wait_for(int most) {
        while (open_.load(std::memory_order_acquire) > most) {
            if (velo_progress(engine()) == 0) std::this_thread::yield();
        }
    }

    std::size_t size() {
        static constexpr std::size_t kMost[] = {40, 400, 4000, 30'000};
        return dice_() % kMost[dice_() % 4];
    }

    void send(std::size_t to) {
        const Stamp stamp{static_cast<std::uint16_t>(rank_), static_cast<std::uint16_t>(thread_), sent[to]++};
        auto* queued = new Queued{{}, stamped(stamp, size()), &open_};
        queued->send.part[0] = queued->contents.data();
        queued->send.bytes[0] = queued->contents.size();
        queued->send.tag = 3;
        queued->send.done = [](velo_send* done, velo_status status) {
            EXPECT_EQ(status, VELO_OK);
            auto* self = reinterpret_cast<Queued*>(done);
            std::atomic<int>* open = self->open;
            delete self;
            open->fetch_sub(1, std::memory_order_release);
        };
        ++open_;
        const velo_status status = velo_send_start(engine(), peer(to), &queued->send);
        if (status == VELO_QUEUED) return;
        EXPECT_EQ(status, VELO_OK);
        delete queued;
        --open_;
    }

    static void done(void* argument, velo_status status, std::uint64_t) {
        EXPECT_EQ(status, VELO_OK);
        static_cast<std::atomic<int>*>(argument)->fetch_sub(1, std::memory_order_release);
    }
    void started(velo_status status) { EXPECT_GE(status, VELO_OK); }

    void get(std::size_t to) {
        const std::size_t bytes = 1 + size();
        std::memset(scratch_.data(), 0, bytes);
        finish();
        ++open_;
        started(velo_get(engine(), peer(to), scratch_.data(),
                         reinterpret_cast<std::uint64_t>(memory_[to]->constant.data()), bytes, &Worker::done,
                         &open_));
        finish();
        EXPECT_EQ(std::memcmp(scratch_.data(), memory_[to]->constant.data(), bytes), 0) << bytes;
    }

    void put(std::size_t to) {
        const std::size_t bytes = 1 + size();
        const std::string data = pattern(bytes, static_cast<unsigned>(dice_()));
        auto* target = memory_[to]->written[rank_][thread_].data();
        finish();
        ++open_;
        started(velo_put(engine(), peer(to), data.data(), reinterpret_cast<std::uint64_t>(target), bytes,
                         &Worker::done, &open_));
        finish();
        // Read back by the same way: what the kernel has written ThreadSanitizer does not see.
        ++open_;
        started(velo_get(engine(), peer(to), scratch_.data(), reinterpret_cast<std::uint64_t>(target), bytes,
                         &Worker::done, &open_));
        finish();
        EXPECT_EQ(std::memcmp(scratch_.data(), data.data(), bytes), 0) << bytes;
    }

    void add(std::size_t to) {
        ++added;
        ++open_;
        started(velo_atomic_start(engine(), peer(to), VELO_ATOMIC_ADD, 8,
                                  reinterpret_cast<std::uint64_t>(&memory_[to]->count), 1, 0, &Worker::done,
                                  &open_));
    }

    Party& party_;
    std::vector<std::unique_ptr<Memory>>& memory_;
    std::size_t rank_, thread_;
    std::minstd_rand dice_;
    std::array<char, kRegion> scratch_{};
    // Operations of this thread that have not completed; any thread of the rank may complete them.
    std::atomic<int> open_{0};
};

using Parameters = std::tuple<std::string, const char*>;

class EngineThreadsTest : public ::testing::TestWithParam<Parameters> {};

INSTANTIATE_TEST_SUITE_P(EveryPolicy, EngineThreadsTest,
                         ::testing::Combine(::testing::ValuesIn(policies()),
                                            ::testing::Values("auto", "copy")),
                         [](const auto& info) {
                             return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

TEST_P(EngineThreadsTest, four_threads_of_four_engines_do_everything_at_once) {
    PartyConfig config;
    config.size = kRanks;
    config.threads = true;
    config.flow_control = std::get<0>(GetParam()).c_str();
    config.single_copy = std::get<1>(GetParam());
    Party party(config);

    std::vector<std::unique_ptr<Memory>> memory;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
        memory.push_back(std::make_unique<Memory>());
        const std::string text = pattern(kRegion, static_cast<unsigned>(rank));
        std::memcpy(memory.back()->constant.data(), text.data(), kRegion);
    }

    // Of each sending thread the messages arrive in order. The callback runs in one thread at a time.
    std::array<std::array<std::array<std::uint32_t, kThreads>, kRanks>, kRanks> arrived{};
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
        party[rank].on_message = [&, rank](const Received& message) {
            Stamp stamp{};
            ASSERT_GE(message.data.size(), sizeof stamp);
            std::memcpy(&stamp, message.data.data(), sizeof stamp);
            ASSERT_LT(stamp.rank, kRanks);
            ASSERT_LT(stamp.thread, kThreads);
            EXPECT_EQ(stamp.sequence, arrived[rank][stamp.rank][stamp.thread]++);
            EXPECT_EQ(message.data, stamped(stamp, message.data.size() - sizeof stamp));
        };
    }

    const char* scale = std::getenv("VELO_THREAD_STEPS");
    const int steps = scale != nullptr ? std::atoi(scale) : 60;
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::thread> threads;
    std::atomic<std::size_t> busy{kRanks * kThreads};
    for (std::size_t index = 0; index < kRanks * kThreads; ++index) {
        const std::size_t rank = index / kThreads;
        workers.push_back(std::make_unique<Worker>(&party, &memory, rank, index % kThreads));
        threads.emplace_back([&, rank, worker = workers.back().get()] {
            for (int i = 0; i < steps; ++i) worker->step();
            worker->finish();
            --busy;
            // Others still need this rank.
            while (busy.load() > 0) {
                velo_progress(party[rank].engine);
                std::this_thread::yield();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    party.settle();

    std::uint64_t added = 0, counted = 0;
    for (std::size_t index = 0; index < workers.size(); ++index) {
        added += workers[index]->added;
        for (std::size_t to = 0; to < kRanks; ++to) {
            EXPECT_EQ(arrived[to][index / kThreads][index % kThreads], workers[index]->sent[to]);
        }
    }
    for (const auto& each : memory) counted += each->count.load();
    EXPECT_EQ(counted, added);
    for (std::size_t rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(party[rank].fatal.empty());
}

// One thread hears of a peer while another one connects to it: both find the same one.
TEST(FirstMeetingTest, a_peer_that_two_threads_meet_at_once_is_made_once) {
    constexpr std::size_t kVisitors = 6;
    for (unsigned round = 0; round < 40; ++round) {
        PartyConfig config;
        config.size = kVisitors + 1;
        config.threads = true;
        config.flow_control = "static";
        Party party(config, false);
        for (std::size_t from = 1; from <= kVisitors; ++from) {
            party.connect(from, 0);
            party.send(from, 0, 1, pattern(40, static_cast<unsigned>(from)));
        }
        std::atomic<bool> done{false}, ready{false};
        std::thread listens([&] {
            ready = true;
            while (!done) velo_progress(party[0].engine);
        });
        std::thread looks([&] {
            while (!done) EXPECT_LE(velo_counter_peers(party[0].engine), kVisitors);
        });
        while (!ready) std::this_thread::yield();
        for (std::size_t to = 1; to <= kVisitors; ++to) party.connect(0, to);
        done = true;
        listens.join();
        looks.join();
        party.settle();
        EXPECT_EQ(party[0].received.size(), kVisitors);
        for (std::size_t to = 1; to <= kVisitors; ++to) {
            EXPECT_EQ(meet(party[0], party[to]), party[0].peers[to]) << to;
            party.send(0, to, 1, "and back");
        }
        party.settle();
        for (std::size_t to = 1; to <= kVisitors; ++to) EXPECT_EQ(party[to].received.size(), 1U) << to;
    }
}

}  // namespace
}  // namespace velo::test
