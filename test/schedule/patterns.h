// Communication patterns: who sends to whom, and who sleeps, as functions of the seed and the number of
// events so far.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "random.h"

namespace velo::schedule {

enum class Pattern {
    kAllToAll,
    kIncast,    // everybody to process 0, which answers now and then
    kOneWay,    // from lower to higher ids only
    kPingPong,  // a message for a message between neighbours 2i and 2i + 1
    kRing,      // to the next process
    kPhases,    // one sender and one receiver at a time; the first pair returns
    kTides,     // each process has one busy sender at a time; data from lower ids is answered
    kSlow,      // all to all, the last process retrieves rarely
    kSleepers,  // all to all, each process stops for a while now and then
    kSubgroup,  // the lower half all to all, one packet in 64 elsewhere
};

std::vector<Pattern> all_patterns();
std::string to_string(Pattern pattern);

// Sender and receiver of the next message; {0, 0} for none at this moment.
std::pair<std::uint32_t, std::uint32_t> next_message(Pattern pattern, std::uint32_t processes,
                                                     std::uint64_t step, Random& random);
// True if DATA of `from`, retrieved by `to`, is answered with a message.
bool answers(Pattern pattern, std::uint32_t from, std::uint32_t to);
// False: the process neither sends nor retrieves at this moment.
bool awake(Pattern pattern, std::uint32_t process, std::uint32_t processes, std::uint64_t step,
           Random& random);

}  // namespace velo::schedule
