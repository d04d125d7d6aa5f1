// Deposits: what an owner stores of long data before they are got, in rings at hand and in turn, and the
// choice of a way.
#include "rma/deposit.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "api/handle.h"
#include "engine_party.h"
#include "fabric/shm/segment.h"
#include "flow/deposit_rings.h"

namespace velo::test {
namespace {

// The second owns memory that the first gets.
class DepositTest : public ::testing::Test {
 protected:
    static constexpr std::size_t kBytes = 100'000, kStored = 32768;  // at once: what a ring at hand holds
    static constexpr std::size_t kShort = 16384;
    static constexpr std::uint32_t kRings = 3;  // at hand

    std::uint64_t begin(std::size_t bytes = kBytes) {
        return velo_deposit_begin(party_[1].peers[0], source_.data(), bytes);
    }
    void store(std::uint64_t deposit) { velo_deposit_store(party_[1].peers[0], deposit); }
    void end(std::uint64_t deposit) { velo_deposit_end(party_[1].peers[0], deposit, kBytes); }
    // 0: it would have to wait for a ring.
    std::uint64_t begin_at_once() {
        const std::uint64_t deposit = begin();
        if (number_of(deposit) - 1 < kRings) return deposit;
        end(deposit);
        return 0;
    }
    static std::uint32_t number_of(std::uint64_t deposit) { return VELO_DEPOSIT_NUMBER(deposit); }
    std::string get(std::uint64_t deposit, std::size_t offset = 0, std::size_t end = kBytes) {
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
    std::uint64_t read() { return counter(party_[0], "deposits_read"); }

    explicit DepositTest(const PartyConfig& config = {}) : party_(config) {}

    Party party_;
    bool owner_is_driven_ = false;  // by another thread
    std::string source_ = pattern(kBytes, 1), before_ = source_, after_ = pattern(kBytes, 2);
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
    const std::uint64_t deposit = begin();
    store(deposit);
    source_ = after_;
    EXPECT_EQ(get(deposit), before_.substr(0, kStored) + after_.substr(kStored));
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
            const std::uint64_t deposit = begin();
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
        wrong += get(begun) != source_;
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
    const std::uint64_t deposit = begin();
    store(deposit);
    source_ = after_;
    EXPECT_EQ(get(deposit, 0, kShort), before_.substr(0, kShort));
    EXPECT_EQ(get(deposit), after_) << "the beginning may have been overwritten";
}

TEST_F(DepositTest, other_memory_than_what_was_stored_is_not_taken_from_there) {
    const std::uint64_t deposit = begin();
    store(deposit);
    source_ = after_;
    EXPECT_EQ(get(deposit, 4096), after_.substr(4096));
    EXPECT_EQ(read(), 0U);
}

TEST_F(DepositTest, a_number_that_leads_nowhere_does_no_harm) {
    const std::uint64_t deposit = number_of(begin());
    store(deposit);
    source_ = after_;
    for (const std::uint64_t wrong : {std::uint64_t{0}, deposit + 1, deposit + 64, std::uint64_t{255}})
        EXPECT_EQ(get(wrong), after_) << wrong;
    EXPECT_EQ(read(), 0U);
}

TEST_F(DepositTest, deposits_leave_room_and_come_back_in_any_order) {
    std::vector<std::uint64_t> deposits;
    for (std::uint64_t deposit = begin_at_once(); deposit != 0; deposit = begin_at_once())
        deposits.push_back(deposit);
    EXPECT_EQ(deposits.size(), kRings);
    std::vector<std::size_t> order(deposits.size());
    std::iota(order.begin(), order.end(), 0);
    do {
        for (const std::size_t index : order) {
            end(deposits[index]);
            party_.step();  // looks at the invariants
            const std::uint64_t next = begin();
            EXPECT_NE(next, deposits[index]);
            EXPECT_EQ(number_of(next), number_of(deposits[index]));
            deposits[index] = next;
            EXPECT_EQ(begin_at_once(), 0U);
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

// Whoever sends many does not hear of their ends meanwhile.
TEST_F(DepositTest, what_has_been_read_makes_room_and_its_end_harms_nobody) {
    std::vector<std::uint64_t> deposits;
    for (int i = 0; i < 20; ++i) {
        deposits.push_back(begin(kShort));
        ASSERT_NE(deposits.back(), 0U) << i;
        store(deposits.back());
        EXPECT_EQ(get(deposits.back(), 0, kShort), before_.substr(0, kShort));
    }
    const std::uint64_t last = begin(kShort);
    store(last);
    for (const std::uint64_t deposit : deposits) end(deposit);
    source_ = after_;
    EXPECT_EQ(get(last, 0, kShort), before_.substr(0, kShort));
    EXPECT_EQ(read(), 21U);
    end(last);
    party_.step();
}

TEST_F(DepositTest, where_both_send_at_once_long_data_is_stored_as_well) {
    constexpr std::size_t kLong = 200'000;
    const std::uint64_t own = begin(kLong);
    ASSERT_NE(number_of(own), 0U);
    char target[8];
    EXPECT_EQ(
        velo_get_deposited(
            party_[1].engine, party_[1].peers[0], 0, target, reinterpret_cast<std::uint64_t>(source_.data()),
            sizeof target, [](void*, velo_status, std::uint64_t) {}, nullptr),
        VELO_OK);
    const std::uint64_t crossing = begin(kLong);
    EXPECT_NE(number_of(crossing), 0U);
    EXPECT_NE(number_of(crossing), number_of(own));
    for (const std::uint64_t deposit : {own, crossing}) velo_deposit_end(party_[1].peers[0], deposit, kLong);
}

// More than there are rings at hand.
class DepositsInTurnTest : public DepositTest {
 protected:
    static constexpr std::size_t kMostWaiting = 64;

    struct Message {
        std::string data;
        std::uint64_t deposit;
    };
    std::vector<Message> tell(unsigned count, std::size_t bytes = kShort) {
        std::vector<Message> messages(count);
        for (unsigned i = 0; i < count; ++i) {
            messages[i].data = pattern(bytes, i);
            messages[i].deposit =
                velo_deposit_begin(party_[1].peers[0], messages[i].data.data(), messages[i].data.size());
            if (number_of(messages[i].deposit) != 0) store(messages[i].deposit);
        }
        return messages;
    }
    std::string got(const Message& message) {
        return get_from(message.data.data(), message.data.size(), message.deposit);
    }
    void end_one(const Message& message) {
        velo_deposit_end(party_[1].peers[0], message.deposit, message.data.size());
        look_at_invariants();
    }
    // As the owner does with each message.
    void look_at_invariants() {
        party_.send(0, 1, 1, "a message");
        party_.settle();
    }
};

TEST_F(DepositsInTurnTest, each_has_its_turn_in_a_ring_when_the_peer_has_read_what_was_there) {
    constexpr unsigned kMessages = 40;
    const std::vector<Message> messages = tell(kMessages);
    for (const Message& message : messages) {
        ASSERT_NE(number_of(message.deposit), 0U);
        velo_progress(party_[1].engine);
        EXPECT_TRUE(got(message) == message.data);
    }
    EXPECT_EQ(read(), kMessages);
    for (const Message& message : messages) end_one(message);
    for (unsigned i = 0; i < kRings; ++i) EXPECT_NE(begin(kShort), 0U) << "the rings came back";
}

TEST_F(DepositsInTurnTest, as_many_wait_as_there_is_room_for_and_each_has_a_number_of_its_own) {
    const std::vector<Message> messages = tell(kRings + kMostWaiting + 5);
    std::set<std::uint32_t> numbers;
    for (unsigned i = 0; i < messages.size(); ++i) {
        const std::uint32_t number = number_of(messages[i].deposit);
        EXPECT_EQ(number != 0, i < kRings + kMostWaiting) << i;
        EXPECT_TRUE(number == 0 || numbers.insert(number).second) << i;
    }
    for (const Message& message : messages) EXPECT_TRUE(got(message) == message.data);
    for (const Message& message : messages) end_one(message);
}

// Its turn may come before its owner has told the peer of it.
TEST_F(DepositsInTurnTest, a_turn_that_comes_before_the_peer_is_told_leaves_nothing_to_do_behind) {
    std::vector<std::uint64_t> deposits(kRings + 1);
    for (std::uint64_t& deposit : deposits) deposit = begin();
    end(deposits[0]);  // its ring goes to the last one
    store(deposits[kRings]);
    for (unsigned i = 1; i <= kRings; ++i) end(deposits[i]);
    look_at_invariants();
}

TEST_F(DepositsInTurnTest, what_is_got_before_its_turn_comes_from_its_owners_memory) {
    std::vector<Message> messages = tell(12);
    for (unsigned i = 12; i-- > 0;) {
        EXPECT_TRUE(got(messages[i]) == messages[i].data);
        end_one(messages[i]);
        std::fill(messages[i].data.begin(), messages[i].data.end(), 'x');  // it is the program's again
        velo_progress(party_[1].engine);
    }
    EXPECT_EQ(read(), kRings);
}

TEST_F(DepositsInTurnTest, none_is_taken_for_another_one_of_the_same_memory_which_may_end_meanwhile) {
    std::uint64_t deposits[kRings + 1];
    for (std::uint64_t& deposit : deposits) {
        deposit = begin(kShort);
        store(deposit);
    }
    EXPECT_EQ(get(deposits[kRings], 0, kShort), source_.substr(0, kShort)) << "waits for the first one's";
    EXPECT_EQ(read(), 0U);
    EXPECT_EQ(get(deposits[0], 0, kShort), source_.substr(0, kShort));
    EXPECT_EQ(read(), 1U);
    for (const std::uint64_t deposit : deposits) velo_deposit_end(party_[1].peers[0], deposit, kShort);
}

// Others from the same memory follow, which the program may have changed.
TEST_F(DepositsInTurnTest, nothing_is_taken_for_what_was_in_a_ring_before) {
    std::string buffer(kShort, '\0');
    std::vector<std::uint64_t> deposits;
    for (unsigned round = 0; round < 200; ++round) {
        buffer = pattern(kShort, round);
        for (unsigned i = 0; i < 5; ++i) {
            deposits.push_back(velo_deposit_begin(party_[1].peers[0], buffer.data(), kShort));
            if (number_of(deposits.back()) != 0) store(deposits.back());
        }
        for (unsigned i = 0; i < 5; ++i) {
            // Some are read out of turn, or in part, or not at all.
            const unsigned which = round % 3 == 0 ? 4 - i : i;
            const std::size_t bytes = (round + i) % 4 == 0 ? kShort / 2 : kShort;
            const bool is_got = (round + i) % 7 != 0;
            ASSERT_TRUE(!is_got || get_from(buffer.data(), bytes, deposits[which]) == buffer.substr(0, bytes))
                << round << " " << i;
            velo_deposit_end(party_[1].peers[0], deposits[which], kShort);
            if (i % 2 == 0) velo_progress(party_[1].engine);
        }
        deposits.clear();
    }
    EXPECT_GT(read(), 200U);
}

// What is worth it is tried.
class DepositWaysTest : public DepositTest {
 protected:
    DepositWaysTest() : DepositTest(config()) {}
    static PartyConfig config() {
        PartyConfig config;
        config.reference_bytes = 0;
        config.deposit_bytes = std::uint64_t{2} << 20;  // whatever the caches are
        return config;
    }
};

// Nobody says which way is in use, but one number tells of a ring in turn, and some are left where they are.
// The longer first: from a trial of the shorter they learn which ways to leave out.
TEST_F(DepositWaysTest, whatever_way_is_tried_the_data_arrive) {
    constexpr int kMessages = 4000;
    for (const std::size_t bytes : {std::size_t{50'000}, std::size_t{9000}}) {
        const std::uint64_t before = read();
        int in_turn = 0, none = 0;
        for (int message = 0; message < kMessages; ++message) {
            const std::string data = pattern(bytes, static_cast<std::uint8_t>(message));
            const std::uint64_t deposit = velo_deposit_begin(party_[1].peers[0], data.data(), bytes);
            in_turn += number_of(deposit) >= flow::DepositPlan::kNumbers[flow::DepositPlan::kInTurn].first;
            none += number_of(deposit) == 0;
            if (number_of(deposit) != 0) store(deposit);
            ASSERT_TRUE(get_from(data.data(), bytes, deposit) == data) << message;
            velo_deposit_end(party_[1].peers[0], deposit, bytes);
        }
        EXPECT_GT(in_turn, 0);
        EXPECT_GT(none, 0);
        EXPECT_GT(read() - before, 0U);
    }
}

TEST(DepositMemory, of_unnamed_size_is_taken_after_eight_times_as_much_was_sent) {
    PartyConfig config;
    config.reference_bytes = 0;
    Party party(config);
    fabric::shm::Address address;
    std::size_t bytes = 0;
    std::memcpy(&address, velo_engine_address(party[1].engine, &bytes), sizeof address);
    const std::size_t memory = fabric::shm::Segment::attach(address).deposit_plan().bytes();
    const std::string source = pattern(100'000, 1);
    const auto is_deposited = [&] {
        const std::uint64_t deposit = velo_deposit_begin(party[1].peers[0], source.data(), source.size());
        velo_deposit_end(party[1].peers[0], deposit, source.size());
        return VELO_DEPOSIT_NUMBER(deposit) != 0;
    };
    std::size_t sent = source.size();
    for (; sent < 8 * memory; sent += source.size()) EXPECT_FALSE(is_deposited()) << sent;
    EXPECT_TRUE(is_deposited()) << sent;
}

// Before anything was tried.
TEST(DepositExpectationTest, of_what_two_send_each_other_each_copies_the_longest_for_itself) {
    constexpr std::size_t kMiB = 1'048'576;
    struct {
        const char* distance;
        std::size_t least;
        std::vector<std::size_t> sizes;
    } const cases[] = {{"near", 2 * kMiB, {20'000, 50'000, 100'000, kMiB, 2 * kMiB - 1, 2 * kMiB}},
                       {"far", 32'768, {20'000, 32'767, 32'768, 100'000}}};
    for (const auto& [distance, least, sizes] : cases) {
        PartyConfig config;
        config.reference_bytes = 0;
        config.deposit_bytes = 2 * kMiB;
        config.distance = distance;
        Party party(config);
        const std::string source = pattern(2 * kMiB, 1);
        std::string target(source.size(), '\0');
        const auto is_deposited = [&](std::size_t bytes) {
            const std::uint64_t deposit = velo_deposit_begin(party[1].peers[0], source.data(), bytes);
            velo_deposit_end(party[1].peers[0], deposit, bytes);
            return VELO_DEPOSIT_NUMBER(deposit) != 0;
        };
        const auto get_of_its = [&](std::size_t bytes) {
            int calls = 0;
            EXPECT_GE(
                velo_get_deposited(
                    party[1].engine, party[1].peers[0], 0, target.data(),
                    reinterpret_cast<std::uint64_t>(source.data()), bytes,
                    [](void* count, velo_status, std::uint64_t) { ++*static_cast<int*>(count); }, &calls),
                VELO_OK);
            for (int i = 0; calls == 0 && i < 1000; ++i) party.step();
            EXPECT_EQ(calls, 1);
        };
        for (const std::size_t bytes : sizes) {
            EXPECT_TRUE(is_deposited(bytes)) << distance << ' ' << bytes;
            const std::uint64_t own = velo_deposit_begin(party[1].peers[0], source.data(), bytes);
            get_of_its(bytes);  // while its own has yet to be got
            EXPECT_EQ(is_deposited(bytes), bytes < least) << distance << ' ' << bytes;
            velo_deposit_end(party[1].peers[0], own, bytes);
        }
    }
}

TEST(RouteExpectationTest, of_what_two_send_each_other_each_copies_alone) {
    constexpr std::size_t kBytes = 131'072;
    PartyConfig config;
    Party party(config);
    const std::string source = pattern(kBytes, 1);
    std::string target(kBytes, '\0');
    const auto route = [&] {  // counted from 1, of 15 sizes from 4096 bytes on
        const std::string digits = std::to_string(party[1].engine->engine.get_ways());
        return digits.at(5);
    };
    const auto get = [&] {
        int calls = 0;
        EXPECT_GE(velo_get_deposited(
                      party[1].engine, party[1].peers[0], 0, target.data(),
                      reinterpret_cast<std::uint64_t>(source.data()), kBytes,
                      [](void* count, velo_status, std::uint64_t) { ++*static_cast<int*>(count); }, &calls),
                  VELO_OK);
        for (int i = 0; calls == 0 && i < 1000; ++i) party.step();
        EXPECT_EQ(calls, 1);
        EXPECT_EQ(target, source);
    };
    get();
    EXPECT_EQ(route(), '3');  // by both
    const std::uint64_t own = velo_deposit_begin(party[1].peers[0], source.data(), kBytes);
    get();
    EXPECT_EQ(route(), '1');
    velo_deposit_end(party[1].peers[0], own, kBytes);
}

// Two that send to each other. The first has the lower name: the second does what it says.
class DepositFollowerTest : public DepositWaysTest {
 protected:
    static constexpr std::uint8_t kInTurn = 1, kElsewhere = 5;  // counted from 1

    void says(std::uint8_t way) {
        for (auto& told : segment_.header().storing) told = way;
    }
    std::uint64_t begin_to_follow(const char* data, std::size_t bytes) {
        return velo_deposit_begin(party_[1].peers[0], data, bytes);
    }
    static bool is_in_turn(std::uint64_t deposit) {
        return number_of(deposit) >= flow::DepositPlan::kNumbers[flow::DepositPlan::kInTurn].first;
    }
    void get_of_its(std::size_t bytes) {
        std::string target(bytes, '\0');
        int calls = 0;
        EXPECT_GE(velo_get_deposited(
                      party_[1].engine, party_[1].peers[0], 0, target.data(),
                      reinterpret_cast<std::uint64_t>(source_.data()), bytes,
                      [](void* count, velo_status, std::uint64_t) { ++*static_cast<int*>(count); }, &calls),
                  VELO_OK);
        for (int i = 0; calls == 0 && i < 1000; ++i) party_.step();
        EXPECT_EQ(calls, 1);
    }

 private:
    fabric::shm::Address address() {
        fabric::shm::Address address;
        std::size_t size = 0;
        std::memcpy(&address, velo_engine_address(party_[0].engine, &size), sizeof address);
        return address;
    }
    fabric::shm::Segment segment_ = fabric::shm::Segment::attach(address());
};

TEST_F(DepositFollowerTest, of_two_that_send_to_each_other_the_second_does_as_the_first) {
    const auto is_left = [&](std::size_t bytes) {
        const std::uint64_t deposit = begin(bytes);
        velo_deposit_end(party_[1].peers[0], deposit, bytes);
        return number_of(deposit) == 0;
    };
    says(kElsewhere);
    EXPECT_FALSE(is_left(kShort)) << "only one of them sends";
    const std::uint64_t own = begin(kShort);
    get_of_its(kShort);
    EXPECT_TRUE(is_left(kShort));
    EXPECT_FALSE(is_left(2 * kShort)) << "of another size";
    for (const std::uint8_t none : {0, 0xff}) {
        says(none);
        EXPECT_FALSE(is_left(kShort)) << "what it says is none";
    }
    get_of_its(kShort);
    for (int i = 0; i < 128; ++i) is_left(kShort);
    says(kElsewhere);
    EXPECT_FALSE(is_left(kShort)) << "it has stopped";
    velo_deposit_end(party_[1].peers[0], own, kShort);
}

// Three times as much as there is room for: what the peer has read makes room for what waits.
TEST_F(DepositFollowerTest, in_turn_as_many_wait_for_room_as_have_a_number) {
    constexpr unsigned kMessages = 63;  // and its own
    says(kInTurn);
    const std::uint64_t own = begin(kBytes);
    get_of_its(kBytes);
    for (const bool backwards : {false, true}) {
        std::vector<std::string> data;
        std::vector<std::uint64_t> deposits;
        std::set<std::uint32_t> numbers;
        for (unsigned i = 0; i < kMessages; ++i)
            data.push_back(pattern(kBytes, static_cast<std::uint8_t>(i)));
        for (const std::string& message : data) {
            deposits.push_back(begin_to_follow(message.data(), kBytes));
            ASSERT_TRUE(is_in_turn(deposits.back())) << deposits.size();
            numbers.insert(number_of(deposits.back()));
            store(deposits.back());
        }
        EXPECT_EQ(numbers.size(), kMessages);
        const std::uint64_t more = begin_to_follow(source_.data(), kBytes);
        EXPECT_EQ(number_of(more), 0U) << "there are no more numbers";
        velo_deposit_end(party_[1].peers[0], more, kBytes);
        const std::uint64_t before = read();
        for (unsigned i = 0; i < kMessages; ++i) {
            const unsigned which = backwards ? kMessages - 1 - i : i;
            velo_progress(party_[1].engine);
            EXPECT_TRUE(get_from(data[which].data(), kBytes, deposits[which]) == data[which]) << which;
            if (!backwards) continue;
            velo_deposit_end(party_[1].peers[0], deposits[which], kBytes);
            std::fill(data[which].begin(), data[which].end(), 'x');  // it is the program's again
        }
        if (backwards) {
            EXPECT_GT(read() - before, 0U);
            EXPECT_LT(read() - before, kMessages) << "those without room come from their owner's memory";
            continue;
        }
        EXPECT_EQ(read() - before, kMessages);
        for (const std::uint64_t deposit : deposits) velo_deposit_end(party_[1].peers[0], deposit, kBytes);
        get_of_its(kBytes);
    }
    velo_deposit_end(party_[1].peers[0], own, kBytes);
    party_.send(0, 1, 1, "a message");  // its invariants are looked at
    party_.settle();
}

// Messages by reference are cut from the same memory.
TEST_F(DepositFollowerTest, what_waits_for_room_has_it_when_a_message_that_was_in_the_way_has_been_read) {
    constexpr std::size_t kShorter = 65'536, kAll = 1'980'000;  // with its own nearly all
    const std::string data = pattern(kAll, 3);
    source_ = data;  // of which get_of_its takes as much
    const std::uint64_t own = begin(kBytes);
    says(kInTurn);
    const auto send_message = [this] { party_.send(1, 0, 1, std::string(4096, 'm')); };
    unsigned in_turn = 0;
    for (int message = 0; message < 310; ++message) {  // then they are tried in turn
        send_message();
        party_.settle();
    }
    for (int round = 0; round < 80; ++round) {
        get_of_its(kShorter);
        const std::uint64_t first = begin_to_follow(data.data(), kShorter);
        store(first);
        send_message();
        get_of_its(kAll);
        const std::uint64_t second = begin_to_follow(data.data(), kAll);
        store(second);
        velo_deposit_end(party_[1].peers[0], first, kShorter);
        for (int i = 0; i < 3; ++i) velo_progress(party_[1].engine);
        for (int i = 0; i < 20; ++i) velo_progress(party_[0].engine);
        for (int i = 0; i < 3; ++i) velo_progress(party_[1].engine);
        const std::uint64_t before = read();
        ASSERT_TRUE(get_from(data.data(), kAll, second) == data) << round;
        if (is_in_turn(second)) {
            ++in_turn;
            EXPECT_EQ(read(), before + 1) << round;
        }
        velo_deposit_end(party_[1].peers[0], second, kAll);
        party_.settle();
    }
    EXPECT_GT(in_turn, 0U);
    velo_deposit_end(party_[1].peers[0], own, kBytes);
}

// Of the first the peer has read everything, and its end comes late.
TEST_F(DepositsInTurnTest, an_end_that_comes_late_ends_no_other_one) {
    constexpr unsigned kMany = 3 * 4096;
    const std::uint64_t first = begin(kShort);
    std::set<std::uint64_t> names{first};
    store(first);
    EXPECT_EQ(get(first, 0, kShort), source_.substr(0, kShort));
    for (unsigned i = 0; i < kMany; ++i) {
        const std::uint64_t deposit = begin(kShort);
        ASSERT_TRUE(names.insert(deposit).second) << i;
        store(deposit);
        if (i + 1 < kMany)
            velo_deposit_end(party_[1].peers[0], deposit, kShort);
        else {
            velo_deposit_end(party_[1].peers[0], first, kShort);
            EXPECT_EQ(get(deposit, 0, kShort), source_.substr(0, kShort));
            velo_deposit_end(party_[1].peers[0], deposit, kShort);
        }
    }
    EXPECT_EQ(read(), 2U);
}

TEST_F(DepositTest, messages_beside_it_go_by_reference_as_always) {
    for (int i = 0; i < 2; ++i) ASSERT_NE(begin(), 0U);
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
