// A process that stores whatever it likes into the mailbox of an engine: what it may store in the state that
// the pair is in is for the engine to find out.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "api/velo.h"
#include "engine/engine.h"
#include "engine_party.h"
#include "fabric/shm/segment.h"
#include "rma/message.h"

namespace velo::test {

class LyingPeer {
 public:
    // `source`: whom it claims to be, an index in the victim's directory.
    explicit LyingPeer(velo_engine* victim, std::uint32_t source = 0)
        : segment_(segment_of(victim)), source_(source) {
#ifdef VELO_CHECKED
        engine::Engine::violations_abort = false;
#endif
    }
    ~LyingPeer() {
#ifdef VELO_CHECKED
        engine::Engine::violations_abort = true;
#endif
    }
    LyingPeer(const LyingPeer&) = delete;

    // Slots of the victim's mailbox.
    std::uint32_t capacity() const {
        return segment_.writer().capacity();
    }

    void store(wire::PacketKind kind, std::uint8_t flags, std::uint16_t length, std::uint32_t value = 0) {
        const std::string_view payload(reinterpret_cast<const char*>(&value), sizeof value);
        publish(wire::Header{kind, flags, 1, length, 0, source_}, 1, payload);
    }
    // A run with this payload.
    void store(std::uint8_t flags, std::uint8_t tag, std::string_view payload) {
        const auto length = static_cast<std::uint16_t>(payload.size());
        publish(wire::Header{wire::PacketKind::kData, flags, tag, length, 0, source_},
                wire::packets_in_run(payload.size()), payload);
    }
    // A message of the engine's own with as much data, in one run; `length` of header and data if it is not
    // what they have.
    void store(const rma::MessageHeader& header, std::size_t data_bytes = 0, std::size_t length = SIZE_MAX) {
        std::string text(reinterpret_cast<const char*>(&header), sizeof header);
        text.append(data_bytes, 'L');
        store(wire::kInternal | wire::kFirst | wire::kLast, 0,
              std::string_view(text).substr(0, std::min(length, text.size())));
    }

 private:
    void publish(const wire::Header& header, std::uint32_t packets, std::string_view payload) {
        auto writer = segment_.writer();
        const mailbox::Cursor at = writer.reserve(packets);
        const std::size_t head = std::min(payload.size(), writer.contiguous(at));
        std::memcpy(writer.payload(at), payload.data(), head);
        std::memcpy(writer.start(), payload.data() + head, payload.size() - head);
        writer.publish(at, header);
    }

    fabric::shm::Segment segment_;
    std::uint32_t source_;
};

}  // namespace velo::test
