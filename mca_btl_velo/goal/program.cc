#include "goal/program.h"

#include "goal/binary.h"
#include "goal/text.h"

namespace velo::goal {

std::string Program::name(std::uint32_t rank, Vertex v) const {
    if (rank < labels.size() && v < labels[rank].size() && !labels[rank][v].empty())
        return std::string(labels[rank][v]);
    return "operation " + std::to_string(v);
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

template <typename Reader>
std::optional<Program> read(Reader reader, std::string* error) {
    Program program;
    std::vector<bool> there;
    while (std::optional<Graph> graph = reader.next(error)) {
        const std::uint32_t rank = graph->rank();
        if (there.empty()) {
            program.schedules.resize(reader.ranks());
            program.labels.resize(reader.ranks());
            there.resize(reader.ranks());
        }
        program.labels[rank] = reader.take_labels();
        std::optional<Schedule> schedule =
            compile(*graph, error, [&](Vertex v) { return program.name(rank, v); });
        if (!schedule) return std::nullopt;
        program.schedules[rank] = std::move(*schedule);
        there[rank] = true;
    }
    if (!error->empty()) return std::nullopt;
    for (std::uint32_t rank = 0; rank < reader.ranks(); ++rank)
        if (rank >= there.size() || !there[rank]) {
            *error = "rank " + std::to_string(rank) + " of " + std::to_string(reader.ranks()) + " is missing";
            return std::nullopt;
        }
    return program;
}

}  // namespace

std::optional<Program> read_program(std::string_view data, std::string* error) {
    error->clear();
    return BinaryReader::recognises(data) ? read(BinaryReader(data), error) : read(TextReader(data), error);
}

}  // namespace velo::goal
