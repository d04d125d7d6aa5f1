// What a sender holds back from one receiver whose memory for headers it has filled, and what the receiver
// asks for. A held message leaves in its turn when a header is free again, or out of turn for a receive that
// it is the first to match. Design: design/messages.md, "Headers".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "matching/unexpected_queue.h"
#include "types/messages.h"

namespace velo::messaging {

struct Held : matching::Unexpected {
    velo_message_send* send;
    const std::byte* data;
    std::size_t bytes;
    std::uint64_t id;      // that the receiver knows it by; see awaited_sends.h
    bool offered = false;  // the receiver has yet to say whether it takes it; it stays until then
    Held* older = nullptr;
    Held* younger = nullptr;
};

// The receive that was posted first of those with one pattern.
struct Ask {
    matching::Key pattern;
    std::uint64_t ticket;  // the order of posting
};

class Backlog {
 public:
    Backlog() = default;
    Backlog(const Backlog&) = delete;
    Backlog& operator=(const Backlog&) = delete;
    ~Backlog();

    bool empty() const { return oldest_ == nullptr; }
    Held* oldest() const { return oldest_; }
    void push(std::unique_ptr<Held> message);
    std::unique_ptr<Held> remove(Held* message);
    // The oldest one that the pattern matches, whether it is offered or not.
    Held* find(const matching::Key& pattern) { return static_cast<Held*>(queue_.find(pattern)); }

    // Takes the place of an older one with that pattern.
    void ask(const Ask& ask) { asks_[ask.pattern] = ask.ticket; }
    // Its receive has got a message.
    void answered(const Ask& ask);

    struct Offer {
        Held* message;
        Ask ask;
    };
    // The oldest receive of those that a message with the key matches, if its first match is free. Marks that
    // as offered.
    std::optional<Offer> next_offer(const matching::Key& key);

 private:
    struct Hash {
        std::size_t operator()(const matching::Key& key) const { return key.hash(); }
    };

    matching::UnexpectedQueue queue_;
    Held* oldest_ = nullptr;
    Held* youngest_ = nullptr;
    std::unordered_map<matching::Key, std::uint64_t, Hash> asks_;  // pattern to ticket
};

}  // namespace velo::messaging
