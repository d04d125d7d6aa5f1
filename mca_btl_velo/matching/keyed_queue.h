// Queues by key: entries of one key in the order in which they were pushed; every operation takes the same
// time however many entries there are. Intrusive: nothing is allocated but the table of buckets, which grows
// with the number of different keys.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "matching/key.h"

namespace velo::matching {

// A bucket is a chain of heads, the oldest entries of their keys. The previous entry of a head is the
// youngest one of its key.
template <typename Entry>
struct Hook {
    Entry* previous;
    Entry* next;
    Entry* next_head;  // valid in heads only
};

template <typename Entry, Hook<Entry> Entry::*kHook, Key (*kKeyOf)(const Entry&)>
class KeyedQueue {
 public:
    // The oldest entry of that key, or nullptr.
    Entry* front(const Key& key) const {
        Entry* head = buckets_[bucket_of(key)];
        while (head != nullptr && kKeyOf(*head) != key) head = (head->*kHook).next_head;
        return head;
    }

    static Entry* next(const Entry* entry) { return (entry->*kHook).next; }

    void push(Entry* entry) { push(entry, kKeyOf(*entry)); }
    // The key may still be in registers, where it is to stay.
    void push(Entry* entry, const Key& key) {
        Hook<Entry>& hook = entry->*kHook;
        hook.next = nullptr;
        if (Entry* head = front(key)) {
            Entry*& youngest = (head->*kHook).previous;
            hook.previous = youngest;
            (youngest->*kHook).next = entry;
            youngest = entry;
            return;
        }
        hook.previous = entry;
        Entry*& bucket = buckets_[bucket_of(key)];
        hook.next_head = bucket;
        bucket = entry;
        if (++keys_ > mask_) grow();
    }

    // Takes out the oldest entry of that key, or returns nullptr.
    Entry* pop(const Key& key) {
        Entry** link = &buckets_[bucket_of(key)];
        while (*link != nullptr && kKeyOf(**link) != key) link = &((*link)->*kHook).next_head;
        Entry* head = *link;
        if (head != nullptr) unlink_head(link);
        return head;
    }

    void remove(Entry* entry) {
        Hook<Entry>& hook = entry->*kHook;
        const bool head = (hook.previous->*kHook).next != entry;
        if (head) return remove_head(entry);
        (hook.previous->*kHook).next = hook.next;
        // Not null: the key has a head, which is another entry.
        Entry* follower = hook.next != nullptr ? hook.next : front(kKeyOf(*entry));
        (follower->*kHook).previous = hook.previous;  // NOLINT(clang-analyzer-core.NullDereference)
    }

    template <typename Visit>
    void for_each(Visit visit) const {
        for (Entry* head : buckets_) {
            for (; head != nullptr; head = (head->*kHook).next_head) {
                for (Entry* entry = head; entry != nullptr; entry = next(entry)) visit(entry);
            }
        }
    }

    // The oldest entry of each key.
    template <typename Visit>
    void for_each_front(Visit visit) const {
        for (Entry* head : buckets_) {
            for (; head != nullptr; head = (head->*kHook).next_head) visit(*head);
        }
    }

 private:
    static constexpr std::size_t kBucketsAtFirst = 64;  // a power of two, as always

    std::size_t bucket_of(const Key& key) const { return key.hash() & mask_; }

    void remove_head(Entry* entry) {
        Entry** link = &buckets_[bucket_of(kKeyOf(*entry))];
        while (*link != entry) link = &((*link)->*kHook).next_head;
        unlink_head(link);
    }

    void unlink_head(Entry** link) {
        Hook<Entry>& hook = (*link)->*kHook;
        if (hook.next == nullptr) {
            *link = hook.next_head;
            --keys_;
            return;
        }
        Hook<Entry>& successor = hook.next->*kHook;
        successor.previous = hook.previous;
        successor.next_head = hook.next_head;
        *link = hook.next;
    }

    [[gnu::noinline, gnu::cold]] void grow() {
        std::vector<Entry*> old(2 * buckets_.size(), nullptr);
        old.swap(buckets_);
        mask_ = buckets_.size() - 1;
        for (Entry* head : old) {
            while (head != nullptr) {
                Entry* following = (head->*kHook).next_head;
                Entry*& bucket = buckets_[bucket_of(kKeyOf(*head))];
                (head->*kHook).next_head = bucket;
                bucket = head;
                head = following;
            }
        }
    }

    std::vector<Entry*> buckets_ = std::vector<Entry*>(kBucketsAtFirst, nullptr);
    std::size_t mask_ = kBucketsAtFirst - 1;
    std::size_t keys_ = 0;
};

}  // namespace velo::matching
