#include "report/report.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "types/engine.h"

namespace velo::report {
namespace {

using fabric::shm::SegmentHeader;
using fabric::shm::Statistics;

struct Field {
    const char* name;
    velo_counter_kind kind;
    std::uint64_t& (*value)(Statistics&);
};

constexpr Field kFields[] = {
#define VELO_FLOW_COUNTER(name, ...) \
    {#name, VELO_COUNTER_SUM, [](Statistics& s) -> std::uint64_t& { return s.flow.name; }},
#define VELO_COUNTER(when, kind, name, ...) \
    {#name, VELO_COUNTER_##kind, [](Statistics& s) -> std::uint64_t& { return s.name; }},
#include "types/counters.inc"
};

// Numbers, and words of Velo's own that need no escapes. The library for JSON ends the process where memory
// is short.
class JsonObject {
 public:
    void add(const char* name, std::uint64_t value) { add_json(name, std::to_string(value)); }
    void add_all(Statistics counters) {
        for (const Field& field : kFields) add(field.name, field.value(counters));
    }
    void add_text(const char* name, const std::string& value) { add_json(name, "\"" + value + "\""); }
    void add_json(const char* name, const std::string& value) {
        members_ += std::string(members_.empty() ? "\"" : ",\"") + name + "\":" + value;
    }
    std::string text() const { return "{" + members_ + "}"; }

 private:
    std::string members_;
};

double percent(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

template <typename... Values>
void append_line(std::string& text, const char* format, Values... values) {
    char line[256];
    std::snprintf(line, sizeof line, format, values...);
    text += line;
}

void append_process(std::string& text, const char* label, const Statistics& s, std::uint32_t capacity) {
    append_line(text,
                "  %-9s %11" PRIu64 " %6.2f%% %12" PRIu64 " %10" PRIu64 " %11" PRIu64 " %8" PRIu64
                " %7" PRIu64 " %7" PRIu64 "/%" PRIu32 "\n",
                label, s.messages_sent, percent(s.messages_delayed, s.messages_sent), s.data_packets,
                s.flow.credit_packets, s.flow.piggybacked_credits, s.flow.requests, s.flow.steals,
                s.mailbox_high_water, capacity);
}

// The largest of what is a high-water mark, if `total` is for people.
Statistics sum(const std::vector<const SegmentHeader*>& segments, bool highest) {
    Statistics total{};
    for (const SegmentHeader* segment : segments) {
        Statistics own = segment->statistics;
        for (const Field& field : kFields) {
            std::uint64_t &all = field.value(total), one = field.value(own);
            all = highest && field.kind == VELO_COUNTER_HIGH_WATER ? std::max(all, one) : all + one;
        }
    }
    return total;
}

// The first process has met all if it reports.
std::uint64_t median_of_peers_met(const std::vector<const SegmentHeader*>& segments) {
    std::vector<std::uint64_t> met;
    for (const SegmentHeader* segment : segments) met.push_back(segment->statistics.peers_met);
    const auto middle = met.begin() + static_cast<std::ptrdiff_t>(met.size() / 2);
    std::nth_element(met.begin(), middle, met.end());
    return *middle;
}

}  // namespace

std::string summary(const Input& input) {
    // Keeps the table on one screen: the totals always, and as many processes as fit.
    constexpr std::size_t kProcessesShown = 16;
    const SegmentHeader& first = *input.segments.front();
    std::string text;
    append_line(text, "velo: %s: flow control %s, %s\n", input.host.c_str(), first.agreement.flow_control,
                input.parameters.c_str());
    append_line(text, "velo: mailbox of each process: %" PRIu32 " slots of 64 bytes = %" PRIu64 " KiB\n",
                first.capacity, std::uint64_t{first.capacity} * wire::kPacketBytes / 1024);
    append_line(text,
                "velo: KiB of each process: shared %" PRIu64 " in use of %" PRIu64 " (mailbox %" PRIu64
                ", LiMIC ring %" PRIu64 ", outbox %" PRIu64 ", staging %" PRIu64 "), private %" PRIu64 "\n",
                first.statistics.segment_used_bytes / 1024, first.statistics.segment_bytes / 1024,
                std::uint64_t{first.capacity} * wire::kPacketBytes / 1024,
                std::uint64_t{first.limic_slots} * wire::kPacketBytes / 1024, first.outbox_bytes / 1024,
                first.deposit_bytes / 1024, first.statistics.private_bytes / 1024);
    append_line(text,
                "velo: peers that a process has met: %" PRIu64 " of %" PRIu32
                " (median); one that it never meets costs %zu bytes\n",
                median_of_peers_met(input.segments), first.peers + first.limic_peers + input.remote_peers,
                input.unmet_peer_bytes);
    const Statistics total = sum(input.segments, true);
    if (total.network_packets > 0) {
        append_line(text,
                    "velo: %" PRIu64 " packets went to other nodes; at most %" PRIu64
                    " of theirs were in a mailbox\n",
                    total.network_packets, total.network_high_water);
    }
    if (total.limic_packets > 0) {
        append_line(text, "velo: %" PRIu64 " packets took the LiMIC-like path and no credits\n",
                    total.limic_packets);
    }
    if (total.messages_by_reference + total.batches + total.outbox_full > 0) {
        append_line(text,
                    "velo: %" PRIu64 " messages by reference, %" PRIu64 " in %" PRIu64
                    " batches; outbox: no chunk for %" PRIu64 ", at most %" PRIu64 " of %" PRIu64
                    " bytes lent\n",
                    total.messages_by_reference, total.batched_messages, total.batches, total.outbox_full,
                    total.outbox_high_water, first.outbox_bytes);
    }
    if (total.messages_sent == 0)
        text +=
            "velo: no point-to-point message went over Velo; --mca pml ob1 where Open MPI chooses another "
            "PML\n";
    text +=
        "  process      messages delayed      packets credit pk. piggybacked requests  steals "
        "highest/slots\n";
    for (std::size_t i = 0; i < std::min(input.segments.size(), kProcessesShown); ++i) {
        const SegmentHeader& segment = *input.segments[i];
        append_process(text, std::to_string(segment.owner & 0xffffffff).c_str(), segment.statistics,
                       segment.capacity);
    }
    if (input.segments.size() > kProcessesShown) {
        append_line(text, "  ... and %zu more\n", input.segments.size() - kProcessesShown);
    }
    append_process(text, "all", total, first.capacity);
    return text;
}

std::string json(const Input& input) {
    const SegmentHeader& first = *input.segments.front();
    JsonObject report;
    report.add("version", 1);
    report.add_text("policy", first.agreement.flow_control);
    report.add_json("piggyback", first.agreement.piggyback != 0 ? "true" : "false");
    report.add("ranks", input.segments.size());
    report.add_text("parameters", input.parameters);
    report.add_json("set", input.set);
    report.add("slots_per_peer", input.slots_per_peer);
    report.add("credit_slots", first.agreement.credit_slots);
    report.add("unmet_peer_bytes", input.unmet_peer_bytes);
    report.add("mailbox_slots", first.capacity);
    report.add("mailbox_bytes", std::uint64_t{first.capacity} * wire::kPacketBytes);
    std::string processes;
    JsonObject total;
    for (const SegmentHeader* segment : input.segments) {
        JsonObject process;
        process.add("rank", segment->owner & 0xffffffff);
        process.add_all(segment->statistics);
        processes += (processes.empty() ? "" : ",") + process.text();
    }
    total.add_all(sum(input.segments, false));
    report.add_json("per_rank", "[" + processes + "]");
    report.add_json("total", total.text());
    return "VELO-REPORT " + report.text() + "\n";
}

}  // namespace velo::report
