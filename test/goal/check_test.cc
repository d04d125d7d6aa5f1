// What the checker finds, and what it must not find.
#include "collectives/goal/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "goal/listings.h"

namespace velo::goal {
namespace {

std::string text(const std::vector<Finding>& findings) {
    std::string all;
    for (const Finding& f : findings) all += f.text + "\n";
    return all;
}

std::string checked(const std::string& program, const CheckOptions& options = {}) {
    std::string error;
    const auto read = read_program(program, &error);
    EXPECT_TRUE(read) << error;
    return read ? text(check(*read, options)) : "";
}

TEST(CheckTest, a_right_program_has_no_findings) {
    EXPECT_EQ(checked("num_ranks 2\nrank 0 {\na: send 8b to 1\nb: recv 4b from 1\nb requires a\n}\n"
                      "rank 1 {\na: recv 8b from 0\nb: send 4b to 0\nb requires a\n}\n",
                      {.eager = 0}),
              "");
}

TEST(CheckTest, a_message_without_receive_and_a_receive_without_message) {
    EXPECT_EQ(checked("num_ranks 2\nrank 0 {\na: send 8b to 1 tag 3\n}\nrank 1 {\n}\n"),
              "rank 0: a (send 8b to 1 tag 3) finds no receive\n");
    EXPECT_EQ(checked("num_ranks 2\nrank 0 {\n}\nrank 1 {\nx: recv 8b from 0\n}\n"),
              "rank 1: x (recv 8b from 0) waits for rank 0, which has ended\n");
    EXPECT_EQ(checked("num_ranks 2\nrank 0 {\nsend 8b to 1 tag 2\n}\nrank 1 {\nx: recv 8b from 0 tag 3\n}\n"),
              "rank 1: x (recv 8b from 0 tag 3) waits for rank 0, which has ended\n");
    EXPECT_EQ(checked("num_ranks 2\nrank 0 {\n}\nrank 1 {\nx: recv 8b from -1\n}\n"),
              "rank 1: x (recv 8b from -1) waits for any rank\n");
}

TEST(CheckTest, sizes_that_differ) {
    EXPECT_EQ(checked("num_ranks 2\nrank 0 {\na: send 8b to 1\n}\nrank 1 {\nb: recv 9b from 0\n}\n"),
              "rank 0: a (send 8b to 1) is received by rank 1: b (recv 9b from 0)\n");
}

TEST(CheckTest, a_deadlock_is_told_as_a_circle) {
    const char* const ring =
        "num_ranks 3\n"
        "rank 0 {\nr: recv 8b from 2\ns: send 8b to 1\ns requires r\n}\n"
        "rank 1 {\nr: recv 8b from 0\ns: send 8b to 2\ns requires r\n}\n"
        "rank 2 {\nr: recv 8b from 1\ns: send 8b to 0\ns requires r\n}\n";
    EXPECT_EQ(checked(ring),
              "rank 0: r (recv 8b from 2) waits for rank 2: r (recv 8b from 1) waits for "
              "rank 1: r (recv 8b from 0) waits for rank 0\n");
}

TEST(CheckTest, what_needs_memory_for_messages_is_found_with_none) {
    const char* const exchange =
        "num_ranks 2\n"
        "rank 0 {\ns: send 8b to 1\nr: recv 8b from 1\nr requires s\n}\n"
        "rank 1 {\ns: send 8b to 0\nr: recv 8b from 0\nr requires s\n}\n";
    EXPECT_EQ(checked(exchange), "");
    EXPECT_EQ(checked(exchange, {.eager = 8}), "");
    EXPECT_EQ(checked(exchange, {.eager = 7}),
              "rank 0: s (send 8b to 1) waits for rank 1: s (send 8b to 0) waits for rank 0\n");
}

TEST(CheckTest, messages_that_only_time_tells_apart) {
    const std::string receiver = "rank 1 {\na: recv 4b from 0\nb: recv 8b from 0\nb irequires a\n}\n";
    EXPECT_EQ(
        checked("num_ranks 2\nrank 0 {\na: send 4b to 1\nb: send 8b to 1\n}\n" + receiver),
        "rank 0: a (send 4b to 1) and b (send 8b to 1) are told apart by nothing but their order, and have "
        "none\n");
    EXPECT_EQ(
        checked("num_ranks 2\nrank 0 {\na: send 4b to 1\nb: send 8b to 1\nb irequires a\n}\n" + receiver),
        "");
    EXPECT_EQ(checked("num_ranks 2\nrank 0 {\na: send 4b to 1\nc: calc 1\nb: send 8b to 1\nc irequires a\n"
                      "b requires c\n}\n" +
                      receiver),
              "");
    // Tags tell them apart, and equal ones need not be.
    EXPECT_EQ(checked("num_ranks 2\nrank 0 {\nsend 4b to 1 tag 1\nsend 8b to 1\n}\n"
                      "rank 1 {\nrecv 4b from 0 tag 1\nrecv 8b from 0\n}\n"),
              "");
    EXPECT_EQ(checked("num_ranks 2\nrank 0 {\nsend 4b to 1\nsend 4b to 1\n}\n"
                      "rank 1 {\nrecv 4b from 0\nrecv 4b from 0\n}\n"),
              "");
}

// One rank that receives into argument 0 and does `more` with it.
template <typename More>
std::string races(More more) {
    Program program = listings::of_all(2, [&](Graph& g, std::uint32_t rank) {
        if (rank == 1) {
            g.send({0, 0}, 8, 0);
            return;
        }
        more(g, g.receive({0, 0}, 8, 1));
    });
    return text(check(program));
}

TEST(CheckTest, operations_that_use_the_same_bytes_need_an_order) {
    EXPECT_EQ(races([](Graph& g, Vertex) {
                  g.copy({7, 0}, {0, 1}, 4);
              }),
              "rank 0: operation 0 (recv 8b from 1) and operation 1 (copy 4b) use byte 7 of argument 0 in no "
              "order\n");
    EXPECT_EQ(races([](Graph& g, Vertex) { g.copy({8, 0}, {0, 1}, 4); }), "");
    EXPECT_EQ(races([](Graph& g, Vertex r) { g.needs(g.copy({0, 0}, {0, 1}, 4), r); }), "");
    // That the receive has started is not enough.
    EXPECT_EQ(races([](Graph& g, Vertex r) {
                  g.needs_start(g.copy({0, 0}, {0, 1}, 4), r);
              }),
              "rank 0: operation 0 (recv 8b from 1) and operation 1 (copy 4b) use byte 0 of argument 0 in no "
              "order\n");
    EXPECT_EQ(races([](Graph& g, Vertex r) { g.needs(r, g.copy({0, 0}, {0, 1}, 4)); }), "");
    // Two may read.
    EXPECT_EQ(races([](Graph& g, Vertex r) {
                  g.needs(g.copy({0, 0}, {0, 1}, 4), r);
                  g.needs(g.copy({0, 0}, {4, 1}, 4), r);
              }),
              "");
    EXPECT_EQ(races([](Graph& g, Vertex) {
                  const Piece pieces[] = {{{20, 0}, 2}, {{6, 0}, 2}};
                  Combination c;
                  c.first = g.operand(Place{0, 1});
                  c.result = g.operand(pieces);
                  c.elements = 4;
                  g.combine(c);
              }),
              "rank 0: operation 0 (recv 8b from 1) and operation 1 (copy 4b) use byte 6 of argument 0 in no "
              "order\n");
    // An operation on its own operand.
    EXPECT_EQ(races([](Graph& g, Vertex r) {
                  Combination c;
                  c.op = Operator::kAdd;
                  c.first = c.result = g.operand(Place{0, 0});
                  c.second = g.operand(Place{0, 1});
                  c.elements = 8;
                  g.needs(g.combine(c), r);
              }),
              "");
    // Long ones: each operation is compared with the last one there, not with all.
    EXPECT_EQ(races([](Graph& g, Vertex r) {
                  for (int i = 0; i < 100000; ++i) {
                      const Vertex copy = g.copy({0, 0}, {0, 1}, 4);
                      g.needs(copy, r);
                      r = copy;
                  }
              }),
              "");
    EXPECT_EQ(races([](Graph& g, Vertex r) {
                  for (int i = 0; i < 100000; ++i)
                      g.needs(g.copy({0, 1}, {8 + 4 * std::uint64_t(i), 0}, 4), r);
                  const Vertex last = g.copy({8, 0}, {0, 1}, 400000);
                  g.needs(last, r);
              }).substr(0, 8),
              "rank 0: ");
}

TEST(CheckTest, each_kind_of_finding_is_told_so_many_times_at_most) {
    std::string program = "num_ranks 2\nrank 0 {\n";
    for (int i = 0; i < 50; ++i) program += "send 1b to 1 tag " + std::to_string(i) + "\n";
    std::string error;
    program += "}\nrank 1 {\n}\n";
    const auto read = read_program(program, &error);
    EXPECT_EQ(check(*read).size(), 10U);
    EXPECT_EQ(check(*read, {.most = 50}).size(), 50U);
}

// Chapter 5.4.
TEST(ListingsTest,
     the_recursive_doubling_barrier_as_printed_is_none_for_five_or_more_without_a_power_of_two) {
    for (std::uint32_t size = 2; size <= 16; ++size) {
        const auto found = check(listings::recursive_doubling_barrier(size, true), {.barrier = true});
        const bool right = std::has_single_bit(size) || size < 5;
        EXPECT_EQ(found.empty(), right) << size << ": " << text(found);
        for (const Finding& f : found) EXPECT_EQ(f.kind, Finding::kLeaves) << f.text;
    }
    const auto of_five = text(check(listings::recursive_doubling_barrier(5, true), {.barrier = true}));
    EXPECT_NE(of_five.find("rank 2 may end before rank 4 has begun"), std::string::npos) << of_five;
}

TEST(ListingsTest, with_every_send_after_the_one_before_it_is_a_barrier) {
    for (std::uint32_t size = 2; size <= 33; ++size)
        EXPECT_EQ(
            text(check(listings::recursive_doubling_barrier(size, false), {.eager = 0, .barrier = true})), "")
            << size;
}

TEST(ListingsTest, brucks_barrier_is_one_as_printed) {
    for (std::uint32_t size = 1; size <= 33; ++size)
        EXPECT_EQ(text(check(listings::bruck_barrier(size), {.eager = 0, .barrier = true})), "") << size;
}

TEST(CheckTest, a_gather_is_no_barrier) {
    const Program program = listings::of_all(3, [](Graph& g, std::uint32_t rank) {
        if (rank > 0) g.send({0, 0}, 1, 0);
        for (std::uint32_t p = 1; rank == 0 && p < 3; ++p) g.receive({p, 1}, 1, p);
    });
    EXPECT_EQ(text(check(program, {.barrier = true})),
              "rank 1 may end before rank 0 has begun\nrank 1 may end before rank 2 has begun\n"
              "rank 2 may end before rank 0 has begun\nrank 2 may end before rank 1 has begun\n");
    // A sender that waits for its receive has met the receiver.
    EXPECT_EQ(text(check(program, {.eager = 0, .barrier = true})),
              "rank 1 may end before rank 2 has begun\nrank 2 may end before rank 1 has begun\n");
}

// Chapter 5.5.
TEST(ListingsTest, linear_sync_as_printed_mixes_its_segments) {
    EXPECT_EQ(text(check(listings::linear_sync_gather(4, 1, 100, 10, false, false), {.eager = 0})), "");
    const auto turned = check(listings::linear_sync_gather(4, 1, 100, 10, true, false));
    const auto count = [&](Finding::Kind kind) { return std::ranges::count(turned, kind, &Finding::kind); };
    EXPECT_EQ(count(Finding::kAmbiguous), 3) << text(turned);  // both receives of each peer
    EXPECT_EQ(count(Finding::kSize), 6) << text(turned);       // both messages of each peer
}

TEST(ListingsTest, linear_sync_with_the_roots_block_at_the_beginning_writes_over_another) {
    const auto misplaced = check(listings::linear_sync_gather(4, 1, 100, 10, false, true));
    ASSERT_FALSE(misplaced.empty());
    EXPECT_EQ(misplaced[0].kind, Finding::kRace) << text(misplaced);
}

// A send to oneself is a copy there.
TEST(ListingsTest, the_binomial_gather_as_printed_needs_rank_0_as_its_root) {
    for (std::uint32_t size = 1; size <= 17; ++size) {
        EXPECT_EQ(text(check(listings::binomial_gather(size, 0, 8), {.eager = 0})), "") << size;
        for (std::uint32_t root = 1; root < size; ++root)
            EXPECT_FALSE(check(listings::binomial_gather(size, root, 8)).empty())
                << size << ", root " << root;
    }
}

}  // namespace
}  // namespace velo::goal
