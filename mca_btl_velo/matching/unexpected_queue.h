// The messages that no receive has matched yet, oldest first in each of four orders: by all of the key, by
// context and tag, by context and source, by context. So a receive finds its message at once, whatever it
// leaves open.
#pragma once

#include "matching/keyed_queue.h"

namespace velo::matching {

struct Unexpected {
    Key key;
    Hook<Unexpected> exact, any_source, any_tag, anything;
};

class UnexpectedQueue {
 public:
    void push(Unexpected* message) {
        exact_.push(message);
        anything_.push(message);
        if (by_tag_) any_source_.push(message);
        if (by_source_) any_tag_.push(message);
        ++size_;
    }

    // The oldest message that the pattern matches, or nullptr. It stays.
    Unexpected* find(const Key& pattern) {
        if (size_ == 0) return nullptr;
        const bool any_source = pattern.source == kAnySource, any_tag = pattern.tag == kAnyTag;
        if (any_source && any_tag) return anything_.front(pattern);
        if (any_source) {
            if (!by_tag_) index(&any_source_, &by_tag_);
            return any_source_.front(pattern);
        }
        if (any_tag) {
            if (!by_source_) index(&any_tag_, &by_source_);
            return any_tag_.front(pattern);
        }
        return exact_.front(pattern);
    }

    void remove(Unexpected* message) {
        exact_.remove(message);
        anything_.remove(message);
        if (by_tag_) any_source_.remove(message);
        if (by_source_) any_tag_.remove(message);
        --size_;
    }

    // Any message of the context, or nullptr.
    Unexpected* any_of(std::uint32_t context) const {
        Unexpected* message = anything_.front({context, kAnySource, kAnyTag});
        return message != nullptr ? message : anything_.front({context, kAnySource, kReserved});
    }

    // The same that fits, after a look at all messages.
    template <typename Fits>
    Unexpected* find_of(std::uint32_t context, Fits fits) const {
        Unexpected* found = nullptr;
        anything_.for_each([&](Unexpected* message) {
            if (message->key.context == context && fits(message->key)) found = message;
        });
        return found;
    }

    std::size_t size() const { return size_; }

 private:
    // The tag that stands for all negative ones, which kAnyTag does not match.
    static constexpr std::int32_t kReserved = -1;
    static std::int32_t open_tag(const Unexpected& message) {
        return message.key.tag >= 0 ? kAnyTag : kReserved;
    }

    static Key exact_key(const Unexpected& message) { return message.key; }
    static Key any_source_key(const Unexpected& message) {
        return {message.key.context, kAnySource, message.key.tag};
    }
    static Key any_tag_key(const Unexpected& message) {
        return {message.key.context, message.key.source, open_tag(message)};
    }
    static Key anything_key(const Unexpected& message) {
        return {message.key.context, kAnySource, open_tag(message)};
    }

    // The orders that programs seldom ask for are kept from the first time on that one does.
    template <typename Queue>
    void index(Queue* queue, bool* kept) {
        anything_.for_each([queue](Unexpected* message) { queue->push(message); });
        *kept = true;
    }

    KeyedQueue<Unexpected, &Unexpected::exact, exact_key> exact_;
    KeyedQueue<Unexpected, &Unexpected::anything, anything_key> anything_;
    KeyedQueue<Unexpected, &Unexpected::any_source, any_source_key> any_source_;
    KeyedQueue<Unexpected, &Unexpected::any_tag, any_tag_key> any_tag_;
    bool by_tag_ = false, by_source_ = false;  // any_source_, any_tag_ are kept
    std::size_t size_ = 0;
};

}  // namespace velo::matching
