// LogGOPSim's language, rank by rank:
//
//     num_ranks N
//     rank R {
//         label: send 8b to 3 tag 1 cpu 0 nic 0
//         label: recv 8b from -1 tag -1
//         label: calc 100 cpu 1
//         later requires earlier
//         later irequires earlier
//     }
//
// A statement ends with its line; a label is defined above its use; comments, // and /* */, are where a
// statement may begin. Sizes have 64 bits, tags 32. What LogGOPSim's txt2bin refuses is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectives/goal/graph.h"

namespace velo::goal {

class TextReader {
 public:
    explicit TextReader(std::string_view text) : text_(text) {}

    // The next rank. None: the text has ended, or `error` says where it is wrong.
    std::optional<Graph> next(std::string* error);
    std::uint32_t ranks() const { return ranks_; }
    // Of the rank read last, by vertex.
    std::vector<std::string_view> take_labels() { return std::exchange(labels_, {}); }

 private:
    struct Wrong;
    bool begin_rank(std::optional<Graph>* graph);
    bool statement(Graph& graph);
    void operation(Graph& graph, Kind kind, std::string_view label);
    void blanks();
    bool skip(std::string_view word);
    bool comment();
    void expect(std::string_view word);
    void end_of_line();
    std::string_view identifier();
    std::uint64_t number(std::uint64_t most);
    std::uint32_t number_or_any();
    Vertex labelled();
    [[noreturn]] void expected(const std::string& what) const;
    [[noreturn]] void wrong(const std::string& what) const;

    std::string_view text_;
    std::size_t at_ = 0;
    std::uint32_t ranks_ = 0;
    std::vector<bool> seen_;
    std::unordered_map<std::string_view, Vertex> vertices_;
    std::vector<std::string_view> labels_;
};

}  // namespace velo::goal
