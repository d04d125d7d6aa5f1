// Boards through the C interface: in stores, and requests.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../shared/temporary_directory.h"
#include "api/velo_board.h"
#include "board_room.h"

namespace velo::board {
namespace {

// Through the C interface, in files.
struct Opened {
    Opened() {
        config.size = 2;
        config.window = config.chunks = 4;
        config.chunk = 64;
        config.processors = 2;
        config.name = "b";
        config.progress = [](void*) {};
        config.log = [](void* context, int, const char* line) {
            static_cast<Opened*>(context)->said += line;
        };
        config.context = this;
    }

    velo_board_config config{};
    char error[512] = "";
    std::string said;
};

// A store, and its boards at a member, which leaves them at the end.
struct Access {
    Access(const char* directory, std::uint32_t boards, Opened& opened) : o(opened) {
        EXPECT_EQ(velo_board_store_create(directory, boards, &o.config, &store, o.error, sizeof o.error),
                  VELO_OK)
            << o.error;
        velo_board_store_address(store, address);
    }
    Access(const Access& owner, Opened& opened) : o(opened) {
        EXPECT_TRUE(velo_board_store_visible(owner.address));
        EXPECT_EQ(velo_board_store_open(owner.address, &store, o.error, sizeof o.error), VELO_OK) << o.error;
    }
    Access(const Access&) = delete;
    ~Access() {
        while (!all.empty()) close(all.size() - 1);
        velo_board_store_close(store);
    }
    // NULL: there is none.
    velo_board* board(std::uint32_t rank, std::uint64_t number = 0) {
        One one{};
        o.config.rank = rank;
        o.config.number = number;
        EXPECT_EQ(velo_board_open(store, &o.config, &one.board, &one.place, o.error, sizeof o.error), VELO_OK)
            << o.error;
        all.push_back(one);
        return one.board;
    }
    void close(std::size_t index) {
        velo_board_close(store, all[index].board, all[index].place);
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(index));
    }

    struct One {
        velo_board* board;
        std::uint32_t place;
    };
    Opened& o;
    velo_board_store* store = nullptr;
    char address[VELO_BOARD_ADDRESS] = "";
    std::vector<One> all;
};

TEST(BoardInterfaceTest, whoever_comes_first_makes_a_board_that_outlives_its_store) {
    test::TemporaryDirectory directory;
    Opened o;
    char address[VELO_BOARD_ADDRESS];
    velo_board_store* late = nullptr;
    velo_goal_request request{};
    request.bytes = 40;
    char text[40] = "what the root has written", found[40] = "";
    std::unique_ptr<Access> other;
    {
        Access owner(directory.path().c_str(), 2, o);
        std::memcpy(address, owner.address, sizeof address);
        EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
        other = std::make_unique<Access>(owner, o);
        other->board(1);
        EXPECT_EQ(velo_board_run(owner.board(0), VELO_BOARD_BCAST, &request, nullptr, text), VELO_OK);
    }
    EXPECT_EQ(velo_board_store_open(address, &late, o.error, sizeof o.error), VELO_ERR_UNREACHABLE);
    EXPECT_EQ(velo_board_run(other->all[0].board, VELO_BOARD_BCAST, &request, nullptr, found), VELO_OK);
    EXPECT_STREQ(found, text);
}

TEST(BoardInterfaceTest, of_several_there_are_as_many_as_may_be_and_all_members_find_the_same) {
    test::TemporaryDirectory directory;
    Opened o;
    Access owner(directory.path().c_str(), 2, o), other(owner, o);
    for (std::uint64_t number = 0; number < 4; ++number) {
        const bool owner_first = number % 2 == 0;
        velo_board* const first = (owner_first ? owner : other).board(owner_first ? 0 : 1, number);
        velo_board* const second = (owner_first ? other : owner).board(owner_first ? 1 : 0, number);
        EXPECT_EQ(first != nullptr, number < 2);
        EXPECT_EQ(second != nullptr, number < 2);
    }
    owner.close(0);
    EXPECT_EQ(owner.board(0, 4), nullptr) << "the other one may still come to it";
    other.close(0);
    EXPECT_NE(other.board(1, 5), nullptr);
    EXPECT_EQ(other.board(1, 4), nullptr) << "as the owner has found";
    // Of other members it is another one.
    o.config.members = 1;
    EXPECT_EQ(owner.board(0, 1), nullptr);
}

TEST(BoardInterfaceTest, who_was_suspended_has_not_waited_meanwhile) {
    Patience patience(1'000'000'000);
    std::uint64_t now = 5;
    for (int look = 0; look < 90; ++look) EXPECT_FALSE(patience.is_over(now += 10'000'000));
    EXPECT_FALSE(patience.is_over(now += 3'600'000'000'000));
    EXPECT_TRUE(patience.is_over(now += 10'000'000));
}

TEST(BoardInterfaceTest, boards_that_come_and_go_use_the_same_memory_and_find_nothing_in_it) {
    test::TemporaryDirectory directory;
    Opened o;
    Access owner(directory.path().c_str(), 2, o), other(owner, o);
    const void* where = nullptr;
    for (std::uint32_t round = 0; round < 200; ++round) {
        // Other shapes in between, of which one finds room where the larger one was.
        o.config.window = o.config.chunks = round % 7 == 6 ? 2 : 4;
        velo_board* const boards[] = {owner.board(0, round), other.board(1, round)};
        ASSERT_NE(boards[0], nullptr);
        ASSERT_NE(boards[1], nullptr);
        velo_goal_request request{};
        request.bytes = round % 2 == 0 ? 8 : 64;
        std::uint64_t given[8] = {round}, found[8] = {};
        for (std::uint32_t i = 0; i < round % 5; ++i) {
            request.root = i % 2;
            EXPECT_EQ(velo_board_run(boards[i % 2], VELO_BOARD_BCAST, &request, nullptr, given), VELO_OK);
            EXPECT_EQ(velo_board_run(boards[1 - i % 2], VELO_BOARD_BCAST, &request, nullptr, found), VELO_OK);
            EXPECT_EQ(found[0], round);
        }
        // One that an error has ended, with a word that nobody has read.
        if (round % 3 == 0) {
            request.root = 0;
            EXPECT_EQ(velo_board_run(boards[0], VELO_BOARD_BCAST, &request, nullptr, given), VELO_OK);
            request.bytes = 16;
            EXPECT_EQ(velo_board_run(boards[1], VELO_BOARD_BCAST, &request, nullptr, found),
                      VELO_ERR_MISMATCH);
        }
        if (where == nullptr) where = owner.all[0].board;
        EXPECT_LT(owner.all[0].place, 3U);
        owner.close(0);
        other.close(0);
    }
}

TEST(BoardInterfaceTest, those_that_are_refused_one_after_the_other_share_a_place_however_many_they_are) {
    constexpr std::uint64_t kMany = StoreHeader::kPlaces + 1000;
    test::TemporaryDirectory directory;
    Opened o;
    Access owner(directory.path().c_str(), 1, o), other(owner, o);
    ASSERT_NE(owner.board(0, 0), nullptr);
    for (std::uint64_t number = 1; number <= kMany; ++number) {
        ASSERT_EQ(owner.board(0, number), nullptr);
        ASSERT_LT(owner.all.back().place, 2U);
    }
    owner.close(0);
    for (std::uint64_t number = kMany; number > 0; --number) {
        ASSERT_EQ(other.board(1, number), nullptr) << "as the owner has found";
        ASSERT_LT(other.all.back().place, 2U);
    }
    ASSERT_NE(other.board(1, 0), nullptr);
    other.close(other.all.size() - 1);
    for (Access* each : {&owner, &other})
        while (!each->all.empty()) each->close(each->all.size() - 1);
    ASSERT_NE(owner.board(0, kMany + 1), nullptr);
    EXPECT_EQ(other.board(1, kMany + 2), nullptr);
    EXPECT_EQ(other.all.back().place, 1U) << "that of those before, which all have left";
}

TEST(BoardInterfaceTest, whether_longer_data_has_memory_is_decided_once_and_the_board_goes_on_without) {
    test::TemporaryDirectory directory;
    Opened o;
    auto owner = std::make_unique<Access>(directory.path().c_str(), 2, o);
    Access first(*owner, o), second(*owner, o);
    velo_board* const boards[] = {first.board(0), second.board(1)};
    velo_goal_request request{};
    const auto has_memory = [&](std::uint32_t member, std::uint32_t root, std::uint64_t bytes,
                                velo_board_operation operation = VELO_BOARD_BCAST) {
        request.root = root;
        request.bytes = bytes;
        return velo_board_has_memory(boards[member], operation, &request);
    };
    EXPECT_TRUE(has_memory(0, 0, 57));
    // Without its file no more memory is to be had.
    owner = nullptr;
    EXPECT_TRUE(has_memory(1, 0, 57)) << "as the other one has found";
    for (const std::uint32_t member : {0U, 1U}) {
        EXPECT_FALSE(has_memory(member, 1, 57));
        EXPECT_TRUE(has_memory(member, 1, 56));
        EXPECT_TRUE(has_memory(member, 1, 57, VELO_BOARD_REDUCE)) << "of the one that is not the root";
        for (const auto operation : {VELO_BOARD_ALLTOALL, VELO_BOARD_ALLREDUCE, VELO_BOARD_SCAN})
            EXPECT_FALSE(has_memory(member, 0, 57, operation));
        EXPECT_TRUE(has_memory(member, 0, 0, VELO_BOARD_BARRIER));
    }
    char text[40] = "what goes on", found[40] = "";
    request.bytes = sizeof text;
    EXPECT_EQ(velo_board_run(boards[0], VELO_BOARD_BCAST, &request, nullptr, text), VELO_OK);
    EXPECT_EQ(velo_board_run(boards[1], VELO_BOARD_BCAST, &request, nullptr, found), VELO_OK);
    EXPECT_STREQ(found, text);
}

TEST(BoardInterfaceTest, a_store_without_a_place_for_one_more_makes_no_board_ever_again) {
    test::TemporaryDirectory directory;
    Opened o;
    auto owner = std::make_unique<Access>(directory.path().c_str(), 1, o);
    Access first(*owner, o), second(*owner, o);
    ASSERT_NE(first.board(0, 0), nullptr);
    owner = nullptr;
    // Those refused that do not follow each other take a place each, of which there are some.
    for (std::uint64_t number = 2; number < 200; number += 2) EXPECT_EQ(first.board(0, number), nullptr);
    EXPECT_NE(second.board(1, 0), nullptr) << "which is there";
    second.close(0);
    first.close(0);
    EXPECT_EQ(first.board(0, 300), nullptr);
    for (std::uint64_t number = 2; number < 200; number += 2)
        EXPECT_EQ(second.board(1, number), nullptr) << "as the other one has found";
    EXPECT_EQ(second.board(1, 300), nullptr) << "as the other one has found";
}

TEST(BoardInterfaceTest, where_no_memory_is_left_there_is_no_board) {
    test::TemporaryDirectory directory;
    Opened o;
    Access owner(directory.path().c_str(), 1, o);
    o.config.chunk = 1 << 19;  // than which the store has room for
    EXPECT_EQ(owner.board(0, 0), nullptr);
    o.config.chunk = 64;
    EXPECT_NE(owner.board(0, 1), nullptr);
}

// Each event in a word.
struct Traced : Opened {
    Traced() {
        config.progress = [](void* context) {
            auto& traced = *static_cast<Traced*>(context);
            if (traced.meanwhile) std::exchange(traced.meanwhile, nullptr)();
        };
        config.trace = [](void* context, const velo_board_event* event) {
            constexpr const char* kSteps[] = {"begins", "waits for", "goes on", "ends"};
            auto& traced = *static_cast<Traced*>(context);
            traced.events.push_back(kSteps[event->step] + std::string(event->is_request ? " request " : " ") +
                                    std::to_string(event->operation) + " " + std::to_string(event->number));
        };
        config.context = this;
    }
    using Events = std::vector<std::string>;
    Events take() { return std::exchange(events, {}); }

    std::function<void()> meanwhile;
    Events events;
};

TEST(BoardInterfaceTest, a_trace_hears_of_each_operation_and_of_whom_it_waits_for) {
    using Events = Traced::Events;
    test::TemporaryDirectory directory;
    Traced root, reader;
    Access owner(directory.path().c_str(), 2, root), other(owner, reader);
    velo_board *at_root = owner.board(0), *at_reader = other.board(1);
    velo_goal_request request{};
    char data[40] = "", found[40] = "";
    request.bytes = 40;
    const auto send = [&] { velo_board_run(at_root, VELO_BOARD_BCAST, &request, nullptr, data); };
    send();
    EXPECT_EQ(root.take(), (Events{"begins 2 40", "ends 2 40"}));
    velo_board_run(at_reader, VELO_BOARD_BCAST, &request, nullptr, found);
    EXPECT_EQ(reader.take(), (Events{"begins 2 40", "ends 2 40"}));
    reader.meanwhile = send;
    velo_board_run(at_reader, VELO_BOARD_BCAST, &request, nullptr, found);
    EXPECT_EQ(reader.take(), (Events{"begins 2 40", "waits for 0 0", "goes on 0 0", "ends 2 40"}));

    at_root = owner.board(0, 1);
    at_reader = other.board(1, 1);
    void **place = nullptr, *context = nullptr;
    velo_status status = VELO_OK;
    velo_board_start(at_reader, VELO_BOARD_BCAST, &request, nullptr, found, &place);
    EXPECT_EQ(reader.take(), (Events{"begins request 2 40"}));
    root.take();
    velo_board_start(at_root, VELO_BOARD_BCAST, &request, nullptr, data, &place);
    EXPECT_EQ(root.take(), (Events{"begins request 2 40", "ends request 2 40"}));
    EXPECT_TRUE(velo_board_advance(at_reader, &context, &status));
    EXPECT_EQ(reader.take(), (Events{"ends request 2 40"}));
}

TEST(BoardInterfaceTest, an_impossible_shape_and_a_failure_are_told) {
    test::TemporaryDirectory directory;
    Opened o;
    velo_board_store* none = nullptr;
    o.config.chunks = 5;
    EXPECT_EQ(velo_board_store_create(directory.path().c_str(), 1, &o.config, &none, o.error, sizeof o.error),
              VELO_ERR_PARAMETER);
    EXPECT_NE(std::string(o.error).find("shape"), std::string::npos) << o.error;
    o.config.chunks = 4;
    Access owner(directory.path().c_str(), 1, o), other(owner, o);
    velo_board *made = owner.board(0), *opened = nullptr;
    std::uint32_t place = 0;
    o.config.rank = 1;
    o.config.window = 8;
    EXPECT_EQ(velo_board_open(other.store, &o.config, &opened, &place, o.error, sizeof o.error),
              VELO_ERR_MISMATCH);
    o.config.window = 4;
    opened = other.board(1);
    velo_goal_request request{};
    char data[16] = "";
    request.bytes = 8;
    EXPECT_EQ(velo_board_run(made, VELO_BOARD_BCAST, &request, nullptr, data), VELO_OK);
    request.bytes = 16;
    EXPECT_EQ(velo_board_run(opened, VELO_BOARD_BCAST, &request, nullptr, data), VELO_ERR_MISMATCH);
    EXPECT_NE(o.said.find("rank 0 has 8 bytes where this rank has 16"), std::string::npos) << o.said;
    request.root = 1;
    EXPECT_EQ(velo_board_run(opened, VELO_BOARD_BCAST, &request, nullptr, data), VELO_ERR_PROTOCOL)
        << "of no use any more";
}

// --- requests

// All members of a board of requests, in one thread.
struct Party {
    Party(std::uint32_t members, std::uint32_t window, std::uint32_t chunk) {
        o.config.size = members;
        o.config.window = o.config.chunks = window;
        o.config.chunk = chunk;
        o.config.stall_warning = 1;
        store = std::make_unique<Access>(directory.path().c_str(), 2, o);
        for (std::uint32_t rank = 0; rank < members; ++rank) all.push_back(store->board(rank));
    }

    test::TemporaryDirectory directory;
    Opened o;
    std::unique_ptr<Access> store;
    std::vector<velo_board*> all;
};

// One operation of `count` words a block at a member: what goes in, what has to come out.
struct Work {
    Work(velo_board_operation chosen, std::uint32_t round, std::uint32_t me, std::uint32_t all,
         std::uint32_t count, bool in_place)
        : operation(chosen), root(round % all) {
        const bool at_root = me == root;
        const auto in_blocks = [&](std::uint32_t rank) { return words(round, rank, count * all); };
        const auto sum = [&](std::uint32_t end, std::uint32_t offset) {
            Words total(count);
            for (std::uint32_t rank = 0; rank < end; ++rank)
                for (std::uint32_t i = 0; i < count; ++i) total[i] += word(round, rank, offset + i);
            return total;
        };
        Words joined;
        request.root = root;
        request.bytes = 4 * count;
        request.op = VELO_GOAL_ADD;
        request.type = VELO_GOAL_UINT;
        request.width = 32;
        from = words(round, me, count);
        to.assign(count, 7);
        switch (operation) {
            case VELO_BOARD_BCAST:
                if (at_root) to = from;
                expected = words(round, root, count);
                return;
            case VELO_BOARD_REDUCE:
                expected = at_root ? sum(all, 0) : to;
                request.in_place = in_place && at_root;
                break;
            case VELO_BOARD_ALLREDUCE:
                expected = sum(all, 0);
                request.in_place = in_place;
                break;
            case VELO_BOARD_SCAN:
                expected = sum(me + 1, 0);
                request.in_place = in_place;
                break;
            case VELO_BOARD_EXSCAN:
                request.in_place = in_place;
                expected = me > 0 ? sum(me, 0) : in_place ? from : to;
                break;
            case VELO_BOARD_GATHER:
            case VELO_BOARD_ALLGATHER:
                for (std::uint32_t rank = 0; rank < all; ++rank) {
                    const Words one = words(round, rank, count);
                    joined.insert(joined.end(), one.begin(), one.end());
                }
                to.assign(joined.size(), 7);
                if (operation == VELO_BOARD_GATHER && !at_root) {
                    expected = to;
                    return;
                }
                expected = joined;
                request.in_place = in_place;
                if (in_place) std::copy(from.begin(), from.end(), to.begin() + me * count);
                return;
            case VELO_BOARD_SCATTER:
                from = in_blocks(me);
                request.in_place = in_place && at_root;
                expected = request.in_place ? to : slice(in_blocks(root), me, count);
                return;
            case VELO_BOARD_ALLTOALL:
                from = in_blocks(me);
                to.assign(from.size(), 7);
                request.in_place = in_place;
                if (in_place) to = from;
                for (std::uint32_t rank = 0; rank < all; ++rank) {
                    const Words one = slice(in_blocks(rank), me, count);
                    expected.insert(expected.end(), one.begin(), one.end());
                }
                return;
            case VELO_BOARD_REDUCE_SCATTER:
            case VELO_BOARD_REDUCE_SCATTER_BLOCK:
                from = in_blocks(me);
                expected = sum(all, me * count);
                parts.assign(all, {0, 0, 0, 4 * count});
                if (operation == VELO_BOARD_REDUCE_SCATTER) {
                    request.bytes *= all;
                    request.sends = parts.data();
                    request.send_count = all;
                }
                return;
            default:
                expected = to;
                return;
        }
        if (request.in_place) to = from;
    }
    Work(const Work&) = delete;

    velo_board_operation operation;
    std::uint32_t root;
    velo_goal_request request{};
    std::vector<velo_goal_block> parts;
    Words from, to, expected;
    bool over = false;
};

class BoardRequestsTest : public testing::TestWithParam<std::uint32_t> {};

// Each member in its own time, in an order that the seed gives.
TEST_P(BoardRequestsTest, every_operation_ends_with_what_its_definition_says_whoever_begins_when) {
    for (const std::uint32_t members : {2U, 3U, 9U}) {
        std::mt19937 random(GetParam() * 31 + members);
        const std::uint32_t window = 1 + random() % 4, chunk = 64 << random() % 3, rounds = 60;
        Party party(members, window, chunk < 8 * members ? 128 : chunk);
        std::vector<std::vector<std::unique_ptr<Work>>> work(members);
        for (std::uint32_t round = 0; round < rounds; ++round) {
            const auto operation = static_cast<velo_board_operation>(1 + random() % 12);
            const std::uint32_t kinds[] = {2, 16, 16, 200}, count = 1 + random() % kinds[random() % 4];
            const bool in_place = random() % 2 == 0;
            for (std::uint32_t me = 0; me < members; ++me)
                work[me].push_back(std::make_unique<Work>(operation, round, me, members, count, in_place));
            const auto& one = *work[0].back();
            if (velo_board_needs(operation, &one.request, members) != UINT64_MAX) continue;
            for (auto& of_member : work) of_member.pop_back();
        }
        std::vector<std::size_t> begun(members), ended(members);
        const auto all_over = [&] {
            for (std::uint32_t me = 0; me < members; ++me)
                if (ended[me] < work[me].size()) return false;
            return true;
        };
        for (std::uint64_t steps = 0; !all_over(); ++steps) {
            ASSERT_LT(steps, 1'000'000U) << "nobody gets on";
            const std::uint32_t me = random() % members;
            velo_board* board = party.all[me];
            void* context = nullptr;
            velo_status status = VELO_OK;
            if (begun[me] < work[me].size() && random() % 3 == 0) {
                Work& one = *work[me][begun[me]++];
                void** place = nullptr;
                ASSERT_EQ(velo_board_start(board, one.operation, &one.request, one.from.data(), one.to.data(),
                                           &place),
                          VELO_OK);
                if (place != nullptr)
                    *place = &one;
                else
                    context = &one;
            } else if (!velo_board_advance(board, &context, &status)) {
                continue;
            }
            if (context == nullptr) continue;
            ASSERT_EQ(status, VELO_OK) << party.o.said;
            Work& one = *static_cast<Work*>(context);
            ASSERT_EQ(&one, work[me][ended[me]].get()) << "out of their order";
            ++ended[me];
            EXPECT_EQ(one.to, one.expected)
                << "operation " << one.operation << " at " << me << " of " << members;
        }
        EXPECT_EQ(party.o.said, "");
    }
}

INSTANTIATE_TEST_SUITE_P(seeds, BoardRequestsTest, testing::Range(0U, 12U));

TEST(BoardRequestTest, who_is_ahead_by_the_window_goes_on_when_half_of_it_is_free) {
    Party party(2, 4, 64);
    std::uint32_t values[6], found = 0;
    velo_goal_request request{};
    request.bytes = 4;
    void** place = nullptr;
    void* context = nullptr;
    velo_status status;
    velo_board *root = party.all[0], *other = party.all[1];
    for (std::uint32_t i = 0; i < 6; ++i) {
        values[i] = i;
        ASSERT_EQ(velo_board_start(root, VELO_BOARD_BCAST, &request, nullptr, &values[i], &place), VELO_OK);
        EXPECT_EQ(place == nullptr, i < 4);
        if (place != nullptr) *place = &values[i];
    }
    const auto read_one = [&] {
        ASSERT_EQ(velo_board_start(other, VELO_BOARD_BCAST, &request, nullptr, &found, &place), VELO_OK);
        ASSERT_EQ(place, nullptr);
    };
    EXPECT_FALSE(velo_board_advance(root, &context, &status));
    read_one();
    EXPECT_FALSE(velo_board_advance(root, &context, &status)) << "one is not half";
    read_one();
    for (std::uint32_t i = 4; i < 6; ++i) {
        ASSERT_TRUE(velo_board_advance(root, &context, &status));
        EXPECT_EQ(context, &values[i]);
    }
    for (std::uint32_t i = 2; i < 6; ++i) read_one();
    EXPECT_EQ(found, 5U);
}

// How many operations of rank 0 are over at once while nobody else takes part.
std::uint32_t ahead_of_all(std::uint32_t members, std::uint32_t window, std::uint32_t chunk,
                           velo_board_operation operation, std::uint32_t bytes) {
    test::TemporaryDirectory directory;
    Opened o;
    o.config.size = members;
    o.config.window = window;
    o.config.chunks = std::min(window, 32U);
    o.config.chunk = chunk;
    Access store(directory.path().c_str(), 1, o);
    velo_board* const root = store.board(0);
    velo_goal_request request{};
    request.bytes = bytes;
    std::vector<char> from(std::size_t{bytes} * members), to(bytes);
    void** place = nullptr;
    std::uint32_t over = 0;
    for (; over < 999 && place == nullptr; ++over)
        EXPECT_EQ(velo_board_start(root, operation, &request, from.data(), to.data(), &place), VELO_OK);
    return over - 1;
}

// Up to 1 KiB lies in slips, where they are more: 128, or as many as the window has, as a power of two.
TEST(BoardRequestTest, of_many_members_each_has_fewer_chunks) {
    struct Case {
        std::uint32_t members, chunk, bytes, ahead, window = 256;
    };
    for (const auto& [members, chunk, bytes, ahead, window] :
         {Case{2, 8192, 100, 128}, Case{2, 8192, 1025, 32}, Case{7, 8192, 1025, 16}, Case{7, 8192, 1024, 128},
          Case{31, 8192, 1025, 4}, Case{31, 8192, 57, 128}, Case{31, 8192, 56, 256}, Case{64, 8192, 1025, 4},
          Case{64, 65536, 1025, 1}, Case{64, 65536, 100, 128}, Case{64, 1024, 100, 32},
          Case{64, 65536, 100, 16, 31}, Case{64, 65536, 1025, 1, 31}}) {
        EXPECT_EQ(ahead_of_all(members, window, chunk, VELO_BOARD_BCAST, bytes), ahead)
            << members << " members, chunks of " << chunk << ", " << bytes << " bytes";
    }
}

// Together up to 1 KiB; of more, each block lies with the member that it is for.
TEST(BoardRequestTest, a_root_that_scatters_is_ahead_by_the_places_of_all) {
    struct Case {
        std::uint32_t members, block, ahead;
    };
    for (const auto& [members, block, ahead] :
         {Case{3, 8192, 32}, Case{31, 1, 127}, Case{31, 33, 64}, Case{31, 35, 127}, Case{31, 57, 64},
          Case{31, 1024, 64}, Case{31, 1025, 4}, Case{31, 8192, 4}, Case{31, 8193, 2},
          Case{31, 5 * 8192, 0}}) {
        EXPECT_EQ(ahead_of_all(members, 127, 8192, VELO_BOARD_SCATTER, block), ahead)
            << members << " members, blocks of " << block;
    }
}

TEST(BoardRequestTest, where_each_needs_what_all_others_give_several_runs_are_given_at_once) {
    Party party(3, 4, 64);
    std::vector<char> from(64 * 5), to(3 * from.size());
    velo_goal_request request{};
    request.bytes = from.size();
    const auto published = [&](velo_board* board, velo_board_operation operation) {
        const std::uint64_t before = velo_board_count().published;
        void** place = nullptr;
        EXPECT_EQ(velo_board_start(board, operation, &request, from.data(), to.data(), &place), VELO_OK);
        EXPECT_NE(place, nullptr);
        return velo_board_count().published - before;
    };
    EXPECT_EQ(published(party.all[0], VELO_BOARD_ALLGATHER), 2U) << "half of four chunks";
    EXPECT_EQ(published(party.all[1], VELO_BOARD_GATHER), 4U) << "as many as there are";
}

TEST(BoardRequestTest, another_number_of_bytes_ends_it_and_all_that_follow_with_an_error) {
    Party party(2, 4, 64);
    std::uint32_t value[4] = {}, next = 0;
    velo_goal_request request{};
    void** place = nullptr;
    void* context = nullptr;
    velo_status status;
    velo_board *root = party.all[0], *other = party.all[1];
    request.bytes = 16;
    ASSERT_EQ(velo_board_start(root, VELO_BOARD_BCAST, &request, nullptr, value, &place), VELO_OK);
    request.bytes = 8;
    for (void* to : {static_cast<void*>(value), static_cast<void*>(&next)}) {
        ASSERT_EQ(velo_board_start(other, VELO_BOARD_BCAST, &request, nullptr, to, &place), VELO_OK);
        *place = to;
    }
    while (!velo_board_advance(other, &context, &status)) {
    }
    EXPECT_EQ(context, value);
    EXPECT_EQ(status, VELO_ERR_MISMATCH);
    EXPECT_NE(party.o.said.find("b, run 0: rank 0 has 16 bytes where this rank has 8"), std::string::npos)
        << party.o.said;
    ASSERT_TRUE(velo_board_advance(other, &context, &status));
    EXPECT_EQ(context, &next);
    EXPECT_EQ(status, VELO_ERR_PROTOCOL);
    EXPECT_FALSE(velo_board_advance(other, &context, &status));
}

// Whoever arrives last does the work of a reduction, within progress.
TEST(BoardRequestTest, another_number_of_bytes_in_a_later_run_is_told_at_once) {
    Party party(3, 4, 64);
    std::uint32_t from[32] = {}, to[32] = {};
    velo_goal_request request{};
    request.type = VELO_GOAL_UINT;
    request.width = 32;
    velo_status last = VELO_OK;
    void* context = nullptr;
    for (std::uint32_t me = 0; me < 3; ++me) {
        void** place = nullptr;
        request.bytes = me == 1 ? 96 : 128;
        ASSERT_EQ(velo_board_start(party.all[me], VELO_BOARD_ALLREDUCE, &request, from, to, &place), VELO_OK);
        ASSERT_NE(place, nullptr);
        *place = from;
    }
    const std::uint64_t waits = velo_board_count().long_waits;
    EXPECT_FALSE(velo_board_advance(party.all[1], &context, &last));
    EXPECT_TRUE(velo_board_advance(party.all[0], &context, &last));
    EXPECT_EQ(last, VELO_ERR_MISMATCH);
    EXPECT_NE(party.o.said.find("b, run 1: rank 1 has 32 bytes where this rank has 64"), std::string::npos)
        << party.o.said;
    EXPECT_EQ(velo_board_count().long_waits, waits) << "nobody waits within progress";
}

TEST(BoardRequestTest, another_operation_of_the_same_size_is_told_with_both) {
    struct Call {
        velo_board_operation operation;
        velo_goal_operator op;
    };
    const auto outcome = [](Call first, Call second) {
        Party party(2, 4, 64);
        std::uint32_t from[2] = {}, to[4] = {};
        velo_goal_request request{};
        request.bytes = 4;
        request.type = VELO_GOAL_UINT;
        request.width = 32;
        void* context = nullptr;
        velo_status status[2] = {};
        const Call calls[] = {first, second};
        for (std::uint32_t me = 0; me < 2; ++me) {
            void** place = nullptr;
            request.op = calls[me].op;
            EXPECT_EQ(velo_board_start(party.all[me], calls[me].operation, &request, from, to, &place),
                      VELO_OK);
            EXPECT_NE(place, nullptr);
            if (place != nullptr) *place = from;
        }
        for (std::uint32_t me = 0; me < 2; ++me)
            while (!velo_board_advance(party.all[me], &context, &status[me])) {
            }
        EXPECT_EQ(status[0], VELO_ERR_PROTOCOL);
        EXPECT_EQ(status[1], VELO_ERR_PROTOCOL);
        return party.o.said;
    };
    const std::string one = outcome({VELO_BOARD_REDUCE, VELO_GOAL_ADD}, {VELO_BOARD_BCAST, VELO_GOAL_MAX});
    EXPECT_NE(one.find("b, run 0: this rank is in reduce (add) of root 0, and rank 1 in bcast of root 0"),
              std::string::npos)
        << one;
    const std::string other =
        outcome({VELO_BOARD_ALLREDUCE, VELO_GOAL_ADD}, {VELO_BOARD_ALLREDUCE, VELO_GOAL_MAX});
    EXPECT_NE(other.find("b, run 0: this rank is in allreduce (max), and rank 0 in allreduce (add)"),
              std::string::npos)
        << other;
}

TEST(BoardRequestTest, one_that_nobody_joins_names_the_slowest) {
    Party party(3, 4, 64);
    velo_goal_request request{};
    void** place = nullptr;
    void* context = nullptr;
    velo_status status;
    for (std::uint32_t me = 0; me < 2; ++me) {
        ASSERT_EQ(velo_board_start(party.all[me], VELO_BOARD_BARRIER, &request, nullptr, nullptr, &place),
                  VELO_OK);
        *place = &request;
    }
    while (party.o.said.empty()) EXPECT_FALSE(velo_board_advance(party.all[0], &context, &status));
    EXPECT_NE(party.o.said.find("no progress on the board of b for "), std::string::npos) << party.o.said;
    EXPECT_NE(party.o.said.find("run 0 waits for rank 2, which is at 0"), std::string::npos) << party.o.said;
}

}  // namespace
}  // namespace velo::board
