#include "collectives/goal/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "collectives/goal/binary.h"

namespace velo::goal {
namespace {

// The scanner knows the letters of the language, whatever the locale.
bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool continues_word(char c) {
    return is_letter(c) || is_digit(c) || c == '_';
}

constexpr std::uint32_t kMostRanks = 1U << 28;

}  // namespace

struct TextReader::Wrong {
    std::string text;
};

std::optional<Graph> TextReader::next(std::string* error) {
    std::optional<Graph> graph;
    try {
        if (!begin_rank(&graph)) return std::nullopt;
        while (statement(*graph)) {
        }
    } catch (const Wrong& wrong) {
        *error = wrong.text;
        return std::nullopt;
    }
    return graph;
}

void TextReader::wrong(const std::string& what) const {
    const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
    const std::size_t line = static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1;
    const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
    throw Wrong{"line " + std::to_string(line) + ", column " + std::to_string(before.size() - begin + 1) +
                ": " + what};
}

void TextReader::expected(const std::string& what) const {
    std::string found = "the end";
    if (at_ < text_.size()) {
        const std::string_view rest = text_.substr(at_);
        std::size_t length = 1;
        if (continues_word(rest[0]))
            while (length < std::min<std::size_t>(rest.size(), 20) && continues_word(rest[length])) ++length;
        const bool end_of_line = rest[0] == '\n' || rest[0] == '\r';
        found = end_of_line ? "the end of the line" : "\"" + std::string(rest.substr(0, length)) + "\"";
    }
    wrong("expected " + what + ", found " + found);
}

void TextReader::blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
}

bool TextReader::skip(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
}

void TextReader::expect(std::string_view word) {
    blanks();
    if (!skip(word)) expected("\"" + std::string(word) + "\"");
}

// A line's end: as such, or the text's.
void TextReader::end_of_line() {
    blanks();
    if (at_ == text_.size() || skip("\n") || skip("\r\n")) return;
    expected("the end of the line");
}

bool TextReader::comment() {
    if (skip("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
        return true;
    }
    if (!skip("/*")) return false;
    const std::size_t end = text_.find("*/", at_);
    if (end == std::string_view::npos) wrong("this comment has no end");
    at_ = end + 2;
    return true;
}

std::string_view TextReader::identifier() {
    const std::size_t begin = at_;
    if (at_ < text_.size() && is_letter(text_[at_]))
        while (at_ < text_.size() && continues_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
}

std::uint64_t TextReader::number(std::uint64_t most) {
    blanks();
    std::uint64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (status == std::errc::invalid_argument) expected("a number");
    if (status != std::errc() || value > most) wrong("this number is above " + std::to_string(most));
    at_ += static_cast<std::size_t>(end - begin);
    return value;
}

std::uint32_t TextReader::number_or_any() {
    blanks();
    return skip("-1") ? kAny : static_cast<std::uint32_t>(number(kAny - 1));
}

// The rest of what stands between ranks. False: the text has ended.
bool TextReader::begin_rank(std::optional<Graph>* graph) {
    for (;;) {
        blanks();
        if (at_ == text_.size()) return false;
        if (comment() || skip("\n") || skip("\r\n")) continue;
        const std::size_t begin = at_;
        const std::string_view word = identifier();
        if (word == "num_ranks") {
            if (ranks_ > 0) wrong("num_ranks a second time");
            ranks_ = static_cast<std::uint32_t>(number(kMostRanks));
            if (ranks_ == 0) wrong("no ranks");
            seen_.resize(ranks_);
        } else if (word == "rank") {
            if (ranks_ == 0) wrong("num_ranks comes before the first rank");
            blanks();
            const std::size_t at = at_;
            const auto rank = static_cast<std::uint32_t>(number(kAny - 1));
            const bool known = rank < ranks_ && seen_[rank];
            if (rank >= ranks_ || known) {
                at_ = at;
                wrong("rank " + std::to_string(rank) +
                      (known ? " a second time" : ", but there are " + std::to_string(ranks_)));
            }
            expect("{");
            seen_[rank] = true;
            vertices_.clear();
            labels_.clear();
            graph->emplace(rank, ranks_);
            return true;
        } else {
            at_ = begin;
            expected("\"num_ranks\" or \"rank\"");
        }
    }
}

// One statement. False: the rank has ended.
bool TextReader::statement(Graph& graph) {
    blanks();
    if (comment() || skip("\n") || skip("\r\n")) return true;
    if (skip("}")) return false;
    const std::size_t begin = at_;
    const auto kind_of = [](std::string_view word) {
        return word == "send" ? Kind::kSend : word == "recv" ? Kind::kReceive : Kind::kCalculate;
    };
    const auto is_kind = [](std::string_view word) {
        return word == "send" || word == "recv" || word == "calc";
    };
    const std::string_view word = identifier();
    if (word.empty()) expected("an operation, a label or \"}\"");
    if (is_kind(word)) {
        operation(graph, kind_of(word), {});
        return true;
    }
    blanks();
    if (skip(":")) {
        blanks();
        for (const std::string_view kind : {"send", "recv", "calc"})
            if (skip(kind)) {
                operation(graph, kind_of(kind), word);
                return true;
            }
        expected("\"send\", \"recv\" or \"calc\"");
    }
    const bool finished = skip("requires");
    if (!finished && !skip("irequires")) expected("\":\", \"requires\" or \"irequires\"");
    const std::size_t after = std::exchange(at_, begin);
    const Vertex later = labelled();
    at_ = after;
    blanks();
    const Vertex earlier = labelled();
    finished ? graph.needs(later, earlier) : graph.needs_start(later, earlier);
    end_of_line();
    return true;
}

Vertex TextReader::labelled() {
    const std::size_t begin = at_;
    const std::string_view label = identifier();
    if (label.empty()) expected("a label");
    const auto found = vertices_.find(label);
    if (found != vertices_.end()) return found->second;
    at_ = begin;
    wrong("no operation above has the label " + std::string(label));
}

void TextReader::operation(Graph& graph, Kind kind, std::string_view label) {
    const std::size_t begin = at_;
    Operation o;
    o.kind = kind;
    o.bytes = number(UINT64_MAX);
    if (o.communicates()) {
        expect("b");
        expect(kind == Kind::kSend ? "to" : "from");
        o.peer = kind == Kind::kSend ? static_cast<std::uint32_t>(number(kAny - 1)) : number_or_any();
        blanks();
        if (skip("tag")) o.tag = number_or_any();
        blanks();
    }
    blanks();
    if (skip("cpu")) o.cpu = static_cast<std::uint8_t>(number(255));
    blanks();
    if (o.communicates() && skip("nic")) o.nic = static_cast<std::uint8_t>(number(255));
    end_of_line();
    const bool was_right = graph.error().empty();
    const Vertex v = graph.add(o);
    if (was_right && !graph.error().empty()) {
        at_ = begin;
        wrong("there are " + std::to_string(ranks_) + " ranks");
    }
    labels_.push_back(label);
    // As in txt2bin, the first operation of a label keeps it.
    if (!label.empty()) vertices_.emplace(label, v);
}

Operation plain(const Operation& operation, const WriteOptions& options) {
    Operation o = operation;
    if (o.kind <= Kind::kCalculate) return o;
    o.kind = Kind::kCalculate;
    o.peer = 0;
    o.bytes =
        static_cast<std::uint64_t>(std::llround(static_cast<double>(o.bytes) * options.local_ns_per_byte));
    return o;
}

std::string to_text(const Program& program, const WriteOptions& options) {
    std::string text = "num_ranks " + std::to_string(program.size()) + "\n";
    for (const Schedule& schedule : program.schedules) {
        text += "\nrank " + std::to_string(schedule.rank()) + " {\n";
        const auto label = [](Vertex v) { return "l" + std::to_string(v + 1); };
        for (Vertex v = 0; v < schedule.count(); ++v) {
            const Operation o = plain(schedule.operation(v), options);
            text += label(v) + ": " + describe(o);
            if (o.cpu != 0) text += " cpu " + std::to_string(o.cpu);
            if (o.nic != 0) text += " nic " + std::to_string(o.nic);
            text += "\n";
        }
        for (Vertex v = 0; v < schedule.count(); ++v) {
            for (const Vertex d : schedule.dependents(v)) text += label(d) + " requires " + label(v) + "\n";
            for (const Vertex d : schedule.start_dependents(v))
                text += label(d) + " irequires " + label(v) + "\n";
        }
        text += "}\n";
    }
    return text;
}

}  // namespace velo::goal
