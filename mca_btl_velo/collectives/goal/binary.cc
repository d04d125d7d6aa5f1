#include "collectives/goal/binary.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace velo::goal {
namespace {

constexpr std::uint64_t kCookie = 4223;
constexpr std::uint64_t kUsedCookie = 2342;  // of a file that LogGOPSim --save-mem has run and spoilt
constexpr std::size_t kHead = 8 + 4 + 1 + 1;
constexpr std::size_t kNode = 39;

template <typename T>
T load(std::string_view data, std::size_t at) {
    T value;
    std::memcpy(&value, data.data() + at, sizeof value);
    return value;
}

template <typename T>
void store(std::string& data, T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    data.append(bytes, sizeof value);
}

// One rank's part, of which only the operations are left to be checked.
struct Part {
    std::string_view data;
    std::uint32_t operations, independents;
    std::size_t nodes, appendix;
    std::uint32_t edges;  // in the appendix

    std::string_view node(Vertex v) const { return data.substr(nodes + std::size_t{v} * kNode, kNode); }
    Vertex edge(std::uint32_t i) const { return load<Vertex>(data, appendix + 4 * std::size_t{i}); }
};

std::string_view cut(std::string_view data, std::uint64_t begin, std::uint64_t end) {
    return begin <= end && end <= data.size() ? data.substr(begin, end - begin) : std::string_view();
}

// Empty data: the sizes contradict each other.
Part part_of(std::string_view data) {
    Part part{{}, 0, 0, 0, 0, 0};
    if (data.size() < 8) return part;
    part.operations = load<std::uint32_t>(data, 0);
    part.independents = load<std::uint32_t>(data, 4);
    part.nodes = 8 + 4 * std::size_t{part.independents};
    part.appendix = part.nodes + kNode * std::size_t{part.operations};
    if (part.appendix > data.size() || part.independents > part.operations) return part;
    part.edges = static_cast<std::uint32_t>((data.size() - part.appendix) / 4);
    part.data = data;
    return part;
}

// Those that require an operation, or those that irequire it, in the appendix.
struct Span {
    std::uint32_t count, begin;
};
Span waiting_for(std::string_view node, bool start) {
    const std::size_t at = start ? 31 : 23;
    return {load<std::uint32_t>(node, at), load<std::uint32_t>(node, at + 4)};
}

}  // namespace

bool BinaryReader::recognises(std::string_view data) {
    if (data.size() < 8) return false;
    const auto cookie = load<std::uint64_t>(data, 0);
    return cookie == kCookie || cookie == kUsedCookie;
}

std::optional<Graph> BinaryReader::next(std::string* error) {
    const auto refuse = [&](const std::string& why) {
        *error = why;
        return std::nullopt;
    };
    if (ranks_ == 0) {
        if (load<std::uint64_t>(data_, 0) == kUsedCookie)
            return refuse("LogGOPSim --save-mem has run this file, and overwritten it");
        if (data_.size() < kHead) return refuse("the file is cut off");
        ranks_ = load<std::uint32_t>(data_, 8);
        if (ranks_ == 0) return refuse("no ranks");
        if ((data_.size() - kHead) / 16 < ranks_) return refuse("the file is cut off");
    }
    if (next_ == ranks_) return std::nullopt;
    const std::uint32_t rank = next_++;
    const std::string who = "rank " + std::to_string(rank) + ": ";
    const std::size_t entry = kHead + 16 * std::size_t{rank};
    const std::string_view behind = data_.substr(8);
    const Part part =
        part_of(cut(behind, load<std::uint64_t>(data_, entry), load<std::uint64_t>(data_, entry + 8)));
    if (part.data.empty()) return refuse(who + "its part of the file is cut off");

    Graph graph(rank, ranks_);
    std::vector<std::uint32_t> waits(part.operations);
    for (Vertex v = 0; v < part.operations; ++v) {
        const std::string_view node = part.node(v);
        const auto kind = load<std::uint8_t>(node, 4);
        if (kind < 1 || kind > 3)
            return refuse(who + "operation " + std::to_string(v) + " is of kind " + std::to_string(kind) +
                          ", not 1, 2 or 3");
        Operation o;
        o.kind = static_cast<Kind>(kind);
        o.bytes = load<std::uint64_t>(node, 9);
        o.cpu = load<std::uint8_t>(node, 21);
        if (o.communicates()) {  // others have these fields too, and no use for them
            o.peer = load<std::uint32_t>(node, 5);
            o.tag = load<std::uint32_t>(node, 17);
            o.nic = load<std::uint8_t>(node, 22);
        }
        graph.add(o);
        for (const bool start : {false, true}) {
            const Span span = waiting_for(node, start);
            if (span.count == 0) continue;
            if (span.begin > part.edges || span.count > part.edges - span.begin)
                return refuse(who + "what waits for operation " + std::to_string(v) + " is not in the file");
        }
    }
    for (Vertex v = 0; v < part.operations; ++v)
        for (const bool start : {false, true}) {
            const Span span = waiting_for(part.node(v), start);
            for (std::uint32_t i = 0; i < span.count; ++i) {
                const Vertex later = part.edge(span.begin + i);
                if (later < part.operations) ++waits[later];
                start ? graph.needs_start(later, v) : graph.needs(later, v);
            }
        }
    for (Vertex v = 0; v < part.operations; ++v)
        if (const auto said = load<std::uint32_t>(part.node(v), 0); waits[v] != said)
            return refuse(who + "operation " + std::to_string(v) + " waits for " + std::to_string(said) +
                          " others, but " + std::to_string(waits[v]) + " name it");
    return graph;
}

std::string to_binary(const Program& program, const WriteOptions& options) {
    std::string data;
    store(data, kCookie);
    store(data, program.size());
    store(data, static_cast<std::uint8_t>(program.cpus() - 1));
    store(data, static_cast<std::uint8_t>(program.nics() - 1));
    const std::size_t table = data.size();
    data.resize(table + 16 * std::size_t{program.size()});
    for (std::uint32_t rank = 0; rank < program.size(); ++rank) {
        const Schedule& schedule = program.schedules[rank];
        const std::uint64_t begin = data.size() - 8;
        std::vector<Vertex> independents(schedule.independents().begin(), schedule.independents().end());
        std::ranges::sort(independents);
        store(data, schedule.count());
        store(data, static_cast<std::uint32_t>(independents.size()));
        for (const Vertex v : independents) store(data, v);
        std::uint32_t edges = 0;
        for (Vertex v = 0; v < schedule.count(); ++v) {
            const Operation o = plain(schedule.operation(v), options);
            store(data, schedule.counters()[v]);
            store(data, static_cast<std::uint8_t>(o.kind));
            store(data, o.peer);
            store(data, o.bytes);
            store(data, o.tag);
            store(data, o.cpu);
            store(data, o.nic);
            for (const auto waiting : {schedule.dependents(v), schedule.start_dependents(v)}) {
                store(data, static_cast<std::uint32_t>(waiting.size()));
                store(data, std::exchange(edges, edges + static_cast<std::uint32_t>(waiting.size())));
            }
        }
        for (Vertex v = 0; v < schedule.count(); ++v)
            for (const auto waiting : {schedule.dependents(v), schedule.start_dependents(v)})
                for (const Vertex d : waiting) store(data, d);
        const std::uint64_t places[] = {begin, data.size() - 8};
        std::memcpy(data.data() + table + 16 * std::size_t{rank}, places, sizeof places);
    }
    return data;
}

}  // namespace velo::goal
