// What a rank sends to each other one.
#pragma once

#include "collectives/algorithms/steps.h"

namespace velo::goal::collectives {

// The blocks to be sent, and where they lie; in place they are copied first.
struct Outgoing {
    explicit Outgoing(Steps& steps) : s(steps) {
        if (!s.request.in_place) return;
        std::uint64_t bytes = 0;
        for (std::uint32_t i = 0; i < s.request.size; ++i) bytes += s.in(i).bytes;
        const Place room = s.room(bytes);
        bytes = 0;
        for (std::uint32_t i = 0; i < s.request.size; ++i) {
            const Share block = s.in(i);
            places.push_back(room.at(bytes));
            there = s.join({there, s.copy(Steps::received(block.offset), room.at(bytes), block.bytes)});
            bytes += block.bytes;
        }
    }
    Place place(std::uint32_t i) const { return places.empty() ? Steps::sent(s.out(i).offset) : places[i]; }
    std::uint64_t bytes(std::uint32_t i) const { return (places.empty() ? s.out(i) : s.in(i)).bytes; }
    Vertex give(std::uint32_t to, Vertex after) { return s.give(place(to), bytes(to), to, {after}); }
    Vertex take(std::uint32_t from, Vertex after) {
        const Share block = s.in(from);
        return s.take(Steps::received(block.offset), block.bytes, from, {after});
    }
    void keep_own() {
        const Share own = s.in(s.request.rank);
        if (places.empty()) s.copy(place(s.request.rank), Steps::received(own.offset), own.bytes);
    }

    Steps& s;
    std::vector<Place> places;
    Vertex there = kNoVertex;
};

}  // namespace velo::goal::collectives
