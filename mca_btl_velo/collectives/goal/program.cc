#include "collectives/goal/program.h"

#include <algorithm>

#include "collectives/goal/binary.h"
#include "collectives/goal/text.h"

namespace velo::goal {

namespace {

std::string name_of(const std::vector<std::string_view>& labels, Vertex v) {
    const bool labelled = v < labels.size() && !labels[v].empty();
    return labelled ? std::string(labels[v]) : "operation " + std::to_string(v);
}

}  // namespace

std::string Program::name(std::uint32_t rank, Vertex v) const {
    return name_of(rank < labels.size() ? labels[rank] : std::vector<std::string_view>(), v);
}

std::string Program::place(std::uint32_t rank, Vertex v) const {
    const Schedule& schedule = schedules[rank];
    return "rank " + std::to_string(rank) + ": " + name(rank, v) + " (" +
           describe(schedule.operation(v), &schedule) + ")";
}

std::uint32_t Program::cpus() const {
    std::uint32_t most = 0;
    for (const Schedule& schedule : schedules)
        for (const Operation& o : schedule.operations()) most = std::max<std::uint32_t>(most, o.cpu);
    return most + 1;
}

std::uint32_t Program::nics() const {
    std::uint32_t most = 0;
    for (const Schedule& schedule : schedules)
        for (const Operation& o : schedule.operations()) most = std::max<std::uint32_t>(most, o.nic);
    return most + 1;
}

namespace {

// What a file says of the number of its ranks is believed when that many have been read.
template <typename Reader>
std::optional<Program> read(Reader reader, std::string* error) {
    Program read;
    while (std::optional<Graph> graph = reader.next(error)) {
        const std::vector<std::string_view>& labels = read.labels.emplace_back(reader.take_labels());
        std::optional<Schedule> schedule =
            compile(*graph, error, [&labels](Vertex v) { return name_of(labels, v); });
        if (!schedule) return std::nullopt;
        read.schedules.push_back(std::move(*schedule));
    }
    if (!error->empty()) return std::nullopt;
    std::vector<std::uint32_t> position(read.size());  // by rank
    std::vector<bool> there(read.size());
    for (std::uint32_t i = 0; i < read.size(); ++i)
        if (const std::uint32_t rank = read.schedules[i].rank(); rank < read.size()) {
            position[rank] = i;
            there[rank] = true;
        }
    if (read.size() < std::max(1U, reader.ranks())) {
        const auto missing = std::ranges::find(there, false) - there.begin();
        *error = reader.ranks() == 0 ? "no ranks"
                                     : "rank " + std::to_string(missing) + " of " +
                                           std::to_string(reader.ranks()) + " is missing";
        return std::nullopt;
    }
    Program program;
    for (const std::uint32_t i : position) {
        program.schedules.push_back(std::move(read.schedules[i]));
        program.labels.push_back(std::move(read.labels[i]));
    }
    return program;
}

}  // namespace

std::optional<Program> read_program(std::string_view data, std::string* error) {
    error->clear();
    return BinaryReader::recognises(data) ? read(BinaryReader(data), error) : read(TextReader(data), error);
}

}  // namespace velo::goal
