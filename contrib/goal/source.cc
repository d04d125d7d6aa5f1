#include "source.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "collectives/algorithms/choice.h"

namespace velo::goal {

void add_source_options(CLI::App& command, Source& source, bool processes) {
    source.collective.on_node = 16;  // as on velo-sim's machine
    command
        .add_option(
            "program", source.what,
            "a file in LogGOPSim's language, text or binary, or OPERATION:ALGORITHM, such as bcast:binomial "
            "(velo-goal list shows them) or bcast:auto")
        ->required();
    command.add_option("--choices", source.choices,
                       "the file of velo-goal tune that chooses for auto; without it Velo's own rules do");
    if (processes)
        command.add_option("-n,--np,--processes,--ranks", source.processes, "ranks of a collective")
            ->check(CLI::Range(1U, 1U << 20))
            ->capture_default_str();
    command
        .add_option("--bytes", source.collective.bytes, "of a block, or of all that is broadcast or reduced")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
        ->capture_default_str();
    command.add_option("--root", source.collective.root)->capture_default_str();
    command
        .add_option("--on-node", source.collective.on_node,
                    "ranks of a node, for algorithms of the name nodes")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command.add_option("--segment", source.collective.segment, "of pipelines; 0: the algorithm's own");
}

namespace {

collectives::Request request_of(const Source& source) {
    collectives::Request request = source.collective;
    request.size = source.processes;
    return request;
}

// nullptr: there is no such one.
const collectives::Algorithm* find(const Source& source, std::string_view operation, std::string_view name) {
    if (name != "auto") return collectives::find(operation, name);
    std::string error;
    const auto choices = collectives::Choices::load(source.choices, &error);
    if (!choices) throw std::runtime_error("--choices: " + error);
    return choices->choose(operation, request_of(source));
}

void compile_all(const collectives::Algorithm& algorithm, const Source& source, Program& program) {
    collectives::Request request = request_of(source);
    if (request.root >= request.size)
        throw std::runtime_error("--root " + std::to_string(request.root) + " is none of " +
                                 std::to_string(request.size) + " ranks");
    for (request.rank = 0; request.rank < request.size; ++request.rank) {
        std::string error;
        std::optional<Schedule> schedule = compile(algorithm.make(request), &error);
        if (!schedule) throw std::runtime_error(error);
        program.schedules.push_back(std::move(*schedule));
    }
}

// What there is instead of a file or an algorithm that there is not.
std::string instead_of(const std::string& what) {
    const std::string operation = what.substr(0, what.find(':'));
    std::string names;
    for (const collectives::Algorithm& a : collectives::algorithms())
        if (a.operation == operation) names += operation + ":" + std::string(a.name) + ", ";
    if (names.empty()) return "there is no such OPERATION:ALGORITHM; velo-goal list shows them";
    return operation + " goes as " + names + "or " + operation + ":auto";
}

}  // namespace

Loaded load(const Source& source) {
    Loaded loaded;
    const std::size_t colon = source.what.find(':');
    if (colon != std::string::npos) {
        const collectives::Algorithm* algorithm =
            find(source, source.what.substr(0, colon), source.what.substr(colon + 1));
        if (algorithm != nullptr) {
            compile_all(*algorithm, source, loaded.program);
            return loaded;
        }
    }
    if (std::filesystem::is_directory(source.what))
        throw std::runtime_error(source.what +
                                 " is a directory; name a file, or OPERATION:ALGORITHM of velo-goal list");
    std::ifstream file(source.what, std::ios::binary);
    if (!file)
        throw std::runtime_error("cannot read " + source.what + ": " + std::strerror(errno) + ", and " +
                                 instead_of(source.what));
    std::ostringstream text;
    text << file.rdbuf();
    loaded.data = std::move(text).str();
    std::string error;
    std::optional<Program> program = read_program(loaded.data, &error);
    if (!program) throw std::runtime_error(source.what + ": " + error);
    loaded.program = std::move(*program);
    return loaded;
}

}  // namespace velo::goal
