#include "messaging/backlog.h"

#include <utility>

namespace velo::messaging {

using matching::kAnySource;
using matching::kAnyTag;
using matching::Key;

Backlog::~Backlog() {
    for (Held* held = oldest_; held != nullptr;) delete std::exchange(held, held->younger);
}

void Backlog::push(std::unique_ptr<Held> message) {
    Held* held = message.release();
    held->older = youngest_;
    (youngest_ == nullptr ? oldest_ : youngest_->younger) = held;
    youngest_ = held;
    queue_.push(held);
}

std::unique_ptr<Held> Backlog::remove(Held* message) {
    (message->older == nullptr ? oldest_ : message->older->younger) = message->younger;
    (message->younger == nullptr ? youngest_ : message->younger->older) = message->older;
    queue_.remove(message);
    return std::unique_ptr<Held>(message);
}

void Backlog::answered(const Ask& ask) {
    const auto found = asks_.find(ask.pattern);
    if (found != asks_.end() && found->second == ask.ticket) asks_.erase(found);
}

std::optional<Backlog::Offer> Backlog::next_offer(const Key& key) {
    if (asks_.empty()) return std::nullopt;
    const Key patterns[] = {key,
                            {key.context, kAnySource, key.tag},
                            {key.context, key.source, kAnyTag},
                            {key.context, kAnySource, kAnyTag}};
    std::optional<Offer> next;
    for (const Key& pattern : patterns) {
        const auto found = asks_.find(pattern);
        if (found == asks_.end() || (next && next->ask.ticket < found->second)) continue;
        Held* message = find(pattern);
        if (message != nullptr && !message->offered) next = Offer{message, {pattern, found->second}};
    }
    if (next) next->message->offered = true;
    return next;
}

}  // namespace velo::messaging
