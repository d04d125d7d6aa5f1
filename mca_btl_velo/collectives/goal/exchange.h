// Messages and receives of all ranks of a program, where they are simulated or checked in one process: which
// receive gets which message. As in MPI: receives in the order of their starts, messages in that of arrival.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "collectives/goal/operation.h"
#include "matching/posted_queue.h"
#include "matching/unexpected_queue.h"

namespace velo::goal {

class Exchange {
 public:
    struct Message {
        std::uint32_t source = 0;
        std::uint32_t tag = 0;
        Vertex send = kNoVertex;
        std::uint64_t bytes = 0;
    };

    // A receive of `rank` starts: takes the oldest message that it matches, or waits for one. `source` and
    // `tag` may be kAny.
    std::optional<Message> receive(std::uint32_t rank, Vertex v, std::uint32_t source, std::uint32_t tag) {
        const matching::Key pattern = key(rank, source, tag);
        if (matching::Unexpected* found = unexpected_.find(pattern)) {
            unexpected_.remove(found);
            auto* kept = static_cast<Kept*>(found);
            free_kept_.push_back(kept);
            return kept->message;
        }
        Waiting* waiting = fresh(waiting_, free_waiting_);
        waiting->receive = v;
        posted_.push(waiting, pattern);
        return std::nullopt;
    }

    // A message comes to `rank`: takes the receive that has waited longest of those that match, or is kept.
    std::optional<Vertex> arrive(std::uint32_t rank, const Message& message) {
        const matching::Key of = key(rank, message.source, message.tag);
        if (matching::Posted* found = posted_.match(of)) {
            auto* waiting = static_cast<Waiting*>(found);
            free_waiting_.push_back(waiting);
            return waiting->receive;
        }
        Kept* kept = fresh(kept_, free_kept_);
        kept->key = of;
        kept->message = message;
        unexpected_.push(kept);
        return std::nullopt;
    }

    std::size_t waiting() const { return posted_.size(); }
    std::size_t unmatched() const { return unexpected_.size(); }

 private:
    struct Waiting : matching::Posted {
        Vertex receive;
    };
    struct Kept : matching::Unexpected {
        Message message;
    };

    template <typename Entry>
    static Entry* fresh(std::deque<Entry>& all, std::vector<Entry*>& free) {
        if (free.empty()) return &all.emplace_back();
        Entry* entry = free.back();
        free.pop_back();
        return entry;
    }

    matching::Key key(std::uint32_t rank, std::uint32_t source, std::uint32_t tag) {
        return {rank, source == kAny ? matching::kAnySource : static_cast<std::int32_t>(source), tag_of(tag)};
    }
    // Tags of keys have 31 bits: the larger ones are numbered as they come.
    std::int32_t tag_of(std::uint32_t tag) {
        constexpr std::uint32_t kNumbered = 1U << 30;
        if (tag == kAny) return matching::kAnyTag;
        if (tag < kNumbered) return static_cast<std::int32_t>(tag);
        return large_tags_.try_emplace(tag, static_cast<std::int32_t>(kNumbered + large_tags_.size()))
            .first->second;
    }

    matching::PostedQueue posted_;
    matching::UnexpectedQueue unexpected_;
    std::deque<Waiting> waiting_;
    std::deque<Kept> kept_;
    std::vector<Waiting*> free_waiting_;
    std::vector<Kept*> free_kept_;
    std::unordered_map<std::uint32_t, std::int32_t> large_tags_;
};

}  // namespace velo::goal
