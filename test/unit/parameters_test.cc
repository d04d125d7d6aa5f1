// The table of parameters and what follows from it: checks, the agreement between processes, defaults, the
// page that documents them. test/mpi/test_parameters.py compares the page with ompi_info.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "api/velo.h"
#include "api/velo_messages.h"
#include "flow/policy_config.h"
#include "page.h"
#include "parameters/agreement.h"
#include "parameters/table.h"
#include "platform/failure.h"

namespace velo::parameters {
namespace {

std::vector<const velo_parameter*> all() {
    std::vector<const velo_parameter*> rows;
    for (unsigned i = 0; const velo_parameter* row = velo_parameter_at(i); ++i) rows.push_back(row);
    return rows;
}

bool is_number(const velo_parameter& row) {
    return row.type != VELO_PARAMETER_BOOL && row.type != VELO_PARAMETER_TEXT &&
           row.type != VELO_PARAMETER_CHOICE;
}

template <typename Value>
void put(const velo_parameter& row, void* config, Value value) {
    std::memcpy(static_cast<std::byte*>(config) + row.offset, &value, sizeof value);
}

void put_number(const velo_parameter& row, void* config, std::int64_t number) {
    switch (row.type) {
        case VELO_PARAMETER_BOOL:
            return put(row, config, number != 0);
        case VELO_PARAMETER_COUNT:
            return put(row, config, static_cast<std::uint32_t>(number));
        case VELO_PARAMETER_INTEGER:
            return put(row, config, static_cast<int>(number));
        default:
            return put(row, config, static_cast<std::uint64_t>(number));
    }
}

// Another permitted value than the default.
std::int64_t other_number(const velo_parameter& row) {
    if (row.type == VELO_PARAMETER_BOOL) return 1 - row.number;
    return row.number == row.permitted.most ? row.permitted.least : row.permitted.most;
}

std::string objection_to(const velo_config& config) {
    try {
        check(config);
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.status(), VELO_ERR_PARAMETER);
        return failure.what();
    }
    return {};
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(ParametersTest, every_name_occurs_once_and_every_default_is_permitted) {
    std::set<std::string> names;
    EXPECT_EQ(all().size(), std::size_t{VELO_PARAMETERS});
    for (const velo_parameter* row : all()) {
        EXPECT_TRUE(names.insert(row->name).second) << row->name;
        EXPECT_TRUE(contains(row->name, row->key));
        EXPECT_TRUE(row->level >= 1 && row->level <= 9) << row->name;
        EXPECT_TRUE(!is_number(*row) || holds(row->permitted, row->number)) << row->name;
    }
    EXPECT_EQ(objection_to(velo_default_config()), "");
    EXPECT_NO_THROW(check(velo_default_messenger_config()));
}

// What does not fit in here belongs on a page.
TEST(ParametersTest, no_help_has_more_than_40_words) {
    for (const velo_parameter* row : all()) {
        std::istringstream help(row->help);
        const auto words = std::distance(std::istream_iterator<std::string>(help), {});
        EXPECT_LE(words, 40) << row->name << ": " << words;
    }
}

TEST(ParametersTest, a_name_with_a_wrong_letter_or_two_is_like_the_right_one) {
    for (const velo_parameter* row : all()) EXPECT_EQ(velo_parameter_like(row->name), row);
    for (const auto& [wrong, right] : {std::pair("btl_velo_flowcontrol", "btl_velo_flow_control"),
                                       std::pair("btl_velo_slot_per_per", "btl_velo_slots_per_peer"),
                                       std::pair("mtl_velo_unexpeced_pool", "mtl_velo_unexpected_pool"),
                                       std::pair("coll_velo_prioritty", "coll_velo_priority")}) {
        ASSERT_NE(velo_parameter_like(wrong), nullptr) << wrong;
        EXPECT_STREQ(velo_parameter_like(wrong)->name, right);
    }
    EXPECT_EQ(velo_parameter_like("btl_velo_something_else"), nullptr);
    EXPECT_EQ(velo_parameter_like(""), nullptr);
}

TEST(ParametersTest, a_name_that_is_gone_has_something_instead_and_is_no_parameter) {
    EXPECT_STREQ(velo_parameter_instead_of("btl_velo_distance"), "btl_velo_routes sets it");
    for (const velo_parameter* row : all()) EXPECT_EQ(velo_parameter_instead_of(row->name), nullptr) << row->name;
    EXPECT_STREQ(velo_parameter_instead_of("coll_velo_bcast_algorithm"), "coll_velo_choices OPERATION:ALGORITHM sets it");
    EXPECT_EQ(velo_parameter_instead_of("btl_velo_distanc"), nullptr);
}

TEST(ParametersTest, a_value_next_to_its_range_is_refused_with_name_value_and_range) {
    for (const velo_parameter* row : all()) {
        if (!is_number(*row) || row->owner != VELO_PARAMETER_OF_ENGINE) continue;
        for (std::int64_t number : {row->permitted.least, row->permitted.most}) {
            velo_config config = velo_default_config();
            put_number(*row, &config, number);
            EXPECT_EQ(objection_to(config), "");
        }
        for (std::int64_t number : {row->permitted.least - 1, row->permitted.most + 1}) {
            velo_config config = velo_default_config();
            put_number(*row, &config, number);
            if (value_text(*row, &config) != std::to_string(number)) continue;  // the type cannot hold it
            const bool automatic = row->permitted.or_zero && number == 0;
            const std::string text = objection_to(config);
            EXPECT_EQ(text.empty(), automatic) << row->name << " " << number;
            if (automatic) continue;
            EXPECT_TRUE(contains(text, row->name + (" is " + std::to_string(number)) + ";")) << text;
            EXPECT_TRUE(contains(text, permitted_text(*row))) << text;
        }
    }
}

TEST(ParametersTest, a_word_that_is_no_choice_is_refused_with_all_choices) {
    for (const velo_parameter* row : all()) {
        if (row->type != VELO_PARAMETER_CHOICE || row->owner != VELO_PARAMETER_OF_ENGINE) continue;
        for (unsigned i = 0; const char* word = row->permitted.choice(i); ++i) {
            velo_config config = velo_default_config();
            put(*row, &config, word);
            EXPECT_EQ(objection_to(config), "");
        }
        velo_config config = velo_default_config();
        put(*row, &config, "bananas");
        const std::string text = objection_to(config);
        EXPECT_TRUE(contains(text, row->name)) << text;
        EXPECT_TRUE(contains(text, "\"bananas\"")) << text;
        for (unsigned i = 0; const char* word = row->permitted.choice(i); ++i)
            EXPECT_TRUE(contains(text, word)) << text;
    }
}

TEST(ParametersTest, an_engine_does_not_open_with_a_value_out_of_range) {
    velo_config config = velo_default_config();
    config.stall_warning = 1'000'001;
    velo_engine* engine = nullptr;
    char error[512] = "";
    EXPECT_EQ(velo_engine_open(&config, &engine, error, sizeof error), VELO_ERR_PARAMETER);
    EXPECT_STREQ(error, "btl_velo_stall_warning is 1000001; it must be 0 to 1000000");
}

TEST(ParametersTest, texts_are_read_as_open_mpi_reads_them) {
    for (const velo_parameter* row : all()) {
        if (std::strcmp(row->name, "btl_velo_credit_slots") == 0) {
            for (const char* fine : {"1", "255", "0x10"})
                EXPECT_TRUE(velo_parameter_permits(row, fine)) << fine;
            // The second one is 2 in 32 bits.
            for (const char* wrong : {"0", "4294967298", "-1", "two", "1k", "3 ", "99999999999999999999"})
                EXPECT_FALSE(velo_parameter_permits(row, wrong)) << wrong;
        }
        if (std::strcmp(row->name, "mtl_velo_unexpected_pool") == 0) {
            for (const char* fine : {"0", "64k", "16m", "2G"})
                EXPECT_TRUE(velo_parameter_permits(row, fine)) << fine;
            for (const char* wrong : {"lots", "16mb", "9000000000g"})
                EXPECT_FALSE(velo_parameter_permits(row, wrong)) << wrong;
        }
    }
}

TEST(ParametersTest, processes_must_agree_on_the_values_that_are_marked_so_and_on_no_others) {
    const Agreement mine = agreement_of(velo_default_config());
    EXPECT_EQ(difference(mine, mine), "");
    for (const velo_parameter* row : all()) {
        if (row->owner != VELO_PARAMETER_OF_ENGINE || row->type == VELO_PARAMETER_TEXT) {
            EXPECT_FALSE(row->alike && row->owner == VELO_PARAMETER_OF_MESSENGER) << row->name;
            continue;
        }
        velo_config config = velo_default_config();
        if (row->type == VELO_PARAMETER_CHOICE) {
            const char* first = row->permitted.choice(0);
            put(*row, &config, std::strcmp(first, row->text) == 0 ? row->permitted.choice(1) : first);
        } else {
            put_number(*row, &config, other_number(*row));
        }
        const Agreement theirs = agreement_of(config);
        const std::string text = difference(mine, theirs);
        EXPECT_EQ(text.empty(), !row->alike) << row->name << ": " << text;
        EXPECT_EQ(digest(mine) == digest(theirs), !row->alike) << row->name;
        if (!row->alike) continue;
        EXPECT_TRUE(contains(text, std::string(row->name) + " must be the same")) << text;
        const bool flag = row->type == VELO_PARAMETER_BOOL;
        EXPECT_TRUE(contains(text, flag ? std::to_string(row->number) : default_text(*row))) << text;
        EXPECT_TRUE(contains(text, flag ? std::to_string(1 - row->number) : value_text(*row, &config)))
            << text;
    }
}

TEST(ParametersTest, processes_must_agree_on_the_eager_limit_and_on_the_longest_message) {
    Agreement mine = agreement_of(velo_default_config()), theirs = mine;
    theirs.eager_limit = 999;
    EXPECT_EQ(
        difference(mine, theirs),
        "btl_velo_eager_limit must be the same in all processes, but it is not set (default 8256) in one "
        "and 999 in another");
    theirs = mine;
    theirs.max_message_bytes = 777;
    EXPECT_TRUE(contains(difference(mine, theirs), "btl_velo_max_send_size")) << difference(mine, theirs);
}

TEST(ParametersTest, what_a_policy_is_told_of_an_agreement_is_what_was_agreed_on) {
    velo_config config = velo_default_config();
    config.credit_slots = 7;
    config.piggyback = false;
    config.lazy_slots = 99;
    config.growth_buffers = 13;
    const flow::PolicyConfig flow = agreed_flow(agreement_of(config));
    EXPECT_EQ(flow.credit_slots, 7U);
    EXPECT_FALSE(flow.piggyback);
    EXPECT_EQ(flow.lazy_slots, 99U);
    EXPECT_EQ(flow.growth_buffers, flow::PolicyConfig{}.growth_buffers);
}

TEST(ParametersTest, policies_have_the_defaults_of_the_table) {
    const flow::PolicyConfig flow;
    const velo_config config = velo_default_config();
#define VELO_POLICY_PARAMETER(type, name, ...) EXPECT_EQ(flow.name, config.name) << #name;
#include "types/parameters.inc"
}

TEST(ParametersTest, a_report_has_all_values_of_the_engine_and_a_line_those_that_are_set) {
    velo_config config = velo_default_config();
    config.backing_directory = "/a \"b\"\\c";
    const std::string text = set_text(config), json = values_json(config);
    for (const velo_parameter* row : all()) {
        if (row->owner != VELO_PARAMETER_OF_ENGINE) continue;
        EXPECT_TRUE(contains(json, "\"" + std::string(row->key) + "\":")) << row->key;
    }
    EXPECT_EQ(text, "backing_directory /a \"b\"\\c");
    EXPECT_EQ(set_text(velo_default_config()), "");
    EXPECT_TRUE(contains(json, R"("piggyback":true,)")) << json;
    EXPECT_TRUE(contains(json, R"("backing_directory":"/a \"b\"\\c")")) << json;
}

constexpr int kMostOfUsers = 5;  // level of ompi_info; those for experiments have 9

std::string table_of_the_page(bool users) {
    std::ostringstream text;
    text << "| name | default | permitted | level | the same in all | what it is for |\n"
            "|---|---|---|---|---|---|\n";
    for (const velo_parameter* row : all()) {
        EXPECT_TRUE(row->level <= kMostOfUsers || row->level == 9) << row->name;
        if ((row->level <= kMostOfUsers) != users) continue;
        const std::string initial = default_text(*row);
        text << "| `" << row->name << "` | " << (initial.empty() ? "nothing" : initial) << " | "
             << permitted_text(*row) << " | " << row->level << " | " << (row->alike ? "yes" : "no") << " | "
             << row->help << " |\n";
    }
    return text.str();
}

TEST(ParametersTest, the_page_of_parameters_holds_the_tables) {
    const std::string page = VELO_SOURCE_DIRECTORY "/docs/parameters.md";
    test::expect_page_to_hold(page, table_of_the_page(true));
    test::expect_page_to_hold(page, table_of_the_page(false), "## For experiments");
}

}  // namespace
}  // namespace velo::parameters
