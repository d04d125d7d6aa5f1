// The messages that no receive has matched yet, oldest first in each of four orders: by all of the key, by
// context and tag, by context and source, by context. So a receive finds its message at once, whatever it
// leaves open. Orders that programs seldom ask for are kept from the first time on that one does.
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
        if (by_context_)
            anything_.push(message);
        else
            link(message);
        if (by_tag_) any_source_.push(message);
        if (by_source_) any_tag_.push(message);
        ++size_;
    }

    // The oldest message that the pattern matches, or nullptr. It stays.
    Unexpected* find(const Key& pattern) {
        if (size_ == 0) return nullptr;
        const bool any_source = pattern.source == kAnySource, any_tag = pattern.tag == kAnyTag;
        if (any_source && any_tag) return by_context().front(pattern);
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

    // The same, taken out.
    Unexpected* take(const Key& pattern) {
        if (pattern.source != kAnySource && pattern.tag != kAnyTag) {
            Unexpected* message = size_ == 0 ? nullptr : exact_.pop(pattern);
            if (message != nullptr) forget(message);
            return message;
        }
        Unexpected* message = find(pattern);
        if (message != nullptr) remove(message);
        return message;
    }

    void remove(Unexpected* message) {
        exact_.remove(message);
        forget(message);
    }

    // Any message of the context, or nullptr.
    Unexpected* any_of(std::uint32_t context) {
        if (size_ == 0) return nullptr;
        Unexpected* message = by_context().front({context, kAnySource, kAnyTag});
        return message != nullptr ? message : by_context().front({context, kAnySource, kReserved});
    }

    // The same that fits, after a look at all messages.
    template <typename Fits>
    Unexpected* find_of(std::uint32_t context, Fits fits) const {
        Unexpected* found = nullptr;
        for_each([&](Unexpected* message) {
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

    // All but exact_.
    void forget(Unexpected* message) {
        if (by_context_)
            anything_.remove(message);
        else
            unlink(message);
        if (by_tag_) any_source_.remove(message);
        if (by_source_) any_tag_.remove(message);
        --size_;
    }

    // Until somebody asks for anything of a context, its hooks hold one list of all.
    void link(Unexpected* message) {
        message->anything = {newest_, nullptr, nullptr};
        (newest_ == nullptr ? oldest_ : newest_->anything.next) = message;
        newest_ = message;
    }
    void unlink(Unexpected* message) {
        const Hook<Unexpected>& hook = message->anything;
        (hook.previous == nullptr ? oldest_ : hook.previous->anything.next) = hook.next;
        (hook.next == nullptr ? newest_ : hook.next->anything.previous) = hook.previous;
    }
    template <typename Visit>
    void for_each(Visit visit) const {
        if (by_context_) return anything_.for_each(visit);
        for (Unexpected* message = oldest_; message != nullptr;) {
            Unexpected* const next = message->anything.next;  // the visit may use the hook
            visit(message);
            message = next;
        }
    }
    template <typename Queue>
    void index(Queue* queue, bool* kept) {
        for_each([queue](Unexpected* message) { queue->push(message); });
        *kept = true;
    }
    using ByContext = KeyedQueue<Unexpected, &Unexpected::anything, anything_key>;
    ByContext& by_context() {
        if (!by_context_) index(&anything_, &by_context_);
        return anything_;
    }

    KeyedQueue<Unexpected, &Unexpected::exact, exact_key> exact_;
    ByContext anything_;
    KeyedQueue<Unexpected, &Unexpected::any_source, any_source_key> any_source_;
    KeyedQueue<Unexpected, &Unexpected::any_tag, any_tag_key> any_tag_;
    bool by_context_ = false, by_tag_ = false, by_source_ = false;  // which of the latter three are kept
    Unexpected *oldest_ = nullptr, *newest_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace velo::matching
