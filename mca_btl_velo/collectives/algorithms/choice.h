// Which algorithm serves a collective operation if the user names none: rules, a line each,
//
//     OPERATION RANKS BYTES ALGORITHM
//
// where RANKS is N (that many or more), A-B, or 2^n (any power of two), BYTES is from how many on, as
// Request::bytes counts them (an allgatherv's: of a rank on the average), and # begins a comment. The last
// rule that matches counts whose algorithm serves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/algorithms/collectives.h"

namespace velo::goal::collectives {

class Choices {
 public:
    // Velo's own.
    Choices();
    // Those of a text, before Velo's own. nullopt: *error says what is wrong in which line.
    static std::optional<Choices> read(std::string_view text, std::string* error);
    // The same of a file, or of OPERATION:ALGORITHM,... for all ranks and bytes; nothing: Velo's own.
    static std::optional<Choices> load(const std::string& text, std::string* error);

    // By size, bytes and order alone, so that all ranks with the same rules choose alike; nullptr: no rule.
    const Algorithm* choose(std::string_view operation, const Request& request) const;
    // Equal rules have equal ones, different ones differ but for chance.
    std::uint64_t digest() const;

 private:
    struct Rule {
        const Algorithm* algorithm;
        std::uint32_t least, most;  // ranks
        bool powers;                // of two only
        std::uint64_t bytes;

        bool matches(const Request& request) const;
    };

    bool add(std::string_view text, std::string* error);
    // What is wrong with a line; empty: nothing.
    std::string add_line(std::string_view line);

    std::vector<Rule> rules_;
};

}  // namespace velo::goal::collectives
