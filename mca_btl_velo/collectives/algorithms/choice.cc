#include "collectives/algorithms/choice.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

namespace velo::goal::collectives {
namespace {

// Few ranks: everybody speaks to everybody, and large blocks are fetched by all receivers at once. Measured
// with 2 and 4 ranks on as many processors (docs/measured), guessed beyond; of alltoall with 9 to 32 ranks on
// two, where linear took .5 to .8 of the time of pairwise, and .8 to 1.2 of bruck's up to 256 bytes.
constexpr std::string_view kOwn =
    "barrier 1 0 dissemination\n"
    "bcast 1 0 linear\n"
    "bcast 5 0 binomial\n"
    "bcast 5 65536 linear\n"
    "bcast 9 65536 scatter_allgather\n"
    "reduce 1 0 linear\n"
    "reduce 5 0 binomial\n"
    "allreduce 1 0 recursive_doubling\n"
    "allreduce 1 65536 ring\n"
    "allreduce 2^n 65536 rabenseifner\n"
    "allreduce 2-8 16384 ring\n"
    "allreduce 2-2 32768 recursive_doubling\n"
    "allreduce 4-4 16384 rabenseifner\n"
    "allreduce 8-8 16384 rabenseifner\n"
    "reduce_scatter 1 0 linear\n"
    "reduce_scatter 9 0 pairwise\n"
    "reduce_scatter_block 1 0 linear\n"
    "reduce_scatter_block 9 0 pairwise\n"
    "scan 1 0 recursive_doubling\n"
    "scan 2-3 0 linear\n"
    "scan 4-8 16384 linear\n"
    "exscan 1 0 recursive_doubling\n"
    "exscan 2-3 0 linear\n"
    "exscan 4-8 16384 linear\n"
    "gather 1 0 linear\n"
    "gather 9 0 by_size\n"
    "scatter 1 0 linear\n"
    "scatter 9 0 binomial\n"
    "scatter 9 2048 linear\n"
    "allgather 1 0 linear\n"
    "allgather 9 0 bruck\n"
    "allgather 9 2048 ring\n"
    "alltoall 1 0 linear\n"
    "alltoall 17 0 bruck\n"
    "alltoall 17 257 linear\n"
    "alltoall 65 257 pairwise\n"
    "gatherv 1 0 linear\n"
    "scatterv 1 0 linear\n"
    "allgatherv 1 0 linear\n"
    "allgatherv 9 0 bruck\n"
    "allgatherv 9 2048 ring\n"
    "alltoallv 1 0 linear\n"
    "alltoallv 65 0 pairwise\n"
    "exchange 1 0 linear\n";

constexpr std::string_view kBlank = " \t\r";

// The next word of a line, which it is taken from; empty at the end.
std::string_view next_word(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(kBlank));
    line.remove_prefix(word.size());
    return word;
}

template <typename Number>
bool parse(std::string_view word, Number* number) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *number);
    return error == std::errc() && end == word.data() + word.size();
}

std::string quoted(std::string_view word) {
    return "\"" + std::string(word) + "\"";
}

// Why there is no such algorithm.
std::string no_algorithm(std::string_view operation, std::string_view name) {
    std::string known, operations;
    for (const Algorithm& algorithm : algorithms()) {
        const std::string of(algorithm.operation);
        if (algorithm.operation == operation)
            known += (known.empty() ? "" : ", ") + std::string(algorithm.name);
        else if (!operations.ends_with(of))
            operations += (operations.empty() ? "" : ", ") + of;
    }
    return known.empty() ? quoted(operation) + " is no operation; there are " + operations
                         : std::string(operation) + " has no algorithm " + quoted(name) + "; it has " + known;
}

// OPERATION:ALGORITHM,... as rules.
std::string rules_of(std::string_view pairs) {
    std::string rules;
    for (const char letter : pairs)
        rules += letter == ':' ? " 1 0 " : letter == ',' ? "\n" : std::string(1, letter);
    return rules;
}

}  // namespace

Choices::Choices() {
    std::string error;
    add(kOwn, &error);
}

std::optional<Choices> Choices::read(std::string_view text, std::string* error) {
    std::optional<Choices> choices(std::in_place);
    if (!choices->add(text, error)) choices.reset();
    return choices;
}

std::optional<Choices> Choices::load(const std::string& file, std::string* error) {
    if (file.empty()) return Choices();
    if (file.find(':') != std::string::npos && file.find('/') == std::string::npos)
        return read(rules_of(file), error);
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    if (stream) text << stream.rdbuf();
    if (!stream || !text) {
        *error = "cannot read " + file + ": " + std::strerror(errno);
        return std::nullopt;
    }
    std::optional<Choices> choices = read(text.str(), error);
    if (!choices) *error = file + ", " + *error;
    return choices;
}

bool Choices::add(std::string_view text, std::string* error) {
    for (std::uint32_t number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (const std::string wrong = add_line(line.substr(0, line.find('#'))); !wrong.empty()) {
            *error = "line " + std::to_string(number) + ": " + wrong;
            return false;
        }
    }
    return true;
}

std::string Choices::add_line(std::string_view line) {
    std::array<std::string_view, 4> words;
    for (std::string_view& word : words) word = next_word(line);
    const auto [operation, ranks, bytes, name] = words;
    if (operation.empty()) return {};
    if (name.empty() || !next_word(line).empty())
        return "a rule has four words: OPERATION RANKS BYTES ALGORITHM";
    Rule rule{find(operation, name), 1, UINT32_MAX, ranks == "2^n", 0};
    if (rule.algorithm == nullptr) return no_algorithm(operation, name);
    if (!rule.powers) {
        const std::size_t dash = ranks.find('-');
        const bool read = parse(ranks.substr(0, dash), &rule.least) &&
                          (dash == std::string_view::npos || parse(ranks.substr(dash + 1), &rule.most));
        if (!read || rule.least == 0 || rule.most < rule.least)
            return quoted(ranks) + " are no ranks: N for N or more, A-B, or 2^n for powers of two";
    }
    if (!parse(bytes, &rule.bytes)) return quoted(bytes) + " is no number of bytes";
    rules_.push_back(rule);
    return {};
}

bool Choices::Rule::matches(const Request& request) const {
    // Blocks of their own sizes go by the average.
    const std::uint64_t asked =
        algorithm->operation == "allgatherv" ? request.bytes / request.size : request.bytes;
    return request.size >= least && request.size <= most && asked >= bytes &&
           (!powers || std::has_single_bit(request.size)) && algorithm->serves(request);
}

const Algorithm* Choices::choose(std::string_view operation, const Request& request) const {
    for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule)
        if (rule->algorithm->operation == operation && rule->matches(request)) return rule->algorithm;
    return nullptr;
}

std::uint64_t Choices::digest() const {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    const auto add = [&](std::uint64_t value) {
        for (int i = 0; i < 8; ++i, value >>= 8) hash = (hash ^ (value & 0xff)) * 0x100000001b3;
    };
    for (const Rule& rule : rules_) {
        add(static_cast<std::uint64_t>(rule.algorithm - algorithms().data()));
        add(std::uint64_t{rule.least} << 32 | rule.most);
        add(rule.bytes << 1 | rule.powers);
    }
    return hash;
}

}  // namespace velo::goal::collectives
