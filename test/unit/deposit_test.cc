// Deposits: what an owner stores of long data before they are got, in rings that are cut from rotating
// memory, and which data so the table of routes says.
#include "rma/deposit.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine_party.h"
#include "fabric/shm/segment.h"
#include "flow/deposit_rings.h"

namespace velo::test {
namespace {

// The second owns memory that the first gets.
class DepositTest : public ::testing::Test {
 protected:
    static constexpr std::size_t kShort = 16384;

    std::uint64_t begin(std::size_t bytes) { return begin_of(source_, bytes); }
    std::uint64_t begin_of(const std::string& data, std::size_t bytes) {
        return velo_deposit_begin(party_[1].peers[0], data.data(), bytes);
    }
    void store(std::uint64_t deposit) { velo_deposit_store(party_[1].peers[0], deposit); }
    void end(std::uint64_t deposit) { velo_deposit_end(party_[1].peers[0], deposit); }
    static std::uint32_t number_of(std::uint64_t deposit) { return VELO_DEPOSIT_NUMBER(deposit); }
    std::string get(std::uint64_t deposit, std::size_t offset, std::size_t end) {
        return get_from(source_.data() + offset, end - offset, deposit);
    }
    std::string get_from(const char* memory, std::size_t bytes, std::uint64_t deposit) {
        std::string target(bytes, '\0');
        int calls = 0;
        const velo_status status = velo_get_deposited(
            party_[0].engine, party_[0].peers[1], number_of(deposit), target.data(),
            reinterpret_cast<std::uint64_t>(memory), bytes,
            [](void* count, velo_status, std::uint64_t) { ++*static_cast<int*>(count); }, &calls);
        EXPECT_GE(status, VELO_OK);
        // Another thread may have to wait for a processor.
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        for (int i = 0; calls == 0 && (owner_is_driven_ || i < 1000); ++i) {
            if (std::chrono::steady_clock::now() > deadline) break;
            if (owner_is_driven_) {
                velo_progress(party_[0].engine);
                std::this_thread::yield();
            } else {
                party_.step();
            }
        }
        if (calls != 1) throw std::runtime_error("a get that does not end");  // its target is here
        return target;
    }
    std::uint64_t read() { return counter(party_[0], "staged_gets"); }
    // As the owner does with each message.
    void look_at_invariants() {
        party_.send(0, 1, 1, "a message");
        party_.settle();
    }
    static std::size_t room_of(Member& member) { return segment_of(member.engine).deposit_plan().bytes(); }

    static PartyConfig config() {
        PartyConfig config;
        config.flow_control = "static";
        config.slots_per_peer = 64;
        return config;
    }

    Party party_{config()};
    bool owner_is_driven_ = false;  // by another thread
    // For all rings together, and more than that.
    const std::size_t room_ = room_of(party_[1]), beyond_ = room_ + 100'000;
    std::string source_ = pattern(beyond_, 1), before_ = source_, after_ = pattern(beyond_, 2);
};

TEST_F(DepositTest, what_is_deposited_is_got_from_there) {
    const std::uint64_t deposit = begin(kShort);
    ASSERT_NE(deposit, 0U);
    store(deposit);
    source_ = after_;
    EXPECT_EQ(get(deposit, 0, kShort), before_.substr(0, kShort));
    EXPECT_EQ(read(), 1U);
    end(deposit);
}

TEST_F(DepositTest, what_is_not_there_in_time_comes_from_its_owners_memory) {
    const std::uint64_t deposit = begin(beyond_);
    store(deposit);
    source_ = after_;
    EXPECT_TRUE(get(deposit, 0, beyond_) == before_.substr(0, room_) + after_.substr(room_));
    EXPECT_EQ(read(), 0U);
}

TEST_F(DepositTest, what_its_peer_makes_room_for_is_stored_in_progress) {
    cpu_set_t processors;
    ASSERT_EQ(sched_getaffinity(0, sizeof processors, &processors), 0);
    if (CPU_COUNT(&processors) < 2) GTEST_SKIP() << "needs two threads that run at the same time";
    // Of the processors that this thread may use, the first in order or the others.
    const auto use = [&](bool first) {
        int at = 0;
        while (!CPU_ISSET(at, &processors)) ++at;
        cpu_set_t one, some;
        CPU_ZERO(&one);
        CPU_SET(at, &one);
        CPU_XOR(&some, &processors, &one);
        EXPECT_EQ(sched_setaffinity(0, sizeof some, first ? &one : &some), 0);
    };
    owner_is_driven_ = true;
    std::atomic<std::uint32_t> begun = 0;  // 0: the owner's turn
    std::atomic<bool> over = false;
    std::atomic<int> refused = 0;
    std::thread owner([&] {
        use(true);
        while (!over) {
            const std::uint64_t deposit = begin(beyond_);
            refused += deposit == 0;
            store(deposit);
            begun = deposit;
            while (begun != 0 && !over) velo_progress(party_[1].engine);
            end(deposit);
        }
    });
    use(false);
    // How often both have their processor is not in this test's hands.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::uint64_t wrong = 0;
    while (read() < 20 && refused == 0 && std::chrono::steady_clock::now() < deadline) {
        while (begun == 0 && refused == 0) std::this_thread::yield();
        wrong += get(begun, 0, beyond_) != source_;
        begun = 0;
    }
    over = true;
    owner.join();
    EXPECT_EQ(sched_setaffinity(0, sizeof processors, &processors), 0);
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(read(), 20U);
}

TEST_F(DepositTest, it_is_read_once) {
    const std::uint64_t deposit = begin(2 * kShort);
    store(deposit);
    source_ = after_;
    EXPECT_EQ(get(deposit, 0, kShort), before_.substr(0, kShort));
    EXPECT_EQ(get(deposit, 0, 2 * kShort), after_.substr(0, 2 * kShort))
        << "the beginning may have been overwritten";
}

TEST_F(DepositTest, other_memory_than_what_was_stored_is_not_taken_from_there) {
    const std::uint64_t deposit = begin(kShort);
    store(deposit);
    source_ = after_;
    EXPECT_EQ(get(deposit, 4096, kShort), after_.substr(4096, kShort - 4096));
    EXPECT_EQ(read(), 0U);
}

TEST_F(DepositTest, a_number_that_leads_nowhere_does_no_harm) {
    const std::uint64_t deposit = number_of(begin(kShort));
    store(deposit);
    source_ = after_;
    for (const std::uint64_t wrong : {std::uint64_t{0}, deposit + 1, deposit + 64, std::uint64_t{255}})
        EXPECT_EQ(get(wrong, 0, kShort), after_.substr(0, kShort)) << wrong;
    EXPECT_EQ(read(), 0U);
}

// Whoever sends many does not hear of their ends meanwhile.
TEST_F(DepositTest, what_has_been_read_makes_room_and_its_end_harms_nobody) {
    const std::size_t bytes = room_ / 4;
    std::vector<std::uint64_t> deposits;
    for (int i = 0; i < 20; ++i) {
        deposits.push_back(begin(bytes));
        ASSERT_NE(deposits.back(), 0U) << i;
        store(deposits.back());
        EXPECT_TRUE(get(deposits.back(), 0, bytes) == before_.substr(0, bytes));
    }
    const std::uint64_t last = begin(bytes);
    store(last);
    for (const std::uint64_t deposit : deposits) end(deposit);
    source_ = after_;
    EXPECT_TRUE(get(last, 0, bytes) == before_.substr(0, bytes));
    EXPECT_EQ(read(), 21U);
    end(last);
    look_at_invariants();
}

// Three times as much as there is room for: what the peer has read makes room for what waits.
TEST_F(DepositTest, as_many_wait_for_room_as_have_a_number) {
    constexpr unsigned kMessages = flow::DepositPlan::kRings;
    const std::size_t bytes = room_ / 20;
    for (const bool backwards : {false, true}) {
        std::vector<std::string> data;
        std::vector<std::uint64_t> deposits;
        std::set<std::uint32_t> numbers;
        for (unsigned i = 0; i < kMessages; ++i) data.push_back(pattern(bytes, i));
        for (const std::string& message : data) {
            deposits.push_back(begin_of(message, bytes));
            numbers.insert(number_of(deposits.back()));
            store(deposits.back());
        }
        EXPECT_EQ(numbers.size(), kMessages);
        EXPECT_EQ(numbers.count(0), 0U);
        EXPECT_EQ(begin(bytes), 0U) << "there are no more numbers";
        end(0);
        const std::uint64_t before = read();
        for (unsigned i = 0; i < kMessages; ++i) {
            const unsigned which = backwards ? kMessages - 1 - i : i;
            velo_progress(party_[1].engine);
            EXPECT_TRUE(get_from(data[which].data(), bytes, deposits[which]) == data[which]) << which;
            if (!backwards) continue;
            end(deposits[which]);
            std::fill(data[which].begin(), data[which].end(), 'x');  // it is the program's again
        }
        if (backwards) {
            EXPECT_GT(read() - before, 0U);
            EXPECT_LT(read() - before, kMessages) << "those without room come from their owner's memory";
            continue;
        }
        EXPECT_EQ(read() - before, kMessages);
        for (const std::uint64_t deposit : deposits) end(deposit);
    }
    look_at_invariants();
}

// Messages by reference, of which the fifth lies there, are cut from the same memory.
TEST_F(DepositTest, what_waits_for_room_has_it_when_a_message_that_was_in_the_way_has_been_read) {
    const std::uint64_t first = begin(kShort);
    store(first);
    for (int i = 0; i < 5; ++i) {
        party_.send(1, 0, 1, std::string(3000, 'm'));
        party_.send(0, 1, 1, "an answer");  // no burst, which would go in a batch
        velo_progress(party_[1].engine);
    }
    const std::uint64_t second = begin(room_);
    ASSERT_NE(number_of(second), 0U);
    store(second);
    end(first);
    for (int i = 0; i < 3; ++i) velo_progress(party_[1].engine);
    for (int i = 0; i < 20; ++i) velo_progress(party_[0].engine);
    EXPECT_EQ(party_[0].received.size(), 5U);
    for (int i = 0; i < 3; ++i) velo_progress(party_[1].engine);
    EXPECT_TRUE(get(second, 0, room_) == source_.substr(0, room_));
    EXPECT_EQ(read(), 1U);
    end(second);
}

// Its turn may come before its owner has told the peer of it.
TEST_F(DepositTest, a_turn_that_comes_before_the_peer_is_told_leaves_nothing_to_do_behind) {
    const std::uint64_t first = begin(room_), second = begin(room_);
    ASSERT_NE(number_of(second), 0U);
    end(first);
    store(second);
    end(second);
    look_at_invariants();
}

TEST_F(DepositTest, none_is_taken_for_another_one_of_the_same_memory_which_may_end_meanwhile) {
    const std::uint64_t first = begin(room_), second = begin(room_);
    store(first);
    store(second);
    EXPECT_TRUE(get(second, 0, room_) == source_.substr(0, room_)) << "waits for the first one's";
    EXPECT_EQ(read(), 0U);
    EXPECT_TRUE(get(first, 0, room_) == source_.substr(0, room_));
    EXPECT_EQ(read(), 1U);
    for (const std::uint64_t deposit : {first, second}) end(deposit);
    look_at_invariants();
}

// Others from the same memory follow, which the program may have changed.
TEST_F(DepositTest, nothing_is_taken_for_what_was_in_a_ring_before) {
    const std::size_t all = room_ / 4;
    std::vector<std::uint64_t> deposits;
    for (unsigned round = 0; round < 84; ++round) {
        const std::string buffer = pattern(all, round);
        std::copy(buffer.begin(), buffer.end(), source_.begin());
        for (unsigned i = 0; i < 5; ++i) {
            deposits.push_back(begin(all));
            store(deposits.back());
        }
        for (unsigned i = 0; i < 5; ++i) {
            // Some are read out of turn, or in part, or not at all.
            const unsigned which = round % 3 == 0 ? 4 - i : i;
            const std::size_t bytes = (round + i) % 4 == 0 ? all / 2 : all;
            const bool is_got = (round + i) % 7 != 0;
            ASSERT_TRUE(!is_got || get(deposits[which], 0, bytes) == buffer.substr(0, bytes))
                << round << " " << i;
            end(deposits[which]);
            if (i % 2 == 0) velo_progress(party_[1].engine);
        }
        deposits.clear();
    }
    EXPECT_GT(read(), 84U);
}

// Of the first the peer has read everything, and its end comes late.
TEST_F(DepositTest, an_end_that_comes_late_ends_no_other_one) {
    const std::uint64_t first = begin(kShort);
    store(first);
    EXPECT_EQ(get(first, 0, kShort), source_.substr(0, kShort));
    end(begin(room_));  // needs the room of the first
    for (std::uint32_t i = 0; i < flow::DepositPlan::kRings; ++i) {
        const std::uint64_t deposit = begin(kShort);
        ASSERT_NE(deposit, first) << i;
        store(deposit);
        if (number_of(deposit) == number_of(first)) {
            end(first);
            EXPECT_EQ(get(deposit, 0, kShort), source_.substr(0, kShort));
        }
        end(deposit);
    }
    EXPECT_EQ(read(), 2U);
}

TEST_F(DepositTest, messages_beside_it_go_by_reference_as_always) {
    for (int i = 0; i < 2; ++i) ASSERT_NE(begin(room_ / 3), 0U);
    for (unsigned i = 0; i < 300; ++i) party_.send(1, 0, 1, pattern(2000, i));
    party_.settle();
    ASSERT_EQ(party_[0].received.size(), 300U);
    for (unsigned i = 0; i < 300; ++i) ASSERT_TRUE(party_[0].received[i].data == pattern(2000, i)) << i;
    EXPECT_GT(counter(party_[1], "messages_by_reference"), 0U);
}

TEST_F(DepositTest, only_data_for_which_it_is_worth_it_is_stored) {
    EXPECT_EQ(begin(4096), 0U);
    EXPECT_EQ(begin((std::size_t{64} << 20) + 1), 0U);
}

// Each limit differs from all others.
class RoutesOfDataTest : public ::testing::Test {
 protected:
    struct Limits {
        bool far, both_ways;
        std::size_t staged, cold, both_copy;
    };
    static constexpr Limits kLimits[] = {{false, false, 20'000, 24'000, 28'000},
                                         {false, true, 32'000, 36'000, 40'000},
                                         {true, false, 44'000, 48'000, 52'000},
                                         {true, true, 56'000, 60'000, 64'000}};
    static PartyConfig config_of(const char* single_copy) {
        PartyConfig config;
        config.routes =
            "near one-way staged 20000 cold 24000 both 28000 both-ways staged 32000 cold 36000 both 40000 "
            "far one-way staged 44000 cold 48000 both 52000 both-ways staged 56000 cold 60000 both 64000";
        config.single_copy = single_copy;
        return config;
    }
    // In the state that those limits are of. The first process sends, the second gets.
    static void prepare(Party& party, const Limits& limits) {
        for (const std::size_t rank : {0U, 1U})
            if (limits.far) move_far(party[rank], 1 - rank);
        for (const std::size_t rank : {0U, 1U})
            if (limits.both_ways) party[rank].peers[1 - rank]->traffic.got(true);
    }
    static bool is_staged(Party& party, const char* data, std::size_t bytes) {
        const std::uint64_t deposit = velo_deposit_begin(party[0].peers[1], data, bytes);
        velo_deposit_end(party[0].peers[1], deposit);
        return VELO_DEPOSIT_NUMBER(deposit) != 0;
    }
    const std::string source_ = pattern(100'000, 1);
};

TEST_F(RoutesOfDataTest, what_is_staged_the_table_says_of_the_distance_the_directions_and_the_buffer) {
    for (const Limits& limits : kLimits) {
        Party party(config_of("auto"));
        prepare(party, limits);
        const char *const one = source_.data(), *const other = one + 64;
        EXPECT_FALSE(is_staged(party, one, limits.cold + 1)) << limits.cold;
        EXPECT_TRUE(is_staged(party, other, limits.cold)) << limits.cold;
        EXPECT_FALSE(is_staged(party, other, limits.staged + 1)) << limits.staged;
        EXPECT_TRUE(is_staged(party, other, limits.staged)) << limits.staged;
    }
}

TEST_F(RoutesOfDataTest, everything_is_staged_where_nobody_reads_the_others_memory) {
    for (const Limits& limits : kLimits) {
        Party party(config_of("copy"));
        prepare(party, limits);
        EXPECT_TRUE(is_staged(party, source_.data(), source_.size()));
    }
}

// The peer is asked to help, or not.
TEST_F(RoutesOfDataTest, what_both_copy_the_table_says_of_the_distance_and_the_directions) {
    for (const Limits& limits : kLimits) {
        Party party(config_of("auto"));
        prepare(party, limits);
        for (const bool both : {false, true}) {
            std::string target(limits.both_copy - (both ? 0 : 1), '\0');
            Outcome got;
            EXPECT_EQ(velo_get(party[1].engine, party[1].peers[0], target.data(), address_of(source_.data()),
                               target.size(), Outcome::done, &got),
                      both ? VELO_QUEUED : VELO_OK)
                << limits.both_copy;
            party.settle();
            EXPECT_EQ(got.calls, 1);
            EXPECT_TRUE(target == source_.substr(0, target.size()));
        }
    }
}

TEST(DepositWordTest, pieces_end_with_pages_or_are_long_and_neither_side_leaves_the_ring_or_the_data) {
    using rma::Deposit;
    constexpr std::size_t kFrom = 64, kBytes = 100'000, kRing = 32768;
    std::atomic<std::uint32_t> number_word, stored_word, taken_word;
    Deposit deposit(&number_word, &stored_word, &taken_word, kRing, kFrom);
    for (const auto pieces : {Deposit::Pieces::kPages, Deposit::Pieces::kLong}) {
        deposit.open(1);
        std::size_t stored = 0, taken = 0, ends = 0, longs = 0;
        const auto within = [&](std::size_t place, std::size_t at, std::size_t bytes) {
            EXPECT_EQ(place, at % kRing);
            EXPECT_LE(place + bytes, kRing);
            EXPECT_LE(at + bytes, kBytes);
        };
        const auto store = [&](std::size_t place, std::size_t at, std::size_t bytes) {
            within(place, at, bytes);
            EXPECT_LE(at + bytes, taken + kRing);
            ends += (kFrom + place + bytes) % Deposit::kPage == 0;
            longs += bytes == Deposit::kLong;
        };
        while (taken < kBytes) {
            stored = deposit.fill(stored, kBytes, pieces, store);
            EXPECT_LE(stored - taken, kRing);
            EXPECT_GT(stored, taken);
            taken = deposit.take(taken, kBytes, within);
            EXPECT_EQ(taken, stored);
        }
        const bool pages = pieces == Deposit::Pieces::kPages;
        EXPECT_EQ(ends, pages ? kBytes / Deposit::kPage : 0U);
        EXPECT_EQ(longs, pages ? 0U : kBytes / Deposit::kLong);
    }
    // Whatever the other one says.
    stored_word = ~0U;
    EXPECT_EQ(
        deposit.take(0, 100,
                     [](std::size_t, std::size_t at, std::size_t bytes) { EXPECT_LE(at + bytes, 100U); }),
        100U);
    taken_word = ~0U;
    EXPECT_EQ(deposit.taken(100), 100U);
}

}  // namespace
}  // namespace velo::test
