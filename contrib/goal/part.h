// One rank's schedule, made anew through goal.h over memory of its own.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/goal/schedule.h"
#include "goal.h"

namespace velo::goal {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Part {
 public:
    // With stamps it takes the times of its operations.
    Part(GOAL_Group group, const Schedule& schedule, double calculations, bool stamps = false)
        : schedule_(schedule), graph_(GOAL_CreateGraph_r(group)) {
        make_room();
        spins_.reserve(schedule.count());
        for (Vertex v = 0; v < schedule.count(); ++v) add(schedule.operation(v), calculations);
        for (Vertex v = 0; v < schedule.count(); ++v) {
            for (const Vertex d : schedule.dependents(v)) GOAL_Requires(graph_, v, d);
            for (const Vertex d : schedule.start_dependents(v)) GOAL_RequiresStart(graph_, v, d);
        }
        if (stamps) stamp_all();
        compiled_ = GOAL_Compile(graph_);
        GOAL_FreeGraph(graph_);
    }
    ~Part() { GOAL_FreeSchedule(compiled_); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    GOAL_Schedule compiled() const { return compiled_; }
    std::uint64_t sent_bytes() const { return sent_bytes_; }
    // Of the last run, seconds: when operation v had been started, and when it had finished, at 2v and 2v
    // + 1.
    const std::vector<double>& stamps() const { return stamps_; }
    double calculated_s() const {
        double ns = 0;
        for (const double spin : spins_) ns += spin;
        return ns / 1e9;
    }

 private:
    // Addresses and lengths, as the vector forms take them.
    struct Pieces {
        std::vector<void*> addresses;
        std::vector<int> lengths;

        void add(std::byte* at, std::uint64_t bytes) {
            do {
                const auto part = static_cast<int>(std::min<std::uint64_t>(bytes, INT_MAX));
                addresses.push_back(at);
                lengths.push_back(part);
                at += part;
                bytes -= static_cast<std::uint64_t>(part);
            } while (bytes > 0);
        }
        int count() const { return static_cast<int>(lengths.size()); }
    };

    static void spin(void* ns) {
        const Clock::time_point begin = Clock::now();
        const double wanted = *static_cast<const double*>(ns) / 1e9;
        while (seconds_since(begin) < wanted) {
        }
    }
    static void nothing(void*) {}

    // What is received nowhere goes past what is sent from nowhere.
    static std::size_t room_of(Space space, bool written) {
        return space == kNowhere && written ? kSpaces + std::size_t{1} : space;
    }
    template <typename Function>
    void each_piece(std::uint64_t offset, std::uint32_t pieces, Space space, std::uint64_t bytes,
                    Function function) const {
        if (pieces == 0) function(Piece{{offset, space}, bytes});
        for (std::uint32_t i = 0; i < pieces; ++i) function(schedule_.pieces()[offset + i]);
    }
    template <typename Function>
    void each_buffer(const Operation& o, Function function) const {
        if (o.communicates())
            each_piece(o.offset, o.pieces, o.space, o.bytes,
                       [&](const Piece& piece) { function(piece, o.kind == Kind::kReceive); });
        if (o.kind != Kind::kCombine) return;
        const Combination& c = schedule_.combination(o);
        for (const Operand* operand : {&c.first, &c.second, &c.result})
            each_piece(operand->offset, operand->pieces, operand->space, c.bytes(),
                       [&](const Piece& piece) { function(piece, operand == &c.result); });
    }

    // Operations of the schedule have the numbers that they have in the graph.
    void stamp_all() {
        stamps_.resize(std::size_t{2} * schedule_.count());
        const auto stamp = [&](std::size_t i) {
            return GOAL_LocalOp(graph_, nullptr, nullptr, &stamps_[i], GOAL_WTIME, GOAL_FLOAT, 64, 1);
        };
        for (Vertex v = 0; v < schedule_.count(); ++v) {
            GOAL_RequiresStart(graph_, v, stamp(std::size_t{2} * v));
            GOAL_Requires(graph_, v, stamp(std::size_t{2} * v + 1));
        }
    }

    void make_room() {
        std::array<std::uint64_t, kSpaces + 2> bytes{};
        for (const Operation& o : schedule_.operations())
            each_buffer(o, [&](const Piece& piece, bool written) {
                std::uint64_t& room = bytes[room_of(piece.place.space, written)];
                room = std::max(room, piece.place.offset + piece.bytes);
            });
        for (std::size_t i = 0; i < bytes.size(); ++i) memory_[i].resize(bytes[i] + 1);
    }

    Pieces pieces(std::uint64_t offset, std::uint32_t count, Space space, std::uint64_t bytes, bool written) {
        Pieces list;
        each_piece(offset, count, space, bytes, [&](const Piece& piece) {
            list.add(memory_[room_of(piece.place.space, written)].data() + piece.place.offset, piece.bytes);
        });
        return list;
    }

    static int tag_of(std::uint32_t tag) {
        if (tag > INT_MAX && tag != kAny)
            throw std::runtime_error("tag " + std::to_string(tag) + " exceeds " + std::to_string(INT_MAX));
        return static_cast<int>(tag);
    }
    static_assert(static_cast<int>(kAny) == GOAL_ANY_SOURCE && static_cast<int>(kAny) == GOAL_ANY_TAG);

    void add(const Operation& o, double calculations) {
        switch (o.kind) {
            case Kind::kSend:
            case Kind::kReceive: {
                const bool sends = o.kind == Kind::kSend;
                Pieces p = pieces(o.offset, o.pieces, o.space, o.bytes, !sends);
                (sends ? GOAL_SendVec : GOAL_RecvVec)(graph_, p.addresses.data(), p.lengths.data(), p.count(),
                                                      static_cast<int>(o.peer), tag_of(o.tag),
                                                      GOAL_USERSPACE);
                if (sends) sent_bytes_ += o.bytes;
                break;
            }
            case Kind::kCalculate:
                spins_.push_back(static_cast<double>(o.bytes) * calculations);
                GOAL_Call(graph_, spins_.back() > 0 ? spin : nothing, &spins_.back());
                break;
            case Kind::kCombine: {
                const Combination& c = schedule_.combination(o);
                const auto list = [&](const Operand& of, bool written) {
                    return pieces(of.offset, of.pieces, of.space, c.bytes(), written);
                };
                Pieces a = list(c.first, false), b = list(c.second, false), z = list(c.result, true);
                GOAL_LocalOpVec(graph_, a.addresses.data(), a.lengths.data(), a.count(), b.addresses.data(),
                                b.lengths.data(), b.count(), z.addresses.data(), z.lengths.data(), z.count(),
                                static_cast<char>(c.type), static_cast<char>(c.width),
                                static_cast<char>(c.op), GOAL_USERSPACE, GOAL_USERSPACE, GOAL_USERSPACE);
                break;
            }
            case Kind::kCall:
                throw std::runtime_error("a call to a function of a program");
        }
    }

    const Schedule& schedule_;
    GOAL_Graph graph_;
    GOAL_Schedule compiled_ = nullptr;
    std::array<std::vector<std::byte>, kSpaces + 2> memory_;  // by space; what nobody looks at at the end
    std::vector<double> stamps_;
    std::vector<double> spins_;  // nanoseconds
    std::uint64_t sent_bytes_ = 0;
};

}  // namespace velo::goal
