// LogGOPSim's two formats: what is read, what is written, what is refused, and that no damage leads astray.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "collectives/goal/program.h"

namespace velo::goal {
namespace {

// As LogGOPSim's schedgen writes a binomial reduction of 4.
constexpr const char* kReduce = R"(num_ranks 4

rank 0 {
l1: recv 1024b from 1 tag 0
l2: recv 1024b from 2 tag 0
}

rank 1 {
l1: send 1024b to 0 tag 0
l2: recv 1024b from 3 tag 0
l1 requires l2
}

rank 2 {
l1: send 1024b to 0 tag 0
}

rank 3 {
l1: send 1024b to 1 tag 0
}
)";

Program read(const std::string& data) {
    std::string error;
    auto program = read_program(data, &error);
    EXPECT_TRUE(program) << error;
    return program ? *program : Program();
}
std::string refusal(const std::string& data) {
    std::string error;
    EXPECT_FALSE(read_program(data, &error)) << data;
    return error;
}
std::string in_rank(const std::string& body) {
    return "num_ranks 4\nrank 0 {\n" + body + "}\nrank 1 {\n}\nrank 2 {\n}\nrank 3 {\n}\n";
}

void expect_equal(const Program& a, const Program& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::uint32_t r = 0; r < a.size(); ++r) {
        const auto x = a.schedules[r].image(), y = b.schedules[r].image();
        EXPECT_TRUE(std::ranges::equal(x, y)) << "rank " << r;
    }
}

TEST(FormatTest, a_text_of_schedgen_is_read) {
    const std::string text = kReduce;
    const Program program = read(text);
    ASSERT_EQ(program.size(), 4U);
    EXPECT_EQ(program.place(1, 0), "rank 1: l1 (send 1024b to 0)");
    EXPECT_EQ(program.place(1, 1), "rank 1: l2 (recv 1024b from 3)");
    EXPECT_EQ(program.schedules[1].counters()[0], 1U);
    ASSERT_EQ(program.schedules[1].dependents(1).size(), 1U);
    EXPECT_EQ(program.schedules[1].dependents(1)[0], 0U);
    EXPECT_EQ(program.cpus(), 1U);
}

TEST(FormatTest, every_form_of_a_statement_is_read) {
    const std::string text = in_rank(
        "  // a comment\n/* one over\nlines */ a: send 18446744073709551615 b to 3 tag 4294967294 cpu 7 nic "
        "255\n"
        "b_1:recv 0b from -1 tag -1\r\n"
        "recv 5b from2tag3cpu1\n\tc : calc 9 cpu 3\n"
        "calc 1\n\n a requires b_1 \nc irequires a\n");
    const Program program = read(text);
    const Schedule& s = program.schedules[0];
    ASSERT_EQ(s.count(), 5U);
    EXPECT_EQ(s.operation(0).bytes, UINT64_MAX);
    EXPECT_EQ(s.operation(0).tag, 4294967294U);
    EXPECT_EQ(s.operation(0).cpu, 7);
    EXPECT_EQ(s.operation(0).nic, 255);
    EXPECT_EQ(s.operation(1).peer, kAny);
    EXPECT_EQ(s.operation(1).tag, kAny);
    EXPECT_EQ(s.operation(2).peer, 2U);
    EXPECT_EQ(s.operation(2).tag, 3U);
    EXPECT_EQ(s.operation(2).cpu, 1);
    EXPECT_EQ(s.operation(3).kind, Kind::kCalculate);
    EXPECT_EQ(s.dependents(1)[0], 0U);
    EXPECT_EQ(s.start_dependents(0)[0], 3U);
    EXPECT_EQ(program.name(0, 2), "operation 2");
    EXPECT_EQ(program.cpus(), 8U);
    EXPECT_EQ(program.nics(), 256U);
}

TEST(FormatTest, what_is_wrong_in_a_text_is_told_with_its_place) {
    EXPECT_EQ(refusal("rank 0 {\n}\n"), "line 1, column 5: num_ranks comes before the first rank");
    EXPECT_EQ(refusal("num_ranks 0\n"), "line 1, column 12: no ranks");
    EXPECT_EQ(refusal("num_ranks 2\nrank 0 {\n}\n"), "rank 1 of 2 is missing");
    EXPECT_EQ(refusal("num_ranks 2\nrank 1 {\n}\n"), "rank 0 of 2 is missing");
    EXPECT_EQ(refusal("num_ranks 200000000\nrank 1 {\n}\n"), "rank 0 of 200000000 is missing");
    EXPECT_EQ(refusal("\n"), "no ranks");
    EXPECT_EQ(refusal("num_ranks 2\nrank 2 {\n}\n"), "line 2, column 6: rank 2, but there are 2");
    EXPECT_EQ(refusal("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n"), "line 4, column 6: rank 0 a second time");
    EXPECT_EQ(refusal("num_ranks 1\nrank 0 {\ncalc 1\n"),
              "line 4, column 1: expected an operation, a label or \"}\", found the end");
    EXPECT_EQ(refusal("num_ranks 1\nfoo\n"),
              "line 2, column 1: expected \"num_ranks\" or \"rank\", found \"foo\"");
    EXPECT_EQ(refusal("num_ranks 1\nrank 0 \n"),
              "line 2, column 8: expected \"{\", found the end of the line");
    EXPECT_EQ(refusal(in_rank("send 5 to 1\n")), "line 3, column 8: expected \"b\", found \"to\"");
    EXPECT_EQ(refusal(in_rank("send 5b from 1\n")), "line 3, column 9: expected \"to\", found \"from\"");
    EXPECT_EQ(refusal(in_rank("recv 5b to 1\n")), "line 3, column 9: expected \"from\", found \"to\"");
    EXPECT_EQ(refusal(in_rank("send 5b to -1\n")), "line 3, column 12: expected a number, found \"-\"");
    EXPECT_EQ(refusal(in_rank("send 5b to 4\n")), "line 3, column 5: there are 4 ranks");
    EXPECT_EQ(refusal(in_rank("calc 99999999999999999999\n")),
              "line 3, column 6: this number is above 18446744073709551615");
    EXPECT_EQ(refusal(in_rank("calc 1 cpu 256\n")), "line 3, column 12: this number is above 255");
    EXPECT_EQ(refusal(in_rank("calc 1 nic 1\n")),
              "line 3, column 8: expected the end of the line, found \"nic\"");
    EXPECT_EQ(refusal(in_rank("calc 1 // x\n")),
              "line 3, column 8: expected the end of the line, found \"/\"");
    EXPECT_EQ(refusal(in_rank("l1: calc 1 l2: calc 2\n")),
              "line 3, column 12: expected the end of the line, found \"l2\"");
    EXPECT_EQ(refusal(in_rank("l1: jump 1\n")),
              "line 3, column 5: expected \"send\", \"recv\" or \"calc\", found \"jump\"");
    EXPECT_EQ(refusal(in_rank("l1 needs l2\n")),
              "line 3, column 4: expected \":\", \"requires\" or \"irequires\", found \"needs\"");
    EXPECT_EQ(refusal(in_rank("l1: calc 1\nl1 requires l2\nl2: calc 1\n")),
              "line 4, column 13: no operation above has the label l2");
    EXPECT_EQ(refusal(in_rank("l2 requires l1\n")), "line 3, column 1: no operation above has the label l2");
    EXPECT_EQ(refusal(in_rank("/* calc 1\n")), "line 3, column 3: this comment has no end");
}

TEST(FormatTest, ranks_may_come_in_any_order) {
    const std::string text =
        "num_ranks 3\nrank 2 {\nc: calc 2\n}\nrank 0 {\na: calc 0\n}\nrank 1 {\nb: calc 1\n}\n";
    const Program program = read(text);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(program.schedules[rank].rank(), rank);
        EXPECT_EQ(program.schedules[rank].operation(0).bytes, rank);
        EXPECT_EQ(program.name(rank, 0), std::string(1, static_cast<char>('a' + rank)));
    }
}

TEST(FormatTest, a_cycle_is_told_by_labels) {
    EXPECT_EQ(refusal(in_rank("a: calc 1\nb: calc 2\na requires b\nb irequires a\n")),
              "rank 0 has a cycle: b (calc 2) waits for a (calc 1) waits for b");
}

TEST(FormatTest, a_label_belongs_to_its_rank_alone) {
    EXPECT_EQ(refusal("num_ranks 2\nrank 0 {\nx: calc 1\n}\nrank 1 {\ny: calc 1\ny requires x\n}\n"),
              "line 7, column 12: no operation above has the label x");
}

TEST(FormatTest, text_and_binary_are_written_as_they_were_read) {
    const std::string text = kReduce;
    const Program program = read(text);
    const std::string written = to_text(program);
    expect_equal(program, read(written));
    const std::string binary = to_binary(program);
    expect_equal(program, read(binary));
    EXPECT_EQ(to_binary(read(binary)), binary);
    EXPECT_EQ(to_text(read(binary)), written);
}

// LogGOPSim's txt2bin on kReduce gives these sizes and numbers.
TEST(FormatTest, the_binary_is_that_of_txt2bin) {
    const std::string text = kReduce;
    const std::string binary = to_binary(read(text));
    // Head 14, table 64; ranks with 2, 2, 1, 1 operations of 39 bytes, 2, 1, 1, 1 independent ones, an edge.
    ASSERT_EQ(binary.size(), 14U + 64 + 4 * 8 + 6 * 39 + 5 * 4 + 4);
    const unsigned char head[] = {0x7f, 0x10, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 70, 0};
    for (std::size_t i = 0; i < sizeof head; ++i)
        EXPECT_EQ(static_cast<unsigned char>(binary[i]), head[i]) << i;
}

TEST(FormatTest, a_binary_that_contradicts_itself_is_refused) {
    const std::string text = kReduce;
    const std::string binary = to_binary(read(text));
    const auto damaged = [&](std::size_t at, unsigned char value) {
        std::string copy = binary;
        copy[at] = static_cast<char>(value);
        return copy;
    };
    EXPECT_EQ(refusal(damaged(0, 0x26).replace(1, 1, "\x09")),
              "LogGOPSim --save-mem has run this file, and overwritten it");
    EXPECT_EQ(refusal(damaged(8, 0)), "no ranks");
    EXPECT_EQ(refusal(damaged(10, 1)), "the file is cut off");
    EXPECT_EQ(refusal(binary.substr(0, 12)), "the file is cut off");
    EXPECT_EQ(refusal(binary.substr(0, binary.size() - 1)), "rank 3: its part of the file is cut off");
    EXPECT_EQ(refusal(damaged(14, 0xff)), "rank 0: its part of the file is cut off");
    // The first operation of rank 0, behind the counts and two independent ones.
    const std::size_t node = 14 + 64 + 16;
    EXPECT_EQ(refusal(damaged(node + 4, 9)), "rank 0: operation 0 is of kind 9, not 1, 2 or 3");
    EXPECT_EQ(refusal(damaged(node, 1)), "rank 0: operation 0 waits for 1 others, but 0 name it");
    EXPECT_EQ(refusal(damaged(node + 23, 1)), "rank 0: what waits for operation 0 is not in the file");
    EXPECT_EQ(refusal(damaged(node + 5, 200)),
              "rank 0: operation 0 receives from rank 200, but there are 4 ranks");
}

TEST(FormatTest, damaged_files_are_read_or_refused_and_nothing_else) {
    const std::string text = kReduce, binary = to_binary(read(text));
    std::mt19937 random(7);
    unsigned refused = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string data = round % 2 == 0 ? text : binary;
        for (unsigned i = random() % 4; i > 0; --i) {
            const std::size_t at = random() % data.size();
            switch (random() % 3) {
                case 0:
                    data[at] = static_cast<char>(random());
                    break;
                case 1:
                    data.erase(at, random() % 8);
                    break;
                default:
                    data.insert(at, data.substr(random() % data.size(), random() % 20));
            }
        }
        std::string error;
        const auto program = read_program(data, &error);
        ASSERT_NE(program.has_value(), !error.empty());
        refused += !program;
    }
    EXPECT_GT(refused, 5000U);
}

TEST(FormatTest, what_the_formats_have_no_word_for_is_a_calculation) {
    Graph graph(0, 1);
    const Vertex copy = graph.copy({0, 0}, {0, 1}, 1000);
    graph.needs(graph.call(3), copy);
    std::string error;
    Program program;
    program.schedules.push_back(*compile(graph, &error));
    EXPECT_EQ(to_text(program, {0.25}),
              "num_ranks 1\n\nrank 0 {\nl1: calc 250\nl2: calc 0\nl2 requires l1\n}\n");
    const std::string binary = to_binary(program, {0.25});
    EXPECT_EQ(to_text(read(binary)), to_text(program, {0.25}));
}

}  // namespace
}  // namespace velo::goal
