#include "collectives/algorithms/choice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace velo::goal::collectives {
namespace {

std::string chosen(const Choices& choices, std::string_view operation, std::uint32_t size,
                   std::uint64_t bytes, bool commutative = true) {
    Request request;
    request.size = size;
    request.bytes = bytes;
    request.reduction.commutative = commutative;
    const Algorithm* algorithm = choices.choose(operation, request);
    return algorithm == nullptr ? "" : std::string(algorithm->name);
}

std::string wrong(const std::string& text) {
    std::string error;
    EXPECT_FALSE(Choices::read(text, &error)) << text;
    return error;
}

TEST(ChoicesTest, velos_own_rules_serve_every_operation_at_every_size_and_order) {
    const Choices own;
    for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.operation == "exchange") continue;
        for (const std::uint32_t size : {1U, 2U, 3U, 8U, 9U, 64U, 1000U, 1U << 20})
            for (const std::uint64_t bytes : {0UL, 1UL, 2048UL, 65536UL, 1UL << 40})
                for (const bool commutative : {true, false})
                    EXPECT_NE(chosen(own, algorithm.operation, size, bytes, commutative), "")
                        << algorithm.operation << ' ' << size << ' ' << bytes;
    }
    EXPECT_EQ(chosen(own, "nonsense", 2, 0), "");
}

TEST(ChoicesTest, what_goes_between_nodes_once_is_for_several_nodes_with_several_ranks_each) {
    std::string error;
    const auto choices = Choices::read("alltoall 1 0 nodes", &error);
    ASSERT_TRUE(choices) << error;
    Request request;
    request.size = 8;
    request.bytes = 8;
    for (const auto& [on_node, name] :
         {std::pair{1U, "linear"}, {2U, "nodes"}, {5U, "nodes"}, {8U, "linear"}, {16U, "linear"}}) {
        request.on_node = on_node;
        EXPECT_EQ(choices->choose("alltoall", request)->name, name) << on_node;
    }
}

TEST(ChoicesTest, size_bytes_and_order_decide) {
    const Choices own;
    EXPECT_EQ(chosen(own, "bcast", 4, 65535), "linear");
    EXPECT_EQ(chosen(own, "bcast", 5, 65535), "binomial");
    EXPECT_EQ(chosen(own, "bcast", 8, 65536), "linear");
    EXPECT_EQ(chosen(own, "bcast", 9, 65536), "scatter_allgather");
    EXPECT_EQ(chosen(own, "allreduce", 16, 65535), "recursive_doubling");
    EXPECT_EQ(chosen(own, "allreduce", 16, 65536), "rabenseifner");
    EXPECT_EQ(chosen(own, "allreduce", 12, 65536), "ring");
    EXPECT_EQ(chosen(own, "allreduce", 2, 1 << 20), "recursive_doubling");
    EXPECT_EQ(chosen(own, "allreduce", 3, 16384), "ring");
    EXPECT_EQ(chosen(own, "allreduce", 4, 16384), "rabenseifner");
    EXPECT_EQ(chosen(own, "allreduce", 4, 1 << 20), "rabenseifner");
    EXPECT_EQ(chosen(own, "allreduce", 4, 1 << 20, false), "recursive_doubling");
    EXPECT_EQ(chosen(own, "scan", 2, 8), "linear");
    EXPECT_EQ(chosen(own, "scan", 4, 8), "recursive_doubling");
    EXPECT_EQ(chosen(own, "exscan", 4, 16384), "linear");
    EXPECT_EQ(chosen(own, "allreduce", 12, 65536, false), "recursive_doubling");
    EXPECT_EQ(chosen(own, "alltoall", 16, 256), "linear");
    EXPECT_EQ(chosen(own, "alltoall", 17, 256), "bruck");
    EXPECT_EQ(chosen(own, "alltoall", 64, 257), "linear");
    EXPECT_EQ(chosen(own, "alltoall", 65, 257), "pairwise");
}

TEST(ChoicesTest, rules_of_a_text_come_before_velos_own_and_later_ones_before_earlier_ones) {
    std::string error;
    const auto choices = Choices::read(
        "# measured\n\nbcast 2-3 0 chain\n  bcast\t2-3 100 binomial # from there on\r\n"
        "allreduce 2 0 ring\nallreduce 2^n 8 reduce_bcast",
        &error);
    ASSERT_TRUE(choices) << error;
    EXPECT_EQ(chosen(*choices, "bcast", 1, 0), "linear");
    EXPECT_EQ(chosen(*choices, "bcast", 2, 99), "chain");
    EXPECT_EQ(chosen(*choices, "bcast", 3, 100), "binomial");
    EXPECT_EQ(chosen(*choices, "bcast", 4, 100), "linear");
    EXPECT_EQ(chosen(*choices, "allreduce", 3, 100), "ring");
    EXPECT_EQ(chosen(*choices, "allreduce", 3, 100, false), "recursive_doubling");
    EXPECT_EQ(chosen(*choices, "allreduce", 4, 100), "reduce_bcast");
    EXPECT_EQ(chosen(*choices, "allreduce", 4, 7), "ring");
}

TEST(ChoicesTest, what_is_wrong_is_told_with_its_line) {
    EXPECT_EQ(wrong("bcast 2 0 linear\nbcast 2 0\n"),
              "line 2: a rule has four words: OPERATION RANKS BYTES ALGORITHM");
    EXPECT_EQ(wrong("bcast 2 0 linear now"),
              "line 1: a rule has four words: OPERATION RANKS BYTES ALGORITHM");
    EXPECT_EQ(wrong("\n#\nscan 2 0 fast"),
              "line 3: scan has no algorithm \"fast\"; it has linear, "
              "recursive_doubling");
    EXPECT_EQ(wrong("broadcast 2 0 linear").substr(0, 62),
              "line 1: \"broadcast\" is no operation; there are barrier, bcast,");
    for (const char* ranks : {"0", "x", "2-", "-2", "5-4", "3^n", "4294967296", "2.5"})
        EXPECT_EQ(wrong("bcast " + std::string(ranks) + " 0 linear"),
                  "line 1: \"" + std::string(ranks) +
                      "\" are no ranks: N for N or more, A-B, or 2^n for powers of two");
    EXPECT_EQ(wrong("bcast 2 1k linear"), "line 1: \"1k\" is no number of bytes");
}

TEST(ChoicesTest, equal_rules_have_equal_digests_however_they_are_written) {
    std::string error;
    const Choices own;
    const auto plain = Choices::read("bcast 2 0 chain\n", &error);
    const auto dressed = Choices::read("# a\n\n  bcast   2\t0 chain # b\n", &error);
    ASSERT_TRUE(plain && dressed);
    EXPECT_EQ(own.digest(), Choices::read("# nothing\n", &error)->digest());
    EXPECT_EQ(plain->digest(), dressed->digest());
    for (const char* other : {"", "bcast 3 0 chain", "bcast 2-9 0 chain", "bcast 2^n 0 chain",
                              "bcast 2 1 chain", "bcast 2 0 linear"})
        EXPECT_NE(plain->digest(), Choices::read(other, &error)->digest()) << other;
}

TEST(ChoicesTest, pairs_name_the_algorithms_for_all_ranks_and_bytes) {
    std::string error;
    const auto pairs = Choices::load("bcast:chain,barrier:binomial", &error);
    ASSERT_TRUE(pairs) << error;
    EXPECT_EQ(pairs->digest(), Choices::read("bcast 1 0 chain\nbarrier 1 0 binomial\n", &error)->digest());
    EXPECT_FALSE(Choices::load("bcast:chain,barrier:magic", &error));
    EXPECT_EQ(error.find("line 2: barrier has no algorithm \"magic\""), 0U) << error;
}

TEST(ChoicesTest, a_file_is_named_in_what_is_wrong_with_it) {
    std::string error;
    EXPECT_FALSE(Choices::load("/nowhere/at/all", &error));
    EXPECT_EQ(error, "cannot read /nowhere/at/all: No such file or directory");
    const std::string path = testing::TempDir() + "velo-choices-" + std::to_string(getpid());
    std::ofstream(path) << "bcast 1 0 chain\nscan\n";
    EXPECT_FALSE(Choices::load(path, &error));
    EXPECT_EQ(error, path + ", line 2: a rule has four words: OPERATION RANKS BYTES ALGORITHM");
    std::remove(path.c_str());
    EXPECT_EQ(Choices::load("", &error)->digest(), Choices().digest());
}

}  // namespace
}  // namespace velo::goal::collectives
