// The table of counters and what follows from it: MPI_T, the report, the page that documents them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "api/velo.h"
#include "page.h"
#include "report/report.h"

namespace velo::report {
namespace {

using fabric::shm::SegmentHeader;

struct Row {
    std::string name, help;
    velo_counter_kind kind;
    bool reported, watched, per_peer;
};

constexpr bool LIVE = true, AT_END = false;
const std::vector<Row> kRows = {
#define VELO_FLOW_COUNTER(name, help) {#name, help, VELO_COUNTER_SUM, true, true, false},
#define VELO_COUNTER(when, kind, name, help) {#name, help, VELO_COUNTER_##kind, true, when, false},
#define VELO_READ_COUNTER(kind, name, help) {#name, help, VELO_COUNTER_##kind, false, true, false},
#define VELO_PEER_COUNTER(kind, name, help) {#name, help, VELO_COUNTER_##kind, false, true, true},
#define VELO_MULTICAST_COUNTER(kind, name, help) {#name, help, VELO_COUNTER_##kind, false, true, false},
#define VELO_SCHEDULE_COUNTER(kind, name, help, member) VELO_MULTICAST_COUNTER(kind, name, help)
#include "types/counters.inc"
};

TEST(CountersTableTest, a_row_has_a_name_of_its_own_and_a_help_that_goes_on) {
    std::set<std::string> names;
    for (const Row& row : kRows) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_GT(row.help.size(), 10U) << row.name;
        EXPECT_NE(row.help.back(), '.') << row.name;
        EXPECT_EQ(row.per_peer, row.name.starts_with("peer_")) << row.name;
    }
    EXPECT_EQ(kRows.size(), std::size_t{VELO_COUNTERS});
}

TEST(CountersTableTest, mpi_t_shows_every_row_but_those_of_the_end_in_their_order) {
    unsigned index = 0;
    for (const Row& row : kRows) {
        if (!row.watched) continue;
        const velo_counter* counter = velo_counter_at(index++);
        ASSERT_NE(counter, nullptr) << row.name;
        EXPECT_EQ(counter->name, row.name);
        EXPECT_EQ(counter->help, row.help);
        EXPECT_EQ(counter->kind, row.kind);
        EXPECT_EQ(counter->per_peer, row.per_peer);
    }
    EXPECT_EQ(velo_counter_at(index), nullptr);
}

// Two processes; each counter has a value of its own.
struct Processes {
    Processes() {
        std::uint64_t value = 1000;
        for (SegmentHeader& header : headers) {
            header.owner = value;
            header.capacity = 64;
#define VELO_FLOW_COUNTER(name, ...) header.statistics.flow.name = values[#name].emplace_back(++value);
#define VELO_COUNTER(when, kind, name, ...) header.statistics.name = values[#name].emplace_back(++value);
#include "types/counters.inc"
        }
        input.segments = {&headers[0], &headers[1]};
        input.set = "{}";
    }
    SegmentHeader headers[2]{};
    std::map<std::string, std::vector<std::uint64_t>> values;
    Input input{};
};

TEST(CountersTableTest, the_report_for_programs_has_every_row_that_is_not_read_alone) {
    Processes processes;
    const std::string text = json(processes.input);
    const auto report = nlohmann::json::parse(text.substr(text.find('{')));
    for (const Row& row : kRows) {
        EXPECT_EQ(report["total"].contains(row.name), row.reported) << row.name;
        if (!row.reported) continue;
        const std::vector<std::uint64_t>& values = processes.values[row.name];
        EXPECT_EQ(report["per_rank"][0][row.name], values[0]) << row.name;
        EXPECT_EQ(report["per_rank"][1][row.name], values[1]) << row.name;
        EXPECT_EQ(report["total"][row.name], values[0] + values[1]) << row.name;
    }
}

TEST(CountersTableTest, the_report_for_people_adds_up_and_takes_the_highest_of_high_water_marks) {
    Processes processes;
    processes.input.host = "node7";
    processes.input.remote_peers = 3;
    const std::string text = summary(processes.input);
    EXPECT_TRUE(text.starts_with("velo: node7: flow control ")) << text;
    const std::vector<std::uint64_t>& network = processes.values["network_packets"];
    EXPECT_NE(text.find(std::to_string(network[0] + network[1]) + " packets went to other nodes"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find(" of " + std::to_string(processes.input.segments.front()->peers + 3) + " (median)"),
              std::string::npos)
        << text;
    const std::vector<std::uint64_t>&limic = processes.values["limic_packets"],
          &water = processes.values["mailbox_high_water"];
    EXPECT_NE(text.find(std::to_string(limic[0] + limic[1]) + " packets took the LiMIC-like path"),
              std::string::npos)
        << text;
    const std::string all = text.substr(text.find("\n  all"));
    EXPECT_NE(all.find(' ' + std::to_string(water[1]) + "/64"), std::string::npos) << text;
    EXPECT_EQ(text.find("no point-to-point message went over Velo"), std::string::npos) << text;
    for (SegmentHeader& header : processes.headers) header.statistics.messages_sent = 0;
    EXPECT_NE(summary(processes.input).find("no point-to-point message went over Velo"), std::string::npos);
}

std::string table_of_the_page() {
    const std::map<velo_counter_kind, const char*> kinds = {{VELO_COUNTER_SUM, "sum"},
                                                            {VELO_COUNTER_TIME, "sum, ns"},
                                                            {VELO_COUNTER_LEVEL, "now"},
                                                            {VELO_COUNTER_HIGH_WATER, "highest"},
                                                            {VELO_COUNTER_GENERIC, "value"}};
    std::ostringstream text;
    text << "| name | report | MPI_T | kind | what it counts |\n|---|---|---|---|---|\n";
    for (const Row& row : kRows) {
        text << "| `" << row.name << "` | " << (row.reported ? "yes" : "no") << " | "
             << (row.watched ? "yes" : "no") << " | " << kinds.at(row.kind) << " | " << row.help << " |\n";
    }
    return text.str();
}

TEST(CountersTableTest, the_page_on_observing_holds_the_table) {
    test::expect_page_to_hold(VELO_SOURCE_DIRECTORY "/docs/observing.md", table_of_the_page());
}

}  // namespace
}  // namespace velo::report
