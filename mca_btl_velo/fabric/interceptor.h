// Faults on purpose: packets that are dropped, delayed or refused on their way out, or dropped or delayed on
// their way in, by a seeded choice. Of checked builds; in others nothing of it exists but empty functions.
//
// The environment variable VELO_INTERCEPT says what, as rates between 0 and 1 separated by commas:
//
//   VELO_INTERCEPT=seed=7,drop_out=0.001,delay_out=0.1,refuse_out=0.1,drop_in=0.001,delay_in=0.1
//
// A delay keeps the order of each pair, and lasts 1 to kMostLooks looks of this process at its mailbox. Only
// what the flow control has not granted can be refused, as by a fabric that is full.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "fabric/fabric.h"

namespace velo::fabric {

#ifdef VELO_CHECKED

class Interceptor {
 public:
    static constexpr unsigned kMostLooks = 8;
    enum class Fate : std::uint8_t { kPass, kDrop, kHold };

    // As VELO_INTERCEPT says. Throws Failure.
    Interceptor();
    // What is still delayed leaves: the links that are left must be open.
    ~Interceptor();

    bool active() const { return faults_ != nullptr; }
    // The link to a peer with faults; as it was where there are none.
    std::unique_ptr<Link> on(std::unique_ptr<Link> link);
    // What becomes of the packets that are next in the mailbox. kHold: they are not there yet.
    Fate arriving();
    // The process looks at its mailbox: what has been delayed for long enough leaves. Under the mutex.
    void look();
    // What has been done so far, in words: "3 dropped, 17 delayed, 0 refused".
    std::string text() const;

 private:
    struct Faults;
    class FaultyLink;
    std::shared_ptr<Faults> faults_;  // of its links, too
};

#else

class Interceptor {
 public:
    enum class Fate : std::uint8_t { kPass, kDrop, kHold };

    static constexpr bool active() { return false; }
    static std::unique_ptr<Link> on(std::unique_ptr<Link> link) { return link; }
    static constexpr Fate arriving() { return Fate::kPass; }
    static void look() {}
    static std::string text() { return {}; }
};

#endif

}  // namespace velo::fabric
