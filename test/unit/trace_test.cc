// The trace: its file, and what an engine records in it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "engine_party.h"
#include "platform/failure.h"
#include "trace_file.h"

namespace velo::test {
namespace {

using trace::Kind;
using trace::Recorder;

constexpr std::uint64_t kName = 7ULL << 32 | 3;

trace::FileHeader header_of(std::uint64_t name) {
    trace::FileHeader header{};
    header.process_name = name;
    return header;
}

void add(Recorder& recorder, std::uint32_t count) {
    recorder.add(Kind::kSend, 1, count, 2, 3, 4);
}

TEST(TraceName, is_in_the_directory_or_completes_the_path) {
    TraceDirectory directory;
    EXPECT_EQ(trace::file_name(directory.path(), kName), directory.path() + "/velo.7.3.vtrace");
    EXPECT_EQ(trace::file_name(directory.path() + "/run", kName), directory.path() + "/run.7.3.vtrace");
}

TEST(TraceRecorder, writes_a_header_at_once_and_the_rest_at_the_end) {
    TraceDirectory directory;
    std::string path = trace::file_name(directory.path(), kName);
    {
        Recorder recorder({directory.path(), 0}, header_of(kName));
        add(recorder, 11);
        TraceFile early = read_trace(path);
        EXPECT_EQ(early.header.version, trace::kVersion);
        EXPECT_EQ(early.header.pid, static_cast<std::uint32_t>(getpid()));
        EXPECT_TRUE(early.records.empty());
        recorder.flush();
        EXPECT_EQ(read_trace(path).records.size(), 1U);
    }
    TraceFile file = read_trace(path);
    ASSERT_EQ(file.records.size(), 2U);
    EXPECT_EQ(file.records[0].count, 11U);
    EXPECT_EQ(file.records[0].extra, 4U);
    EXPECT_EQ(file.records[1].kind, Kind::kEnd);
    EXPECT_GE(file.records[0].time_ns, file.header.monotonic_ns);
    EXPECT_GE(file.records[1].time_ns, file.records[0].time_ns);
}

TEST(TraceRecorder, writes_its_buffer_when_it_is_full) {
    TraceDirectory directory;
    Recorder recorder({directory.path(), 0}, header_of(kName));
    for (std::uint32_t i = 0; i < Recorder::kBufferedRecords; ++i) add(recorder, i);
    EXPECT_EQ(read_trace(trace::file_name(directory.path(), kName)).records.size(),
              Recorder::kBufferedRecords);
    add(recorder, 1);
    EXPECT_EQ(read_trace(trace::file_name(directory.path(), kName)).records.size(),
              Recorder::kBufferedRecords);
}

TEST(TraceRecorder, ends_at_the_limit_of_the_file_and_says_so_once) {
    TraceDirectory directory;
    constexpr std::uint64_t kRecords = 10;
    {
        Recorder recorder({directory.path(), sizeof(trace::FileHeader) + kRecords * sizeof(trace::Record)},
                          header_of(kName));
        for (std::uint32_t i = 0; i < 100; ++i) add(recorder, i);
        EXPECT_NE(recorder.take_complaint().find("btl_velo_trace_limit"), std::string::npos);
        EXPECT_EQ(recorder.take_complaint(), "");
    }
    TraceFile file = read_trace(trace::file_name(directory.path(), kName));
    ASSERT_EQ(file.records.size(), kRecords);
    EXPECT_EQ(file.records.back().kind, Kind::kLimit);
    EXPECT_EQ(file.records[kRecords - 2].count, kRecords - 2);
}

TEST(TraceRecorder, names_the_parameter_if_the_file_cannot_be_made) {
    try {
        Recorder recorder({"/dev/null/place", 0}, header_of(kName));
        FAIL();
    } catch (const Failure& failure) {
        EXPECT_NE(std::string(failure.what()).find("btl_velo_trace"), std::string::npos);
        EXPECT_NE(std::string(failure.what()).find("/dev/null/place.7.3.vtrace"), std::string::npos);
    }
}

TEST(TraceRecorder, refuses_a_file_system_that_is_full) {
    // Each write to /dev/full fails with ENOSPC.
    TraceDirectory directory;
    std::filesystem::create_symlink("/dev/full", directory.path() + "/velo.7.3.vtrace");
    EXPECT_THROW(Recorder({directory.path(), 0}, header_of(kName)), Failure);
}

struct TracedParty {
    explicit TracedParty(const char* policy, std::uint32_t slots = 8) {
        PartyConfig config;
        config.flow_control = policy;
        config.by_reference = "never";  // so that messages wait
        config.slots_per_peer = slots;
        config.trace = directory.path();
        config.size = 3;
        party.emplace(config);
    }
    // Rank 0 sends more than the credits allow, in both directions a little.
    void run() {
        for (unsigned i = 0; i < 60; ++i) party->send(0, 1, 9, pattern(200, i));
        for (unsigned i = 0; i < 10; ++i) party->send(1, 0, 9, pattern(20, i));
        party->settle();
    }
    TraceFile close(std::uint64_t rank) {
        party.reset();
        return read_trace(trace::file_name(directory.path(), 100 + rank));
    }

    TraceDirectory directory;
    std::optional<Party> party;
};

// What each record says about credits follows from the one before it.
void expect_credits_add_up(const TraceFile& file) {
    std::map<std::uint32_t, std::int64_t> credits;
    for (const auto& r : file.records) {
        if (r.peer == trace::kNone || r.credits == trace::kNone) continue;
        switch (r.kind) {
            case Kind::kPeer:
                credits[r.peer] = r.credits;
                break;
            case Kind::kSend:
                credits[r.peer] -= r.count;
                break;
            case Kind::kRequestSent:
                credits[r.peer] -= 1;
                break;
            case Kind::kResponseSent:
                credits[r.peer] -= r.count + 1;
                break;
            case Kind::kCreditReceived:
            case Kind::kPiggybackReceived:
                credits[r.peer] += r.count;
                break;
            default:
                break;
        }
        ASSERT_EQ(credits[r.peer], r.credits) << "kind " << static_cast<int>(r.kind) << " peer " << r.peer;
    }
}

std::uint64_t sum(const std::vector<trace::Record>& records, std::uint32_t trace::Record::*member) {
    std::uint64_t total = 0;
    for (const auto& record : records) total += record.*member;
    return total;
}

TEST(EngineTrace, tells_slots_per_peer_only_where_the_mailbox_is_sized_by_them) {
    for (const char* policy : {"none", "static", "dynamic", "mvapich_dynamic"}) {
        SCOPED_TRACE(policy);
        EXPECT_EQ(TracedParty(policy).close(0).header.slots_per_peer, 8U);
    }
    for (const char* policy : {"rnr", "mvapich_static", "lazy"}) {
        SCOPED_TRACE(policy);
        const trace::FileHeader header = TracedParty(policy).close(0).header;
        EXPECT_EQ(header.slots_per_peer, 0U);
        EXPECT_GT(header.mailbox_slots, 0U);
    }
}

TEST(EngineTrace, of_the_credit_policies_adds_up_packet_by_packet) {
    for (const char* policy : {"static", "dynamic"}) {
        SCOPED_TRACE(policy);
        TracedParty traced(policy);
        traced.run();
        TraceFile sender = traced.close(0), receiver = traced.close(1);
        EXPECT_STREQ(sender.header.policy, policy);
        EXPECT_EQ(sender.header.peers, 2U);
        EXPECT_EQ(sender.of(Kind::kPeer).size(), 2U);
        expect_credits_add_up(sender);
        expect_credits_add_up(receiver);
        // What one end gave the other one got: nothing is under way after settle.
        EXPECT_EQ(sum(receiver.of(Kind::kCreditSent), &trace::Record::count),
                  sum(sender.of(Kind::kCreditReceived), &trace::Record::count));
        EXPECT_EQ(sum(receiver.of(Kind::kSend), &trace::Record::extra),
                  sum(sender.of(Kind::kPiggybackReceived), &trace::Record::count));
        EXPECT_GT(sum(sender.of(Kind::kCreditReceived), &trace::Record::count), 0U);
        EXPECT_EQ(sender.records.back().kind, Kind::kEnd);
    }
}

TEST(EngineTrace, has_a_stall_with_its_end) {
    for (const char* policy : {"none", "static", "dynamic"}) {
        SCOPED_TRACE(policy);
        TracedParty traced(policy);
        traced.run();
        TraceFile file = traced.close(0);
        auto begins = file.of(Kind::kStallBegin), ends = file.of(Kind::kStallEnd);
        ASSERT_FALSE(begins.empty());
        EXPECT_EQ(begins.size(), ends.size());
        EXPECT_EQ(begins[0].extra, std::string(policy) == "none" ? 1U : 0U);
        EXPECT_GE(begins[0].count, 200U - 3 * 56);
        EXPECT_LE(begins[0].time_ns, ends[0].time_ns);
    }
}

TEST(EngineTrace, without_flow_control_counts_no_credits) {
    TracedParty traced("none");
    traced.run();
    for (const auto& record : traced.close(0).records) {
        EXPECT_EQ(record.credits, trace::kNone);
        EXPECT_EQ(record.held, trace::kNone);
    }
}

TEST(EngineTrace, shows_steals_with_the_quotas_that_they_changed) {
    TracedParty traced("dynamic");
    for (int round = 0; round < 50; ++round) {
        for (unsigned i = 0; i < 20; ++i) traced.party->send(0, 1, 9, pattern(200, i));
        traced.party->settle();
    }
    TraceFile receiver = traced.close(1);
    ASSERT_FALSE(receiver.of(Kind::kSteal).empty());
    // The quotas sum to the data region at all times between the steals.
    std::map<std::uint32_t, std::uint64_t> quota;
    for (const auto& record : receiver.of(Kind::kIntended)) quota[record.peer] = record.count;
    EXPECT_EQ(quota[0] + quota[1], 2U * (8 - 2));
    EXPECT_GT(quota[0], quota[1]);
}

TEST(EngineTrace, can_be_written_before_the_end) {
    TracedParty traced("static");
    traced.run();
    velo_engine_abandon((*traced.party)[0].engine);
    TraceFile file = read_trace(trace::file_name(traced.directory.path(), 100));
    EXPECT_FALSE(file.of(Kind::kSend).empty());
    EXPECT_TRUE(file.of(Kind::kEnd).empty());
}

// Runs `action` in a process that fork makes, for a minute at most; true if it came to its end.
template <typename Action>
bool ends_in_child(Action action) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        action();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A program that forks, and whose child exits without more ado.
TEST(EngineTrace, is_not_written_by_a_child_of_the_process) {
    TracedParty traced("static");
    traced.run();
    velo_engine* engine = (*traced.party)[0].engine;
    const std::string path = trace::file_name(traced.directory.path(), 100);
    EXPECT_TRUE(ends_in_child([&] { velo_engine_abandon(engine); }));
    EXPECT_TRUE(read_trace(path).records.empty());
    velo_engine_abandon(engine);
    const std::size_t records = read_trace(path).records.size();
    EXPECT_GT(records, 0U);
    EXPECT_TRUE(ends_in_child([&] { velo_engine_abandon(engine); }));
    EXPECT_EQ(read_trace(path).records.size(), records);
}

// The lines of the log are written under the engine's lock, here the one about the limit of the trace.
TEST(EngineTrace, does_not_stop_a_child_that_was_made_while_the_engine_was_locked) {
    TraceDirectory directory;
    PartyConfig config;
    config.threads = true;
    config.trace = directory.path();
    config.trace_limit_bytes = 1;
    Party party(config);
    bool ended = false;
    party[0].on_log = [&] { ended = ends_in_child([&] { velo_engine_abandon(party[0].engine); }); };
    for (unsigned i = 0; i < 20; ++i) party.send(0, 1, 9, pattern(100, i));
    for (int i = 0; i < 5000 && !ended; ++i) party.step();
    EXPECT_TRUE(ended);
    party[0].on_log = nullptr;
    party.settle();
}

}  // namespace
}  // namespace velo::test
