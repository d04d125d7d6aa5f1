// Memory that the engine uses possibly longer than the messenger lives: messages of the messenger itself that
// wait, and what transfers under way fill.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "platform/gate.h"
#include "types/engine.h"
#include "wire/packet.h"

namespace velo::messaging {

class Notes {
 public:
    explicit Notes(bool threads) : mutex_(threads) {}

    // A send of that text, at most a packet's, which is kept until the send is done.
    velo_send* keep(const void* text, std::size_t bytes, std::uint8_t tag) {
        Note& note = add();
        std::memcpy(note.text.data(), text, bytes);
        note.send.part[0] = note.text.data();
        note.send.bytes[0] = bytes;
        note.send.tag = tag;
        note.send.collectable = true;
        note.send.done = [](velo_send* sent, velo_status) { drop(sent); };
        return &note.send;
    }
    static void drop(velo_send* sent) {
        static_assert(offsetof(Note, send) == 0);
        Note& note = *reinterpret_cast<Note*>(sent);
        Notes& owner = *note.owner;
        std::lock_guard held(owner.mutex_);
        owner.list_.erase(note.place);
    }
    std::size_t waiting() const {
        std::lock_guard held(mutex_);
        return list_.size();
    }

    // For velo_message_receive::part.
    void* take_part(std::size_t bytes) {
        auto part = std::make_unique_for_overwrite<std::byte[]>(bytes);
        std::byte* const data = part.get();
        std::lock_guard held(mutex_);
        parts_.emplace(data, std::move(part));
        return data;
    }
    void drop_part(void* part) {
        std::lock_guard held(mutex_);
        parts_.erase(part);
    }

 private:
    struct Note {
        velo_send send;
        std::array<std::byte, wire::kPiggybackOffset> text;
        Notes* owner;
        std::list<Note>::iterator place;
    };
    Note& add() {
        std::lock_guard held(mutex_);
        const auto place = list_.insert(list_.begin(), Note{{}, {}, this, {}});
        place->place = place;
        return *place;
    }

    mutable platform::OptionalMutex mutex_;
    std::list<Note> list_;
    std::unordered_map<void*, std::unique_ptr<std::byte[]>> parts_;
};

}  // namespace velo::messaging
