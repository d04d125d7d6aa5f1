// LogGOPSim's binary format, little-endian, as txt2bin writes it:
//
//     cookie 4223 (64 bits) | ranks (32) | largest cpu (8), largest nic (8)
//     | begin and end of each rank's part (64 bits each, counted from behind the cookie)
//     each part: operations (32), independent ones (32), their numbers (32 each)
//     | 39 bytes an operation: waits for so many (32), kind (8), peer (32), bytes (64), tag (32), cpu, nic
//     (8),
//       count and begin of those that require it, count and begin of those that irequire it (32 each)
//     | their numbers (32 each)
//
// Everything in it is checked: no number of a file leads out of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/goal/graph.h"
#include "collectives/goal/program.h"

namespace velo::goal {

class BinaryReader {
 public:
    static bool recognises(std::string_view data);
    explicit BinaryReader(std::string_view data) : data_(data) {}

    // As of TextReader.
    std::optional<Graph> next(std::string* error);
    std::uint32_t ranks() const { return ranks_; }
    std::vector<std::string_view> take_labels() { return {}; }

 private:
    std::string_view data_;
    std::uint32_t ranks_ = 0;
    std::uint32_t next_ = 0;
};

// An operation as both formats know it.
Operation plain(const Operation& operation, const WriteOptions& options);

}  // namespace velo::goal
