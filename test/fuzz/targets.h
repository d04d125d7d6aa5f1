// What reads bytes of other processes, each as a function of arbitrary bytes: it must neither crash nor hang,
// nor touch memory that is not its own. `make fuzzers` makes a libFuzzer program of each; make check runs
// each over its corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace velo::fuzz {

using Bytes = std::span<const std::uint8_t>;

// A sender stores what it likes into the mailbox of an engine: packets, control packets, RMA messages.
void packets(Bytes input);
// The same for messages of the messenger above the engine.
void messages(Bytes input);
// Parcels from other nodes, on their way into the mailbox.
void parcels(Bytes input);
// What the start-up exchange delivers as the addresses of a peer.
void addresses(Bytes input);
// The segment of a peer, whose header and directory hold anything.
void segments(Bytes input);
// A file of schedules, as text or binary: read, checked, written, and read again.
void schedules(Bytes input);

struct Target {
    const char* name;
    void (*run)(Bytes);
};

inline constexpr Target kTargets[] = {{"packets", packets},
                                      {"messages", messages},
                                      {"parcels", parcels},
                                      {"addresses", addresses},
                                      {"segments", segments},
                                      {"schedules", schedules}};

}  // namespace velo::fuzz
