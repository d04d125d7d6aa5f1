// What a small message needs of a messenger, inline from the C interface down to the mailbox.
#pragma once

#include <array>
#include <bit>
#include <new>

#include "engine/send_now.h"
#include "messaging/messenger.h"

namespace velo::messaging {

// Two words, because the header is fetched as such in a moment.
inline Header header_of(matching::Key key, std::uint16_t returned, Kind kind) {
    static_assert(std::endian::native == std::endian::little);
    const std::array<std::uint64_t, 2> words{
        std::uint64_t{static_cast<std::uint32_t>(key.source)} << 32 | key.context,
        static_cast<std::uint64_t>(kind) << 48 | std::uint64_t{returned} << 32 |
            static_cast<std::uint32_t>(key.tag)};
    return std::bit_cast<Header>(words);
}

inline bool Messenger::try_send_fast(Peer& to, matching::Key key, const std::byte* data,
                                     std::size_t bytes) noexcept {
    constexpr auto packet = [] [[gnu::always_inline]] (engine::Engine & engine, Peer & peer,
                                                       const fabric::MessageView& message) {
        return engine.try_send_fast(peer, engine::kSinkTag, message);
    };
    if (bytes > wire::kPayloadBytes - sizeof(Header)) return try_send_longer_fast(to, key, data, bytes);
    return send_by(packet, to, key, data, bytes);
}

template <typename TrySend>
inline bool Messenger::send_by(TrySend try_send, Peer& to, matching::Key key, const std::byte* data,
                               std::size_t bytes) noexcept {
    if (!to.is_plain() || !shares_.knows(to) || bytes > eager_limit_) return false;
    Shares::Share& share = shares_.known(to);
    const std::uint32_t cells = cells_for(bytes);
    if (cells > share.there || share.owed > UINT16_MAX || share.holds) return false;
    const Header header = header_of(key, static_cast<std::uint16_t>(share.owed), Kind::kEager);
    if (!try_send(engine_, to, {{reinterpret_cast<const std::byte*>(&header), data}, {sizeof header, bytes}}))
        return false;
    share.there -= cells;
    share.owed = 0;
    ++state_.eager;
    return true;
}

inline void Messenger::receive(matching::Key pattern, velo_message_receive* receive, CopyBy by) {
    receive->turn = kWaiting;
    receive->announced = by == CopyBy::kReader ? kByOneself : 0;
    Parked* message;
    {
        std::lock_guard lock(mutex_);
        message = unmatched_.empty() ? nullptr : unmatched_.take(in_memory(pattern));
        if (message == nullptr) {
            auto* posted = new (posted_of(receive)) matching::Posted;
            posted_.push(posted, pattern);
            if (heeds_posted_) [[unlikely]]
                heed(*posted, receive);
            return;
        }
    }
    consume(message, receive);
}

}  // namespace velo::messaging
