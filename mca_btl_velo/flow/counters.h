// What flow control has done so far, and the list of it: sums, and what the simulator prints, go by
// kCounters.

#pragma once

#include <cstdint>

namespace velo::flow {

struct Counters {
    std::uint64_t credit_packets = 0;
    std::uint64_t credits_in_packets = 0;
    std::uint64_t piggybacks = 0;
    std::uint64_t piggybacked_credits = 0;
    std::uint64_t requests = 0;
    std::uint64_t responses = 0;
    std::uint64_t steals = 0;
    std::uint64_t stolen_slots = 0;
    std::uint64_t refusals = 0;
    std::uint64_t growths = 0;
    std::uint64_t grown_buffers = 0;
    std::uint64_t hellos = 0;
    std::uint64_t releases = 0;
    std::uint64_t leaves = 0;

    inline Counters& operator+=(const Counters& other);
};

struct CounterInfo {
    const char* name;
    const char* help;
    std::uint64_t Counters::*value;
};

inline constexpr CounterInfo kCounters[] = {
    {"credit_packets", "CREDIT packets sent", &Counters::credit_packets},
    {"credits_in_packets", "credits that they carried", &Counters::credits_in_packets},
    {"piggybacks", "DATA packets that carried credits back", &Counters::piggybacks},
    {"piggybacked_credits", "credits that they carried", &Counters::piggybacked_credits},
    {"requests", "compulsory credit return requests sent (dynamic)", &Counters::requests},
    {"responses", "their answers sent (dynamic)", &Counters::responses},
    {"steals", "times that an idle sender's quota went to a busy one", &Counters::steals},
    {"stolen_slots", "slots that did", &Counters::stolen_slots},
    {"refusals", "packets that a receiver refused, each then sent again (rnr)", &Counters::refusals},
    {"growths", "times that a sender got more buffers (mvapich_dynamic)", &Counters::growths},
    {"grown_buffers", "buffers that they got (mvapich_dynamic)", &Counters::grown_buffers},
    {"hellos", "windows asked for (lazy)", &Counters::hellos},
    {"releases", "senders asked to close their windows (lazy)", &Counters::releases},
    {"leaves", "receivers asked to have a window closed (lazy)", &Counters::leaves},
};

inline Counters& Counters::operator+=(const Counters& other) {
    for (const CounterInfo& counter : kCounters) this->*counter.value += other.*counter.value;
    return *this;
}

}  // namespace velo::flow
