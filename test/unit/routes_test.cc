// The table of routes: what users and files say of it, which one is taken, and which buffers were sent from.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../shared/temporary_directory.h"
#include "engine/routes/sent_buffers.h"
#include "engine/routes/table.h"

namespace velo::routes {
namespace {

constexpr const char* kZen = "AuthenticAMD family 25 model 17";
constexpr const char* kZen5 = "AuthenticAMD family 26 model 2";
constexpr const char* kIntel = "GenuineIntel family 6 model 207";

std::string row(const std::string& reference, const std::string& one_way, const std::string& both_ways) {
    return "reference " + reference + " one-way staged " + one_way + " both-ways staged " + both_ways + "\n";
}

TEST(RoutesTable, a_word_says_what_the_numbers_behind_it_are_of) {
    const std::string safe = row("never", "0 cold 131072 both 65536", "0 cold 0 both never");
    const struct {
        const char* text;
        std::string near, far;
    } cases[] = {
        {"reference 600", row("600", "0 cold 131072 both 65536", "0 cold 0 both never"),
         row("600", "0 cold 131072 both 65536", "0 cold 0 both never")},
        {"staged 7", row("never", "7 cold 7 both 65536", "7 cold 7 both never"),
         row("never", "7 cold 7 both 65536", "7 cold 7 both never")},
        {"far staged 7 cold 9", safe, row("never", "7 cold 9 both 65536", "7 cold 9 both never")},
        {"near both-ways both 5", row("never", "0 cold 131072 both 65536", "0 cold 0 both 5"), safe},
        {"one-way cold never both-ways both 0", row("never", "0 cold 0 both 65536", "0 cold 0 both 0"),
         row("never", "0 cold 0 both 65536", "0 cold 0 both 0")},
        {"near one-way cold 1 far both 2 reference 3",
         row("never", "0 cold 1 both 65536", "0 cold 0 both never"),
         row("3", "0 cold 131072 both 2", "0 cold 0 both 2")},
        {" near\n\treference   8\n", row("8", "0 cold 131072 both 65536", "0 cold 0 both never"), safe},
    };
    for (const auto& [text, near, far] : cases)
        EXPECT_EQ(Table::parse(text, Table::safe()).text(),
                  "near copy vectors " + near + "far copy non-temporal " + far)
            << text;
    EXPECT_EQ(Table::parse("copy string far copy vectors", Table::safe()).text(),
              "near copy string " + safe + "far copy vectors " + safe);
}

TEST(RoutesTable, an_objection_names_the_word) {
    const struct {
        const char *text, *objection;
    } cases[] = {
        {"", "it sets nothing"},
        {" \n", "it sets nothing"},
        {"near far one-way", "it sets nothing"},
        {"near stage 5",
         "\"stage\" is none of near, far, one-way, both-ways, copy, reference, staged, cold, both"},
        {"copy 5", "\"copy\" is followed by \"5\" instead of vectors, non-temporal or string"},
        {"reference", "nothing follows \"reference\""},
        {"staged 5 cold", "nothing follows \"cold\""},
        {"both 5k", "\"both\" is followed by \"5k\" instead of a number of bytes or \"never\""},
        {"cold -1", "\"cold\" is followed by \"-1\" instead of a number of bytes or \"never\""},
        {"staged 99999999999999999999",
         "\"staged\" is followed by \"99999999999999999999\" instead of a number of bytes or \"never\""},
        {"staged 67108865", "\"staged\" is followed by \"67108865\": at most 67108864 bytes are staged"},
        {"staged 67108864 cold 100000000",
         "\"cold\" is followed by \"100000000\": at most 67108864 bytes are staged"},
        {"nearnearnearnearnearnearnearnearnearnearnear 5",
         "\"nearnearnearnearnearnearnearnearnearnear...\" is none of near, far, one-way, both-ways, "
         "copy, reference, staged, cold, both"},
    };
    for (const auto& [text, objection] : cases) try {
            Table::parse(text, Table::safe());
            ADD_FAILURE() << text;
        } catch (const std::invalid_argument& caught) {
            EXPECT_STREQ(caught.what(), objection);
        }
}

TEST(RoutesTable, what_it_says_of_itself_it_reads_again) {
    for (const Table& table : {Table::safe(), Table::built_in(kZen), Table::built_in(kZen5),
                               Table::parse("near one-way both 7 far staged 9", Table::safe())})
        EXPECT_EQ(Table::parse(table.text(), Table::safe()).text(), table.text());
}

TEST(RoutesTable, only_processors_that_were_measured_have_one_of_their_own) {
    const std::string safe = Table::safe().text();
    for (const bool far : {false, true}) {
        EXPECT_EQ(Table::built_in(kZen5).row(far).copying, Copying::kString);
        EXPECT_NE(Table::built_in(kZen).row(far).copying, Copying::kString);
        EXPECT_EQ(Table::built_in(kZen5).row(far).reference_from, 4096U);
        EXPECT_LT(Table::built_in(kZen).row(far).reference_from, 4096U);
    }
    for (const char* zen : {kZen, "AuthenticAMD family 23 model 1", "HygonGenuine family 24 model 0"})
        EXPECT_NE(Table::built_in(zen).text(), safe) << zen;
    for (const char* other :
         {kIntel, "AuthenticAMD family 22 model 1", "AuthenticAMD family ", "AuthenticAMD", ""})
        EXPECT_EQ(Table::built_in(other).text(), safe) << other;
}

// Which of the rows the receiver asks is not known to the sender.
TEST(RoutesTable, both_copy_the_same_near_and_far) {
    for (const char* processor : {kZen, kZen5, kIntel})
        for (const bool both : {false, true})
            EXPECT_EQ(Table::built_in(processor).row(false).large(both).both_from,
                      Table::built_in(processor).row(true).large(both).both_from);
}

TEST(RoutesTable, limits_say_who_copies) {
    const LargeLimits limits{100, 200, 300};
    EXPECT_TRUE(limits.stages(100, false));
    EXPECT_FALSE(limits.stages(101, false));
    EXPECT_TRUE(limits.stages(200, true));
    EXPECT_FALSE(limits.stages(201, true));
    EXPECT_FALSE(limits.both_copy(299));
    EXPECT_TRUE(limits.both_copy(300));
}

TEST(RoutesTable, ranges_are_told_in_words) {
    EXPECT_EQ(Table::safe().ranges(8448),
              "near and far, at once: up to 8448 B packets\n"
              "near and far, one way: below 64 KiB the receiver copies, longer both copy\n"
              "near and far, one way, buffers not sent from lately: up to 128 KiB staged, longer both copy\n"
              "near and far, both ways: longer the receiver copies\n");
    EXPECT_EQ(
        Table::parse("near reference 2048 one-way staged 131072 cold 1048576 both 2097152 both-ways "
                     "staged 67108864 far reference 100 staged 5 cold 9000 both never",
                     Table::safe())
            .ranges(8192),
        "near, at once: below 2 KiB packets, up to 8 KiB by reference\n"
        "near, one way: up to 128 KiB staged, below 2 MiB the receiver copies, longer both copy\n"
        "near, one way, buffers not sent from lately: up to 1 MiB staged, below 2 MiB the receiver "
        "copies, longer both copy\n"
        "near, both ways: up to 64 MiB staged, longer the receiver copies\n"
        "far, at once: below 100 B packets, up to 8 KiB by reference\n"
        "far, one way: longer the receiver copies\n"
        "far, one way, buffers not sent from lately: up to 9000 B staged, longer the receiver copies\n"
        "far, both ways: longer the receiver copies\n"
        "far, both ways, buffers not sent from lately: up to 9000 B staged, longer the receiver copies\n");
}

class RoutesChoiceTest : public ::testing::Test {
 protected:
    std::string chosen(const std::string& choice, const char* processor = kZen) {
        return Table::choose(choice, file_, processor, &source_).text();
    }
    void write(const std::string& text) { std::ofstream(file_) << text; }

    test::TemporaryDirectory directory_;
    const std::string file_ = directory_.path() + "/routes",
                      calibrated_ = Table::parse("staged 77", Table::safe()).text();
    const std::string good_ =
        std::string(kCalibrationTitle) + "\nprocessor " + kZen + "\n" + calibrated_ + "end\n";
    const std::string ignored_ = "built in for this processor; \"" + file_ + "\" is ignored: ";
    std::string source_;
};

TEST_F(RoutesChoiceTest, without_a_file_it_is_that_of_the_processor) {
    EXPECT_EQ(chosen("auto"), Table::built_in(kZen).text());
    EXPECT_EQ(source_, "built in for this processor");
    EXPECT_EQ(chosen("auto", kIntel), Table::safe().text());
    EXPECT_EQ(source_, "safe values, this processor was not measured");
    for (const char* nowhere : {"", "/dev/null/.velo/routes"}) {
        EXPECT_EQ(Table::choose("auto", nowhere, kZen, &source_).text(), Table::built_in(kZen).text());
        EXPECT_EQ(source_, "built in for this processor") << nowhere;
    }
}

TEST_F(RoutesChoiceTest, a_file_of_the_processor_comes_first) {
    write(good_);
    EXPECT_EQ(chosen("auto"), calibrated_);
    EXPECT_EQ(source_, "calibrated, \"" + file_ + "\"");
}

TEST_F(RoutesChoiceTest, what_the_user_says_comes_before_a_file) {
    write(good_);
    EXPECT_EQ(chosen("safe"), Table::safe().text());
    EXPECT_EQ(source_, "safe values");
    EXPECT_EQ(chosen("far reference 5"), Table::parse("far reference 5", Table::safe()).text());
    EXPECT_EQ(source_, "btl_velo_routes");
    EXPECT_THROW(chosen("fast"), std::invalid_argument);
}

TEST_F(RoutesChoiceTest, a_damaged_file_is_ignored_and_that_is_told) {
    const std::string again = ", run velo-info --calibrate again";
    for (const std::string& damaged : {std::string(), "x" + good_, std::string(kCalibrationTitle) + "\n",
                                       std::string(kCalibrationTitle) + "\n" + calibrated_}) {
        write(damaged);
        EXPECT_EQ(chosen("auto"), Table::built_in(kZen).text());
        EXPECT_EQ(source_, ignored_ + "it is damaged" + again) << damaged;
    }
    for (const std::size_t missing : {1U, 5U, 20U}) {
        write(good_.substr(0, good_.size() - missing));
        EXPECT_EQ(chosen("auto"), Table::built_in(kZen).text()) << missing;
        EXPECT_EQ(source_, ignored_ + "it is damaged" + again) << missing;
    }
    write(good_.substr(0, good_.size() - 4) + "staged\nend\n");
    EXPECT_EQ(chosen("auto"), Table::built_in(kZen).text());
    EXPECT_EQ(source_, ignored_ + "nothing follows \"staged\"" + again);
}

TEST_F(RoutesChoiceTest, of_what_a_file_does_not_name_the_processors_own_row_holds) {
    write(std::string(kCalibrationTitle) + "\nprocessor " + kZen + "\nnear staged 77\nend\n");
    EXPECT_EQ(chosen("auto"), Table::parse("near staged 77", Table::built_in(kZen)).text());
}

TEST_F(RoutesChoiceTest, a_file_that_cannot_be_read_is_told) {
    EXPECT_EQ(Table::choose("auto", directory_.path(), kZen, &source_).text(), Table::built_in(kZen).text());
    EXPECT_NE(source_.find("is ignored: it cannot be read, Is a directory"), std::string::npos) << source_;
}

TEST_F(RoutesChoiceTest, a_file_of_another_processor_is_ignored_and_that_is_told) {
    write(good_);
    EXPECT_EQ(chosen("auto", "AuthenticAMD family 25 model 1"), Table::built_in(kZen).text());
    EXPECT_EQ(source_, ignored_ + "it is of another processor, run velo-info --calibrate here");
    EXPECT_EQ(chosen("auto", ""), Table::safe().text());
}

TEST(RoutesFile, is_in_the_users_home_unless_the_environment_says_where) {
    const char* const home = std::getenv("HOME");
    const std::string before = home == nullptr ? "" : home;
    setenv("HOME", "/somewhere", 1);
    EXPECT_EQ(calibration_file(), "/somewhere/.velo/routes");
    setenv("VELO_ROUTES_FILE", "/a/file", 1);
    EXPECT_EQ(calibration_file(), "/a/file");
    unsetenv("VELO_ROUTES_FILE");
    for (const bool empty : {true, false}) {
        empty ? setenv("HOME", "", 1) : unsetenv("HOME");
        EXPECT_EQ(calibration_file(), "");
    }
    if (home != nullptr) setenv("HOME", before.c_str(), 1);
}

// Of so many buffers, one behind the other in memory, the k-th round in turn finds how many again.
unsigned again(std::size_t buffers, std::size_t bytes) {
    std::vector<const void*> all;
    for (std::size_t i = 0; i < buffers; ++i)
        all.push_back(reinterpret_cast<const void*>(0x7f0000001040 + i * bytes));
    SentBuffers sent;
    for (const void* buffer : all) sent.again(buffer, bytes);
    unsigned found = 0;
    for (const void* buffer : all) found += sent.again(buffer, bytes);
    return found;
}

TEST(SentBuffersTest, one_is_new_once) {
    SentBuffers sent;
    int buffer[2]{};
    EXPECT_FALSE(sent.again(&buffer[0], 1));
    EXPECT_TRUE(sent.again(&buffer[0], 1));
    EXPECT_FALSE(sent.again(&buffer[1], 1)) << "another address in the same line";
}

TEST(SentBuffersTest, sixteen_in_turn_are_found_again_and_hundreds_are_not) {
    for (const std::size_t bytes : {64U, 4096U, 12'288U, 65'536U, 100'032U}) {
        EXPECT_GE(again(16, bytes), 12U) << bytes;
        EXPECT_LE(again(1024, bytes), 10U) << bytes;
    }
}

TEST(SentBuffersTest, one_is_new_again_when_much_was_sent_from_others) {
    alignas(64) const int one = 0;
    alignas(64) const int other = 0;
    for (const bool more : {false, true}) {
        SentBuffers sent;
        sent.again(&one, 1);
        sent.again(&other, SentBuffers::kLately + more);
        EXPECT_EQ(sent.again(&one, 1), !more);
    }
}

}  // namespace
}  // namespace velo::routes
