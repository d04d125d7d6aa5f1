// All ranks of a program in one process, with memory and messages, under a seeded interleaving: a send may
// end at once with a copy of its data, or read them when it is received; local operations wait as long as
// they like. Messages of a pair of ranks keep their order, nothing else is kept.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "collectives/goal/exchange.h"
#include "collectives/goal/program.h"
#include "collectives/goal/run.h"

namespace velo::goal {

using Bytes = std::vector<std::byte>;

class Party : Executor {
 public:
    Party(const Program& program, unsigned seed) : program_(program), random_(seed) {
        for (const Schedule& schedule : program.schedules) {
            runs_.emplace_back(schedule);
            arguments_.emplace_back();
            scratch_.emplace_back(schedule.scratch_bytes(), std::byte{0xdd});
        }
    }
    Bytes& argument(std::uint32_t rank, Space space) { return arguments_[rank][space]; }

    // False: not all ranks have come to their end.
    bool run() {
        for (std::uint32_t rank = 0; rank < program_.size(); ++rank) {
            Memory& memory = runs_[rank].memory();
            for (auto& [space, bytes] : arguments_[rank]) memory.base[space] = bytes.data();
            memory.base[kScratch] = scratch_[rank].data();
            late_.push_back({rank, kNoVertex});
        }
        // Late: a rank that has not begun, a local operation, or the oldest message of a pair.
        while (!late_.empty() || !channels_.empty()) {
            const std::size_t choice = random_() % (late_.size() + channels_.size());
            if (choice < late_.size()) {
                const auto [rank, v] = late_[choice];
                late_[choice] = late_.back();
                late_.pop_back();
                if (v != kNoVertex) perform(rank, v);
                proceed(rank);
            } else {
                deliver(std::next(channels_.begin(), static_cast<std::ptrdiff_t>(choice - late_.size())));
            }
        }
        return std::ranges::all_of(runs_, &Run::done);
    }
    std::size_t unmatched() const { return exchange_.unmatched(); }
    std::size_t messages() const { return messages_; }

 private:
    struct Parcel {
        Exchange::Message message;
        bool at_once;
        Bytes data;
    };
    using Channel = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Parcel>>;

    void proceed(std::uint32_t rank) {
        rank_ = rank;
        drain(runs_[rank], *this);
    }

    void send(Run& run, Vertex v, const Operation& o) override {
        ++messages_;
        Parcel parcel{{rank_, o.tag, v, o.bytes}, random_() % 2 == 0, {}};
        if (parcel.at_once) {
            parcel.data = gathered(run, o);
            run.finished(v);
        }
        channels_[{rank_, o.peer}].push_back(std::move(parcel));
    }
    void receive(Run& run, Vertex v, const Operation& o) override {
        scatter(run, o, Bytes(o.bytes, std::byte{0xcc}));
        if (const auto message = exchange_.receive(rank_, v, o.peer, o.tag)) {
            const std::uint32_t rank = rank_;
            hand_over(*message, rank, v);
            rank_ = rank;
        }
    }
    void work(Run&, Vertex v, const Operation&) override { late_.push_back({rank_, v}); }

    void perform(std::uint32_t rank, Vertex v) {
        Run& run = runs_[rank];
        const Operation& o = run.schedule().operation(v);
        if (o.kind == Kind::kCombine)
            combine(run.schedule().combination(o), run.schedule().pieces(), run.memory(), 0);
        run.finished(v);
    }

    void deliver(Channel::iterator channel) {
        const std::uint32_t to = channel->first.second;
        Parcel parcel = std::move(channel->second.front());
        channel->second.erase(channel->second.begin());
        if (channel->second.empty()) channels_.erase(channel);
        const auto waiting = exchange_.arrive(to, parcel.message);
        const Exchange::Message message = parcel.message;
        arrived_[{message.source, message.send}] = std::move(parcel);
        if (!waiting) return;
        hand_over(message, to, *waiting);
        proceed(to);
    }

    void hand_over(const Exchange::Message& message, std::uint32_t to, Vertex v) {
        const auto arrived = arrived_.find({message.source, message.send});
        Run& sender = runs_[message.source];
        const Parcel parcel = std::move(arrived->second);
        arrived_.erase(arrived);
        const Operation& o = runs_[to].schedule().operation(v);
        if (o.bytes != message.bytes) throw std::runtime_error("a message and its receive differ in size");
        scatter(runs_[to], o,
                parcel.at_once ? parcel.data : gathered(sender, sender.schedule().operation(message.send)));
        runs_[to].finished(v);
        if (parcel.at_once) return;
        sender.finished(message.send);
        late_.push_back({message.source, kNoVertex});
    }

    template <typename Visit>
    static void each_piece(Run& run, const Operation& o, Visit visit) {
        if (o.pieces == 0 && o.bytes > 0) visit(run.memory().at({o.offset, o.space}), o.bytes);
        if (o.pieces > 0)
            for (const Piece& piece : run.schedule().pieces(o))
                if (piece.bytes > 0) visit(run.memory().at(piece.place), piece.bytes);
    }
    static Bytes gathered(Run& run, const Operation& o) {
        Bytes data;
        each_piece(run, o,
                   [&](std::byte* at, std::uint64_t bytes) { data.insert(data.end(), at, at + bytes); });
        return data;
    }
    static void scatter(Run& run, const Operation& o, const Bytes& data) {
        std::uint64_t done = 0;
        each_piece(run, o, [&](std::byte* at, std::uint64_t bytes) {
            std::memcpy(at, data.data() + done, bytes);
            done += bytes;
        });
    }

    const Program& program_;
    std::mt19937 random_;
    std::vector<Run> runs_;
    std::vector<std::map<Space, Bytes>> arguments_;
    std::vector<Bytes> scratch_;
    std::vector<std::pair<std::uint32_t, Vertex>> late_;
    Channel channels_;
    std::map<std::pair<std::uint32_t, Vertex>, Parcel> arrived_;
    Exchange exchange_;
    std::uint32_t rank_ = 0;
    std::size_t messages_ = 0;
};

}  // namespace velo::goal
