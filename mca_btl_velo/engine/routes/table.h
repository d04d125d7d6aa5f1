// The table of routes: how a message to a process on this node goes, by its length, by how far that process's
// core is, and by whether both send to each other at the same time. It is computed once, when the engine
// opens, and no message's time changes it; what changes in a run is which of its rows and columns is asked.
//
// Pure, but for `choose`, which reads a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "platform/copy.h"

namespace velo::routes {

// More than any message has bytes.
inline constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// Of a message that goes at once, unless a parameter says otherwise: what is longer goes by rendezvous.
inline constexpr std::size_t kUsualEagerBytes = 8192;
// 0: automatic.
inline constexpr std::size_t eager_bytes(std::size_t eager_limit) {
    return eager_limit == 0 ? kUsualEagerBytes : eager_limit;
}

// Of a message that goes by rendezvous. Staged (the sender copies into a ring of shared memory, the receiver
// out of it, at the same time) is what is not longer than staged_to, or than cold_to if its buffer has not
// been sent from for a while; of the rest both copy a part of what has both_from bytes or more, by single
// copy, and the receiver alone copies what is shorter. Bytes.
struct LargeLimits {
    std::size_t staged_to = 0, cold_to = 0, both_from = kNever;

    bool stages(std::size_t bytes, bool cold) const { return bytes <= (cold ? cold_to : staged_to); }
    bool both_copy(std::size_t bytes) const { return bytes >= both_from; }
    bool operator==(const LargeLimits&) const = default;
};

using platform::Copying;

// To a process at one distance.
struct Row {
    Copying copying = Copying::kVectors;
    // Bytes of a message of several packets that goes by reference although credits allow packets.
    std::size_t reference_from = kNever;
    LargeLimits one_way, both_ways;

    const LargeLimits& large(bool both) const { return both ? both_ways : one_way; }
    bool operator==(const Row&) const = default;
};

class Table {
 public:
    // Loses little to any other on every processor that was measured: docs/measured/routes.md.
    static Table safe();
    // Of a processor that was measured, by its name; else safe().
    static Table built_in(std::string_view processor);
    // `text`: the lines of a table, see text(); of what it does not name `base` says how it goes. Throws
    // std::invalid_argument, which says what is wrong.
    static Table parse(std::string_view text, const Table& base);
    // As a user chooses: "auto" (the calibration in `file` if it is of `processor`, else built_in), "safe",
    // or a text for parse. An unusable file is not an error; `source` says what was taken, and why.
    static Table choose(std::string_view choice, const std::string& file, std::string_view processor,
                        std::string* source);

    const Row& row(bool far) const { return far ? far_ : near_; }
    // As parse reads it: words and numbers of bytes, one line for each distance.
    std::string text() const;
    // As a user reads it: ranges of bytes in words, a line for each row and column, and for both rows where
    // their ranges are equal. eager_limit: bytes from which on a message goes by rendezvous.
    std::string ranges(std::size_t eager_limit) const;

 private:
    Row near_, far_;
};

// First line of a calibration file; the next are "processor <name>", a table, and "end".
inline constexpr std::string_view kCalibrationTitle = "velo routes 1";

// What a calibration is good for: this processor, by maker, family and model. "" where that cannot be told.
std::string processor_name();
// Where `velo-info --calibrate` keeps its file: VELO_ROUTES_FILE, or .velo/routes in the user's home. "": no
// home.
std::string calibration_file();

}  // namespace velo::routes
