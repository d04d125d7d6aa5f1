#include "engine/staging/reference_reader.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "platform/cache.h"
#include "platform/copy.h"
#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::engine {

bool ReferenceReader::is_allocated(const fabric::shm::Segment& segment, const wire::Reference& reference) {
    return segment.bytes() > 0 && segment.outbox_plan().holds(reference.place, reference.bytes) &&
           segment.chunk(reference.place).unread.load(std::memory_order_relaxed) == 1;
}

std::byte* ReferenceReader::data(const fabric::shm::Segment& segment, const wire::Reference& reference,
                                 std::uint64_t sender) {
    if (!is_allocated(segment, reference))
        throw Failure(VELO_ERR_PROTOCOL, platform::process_here(sender) + " refers to " +
                                             std::to_string(reference.bytes) + " bytes at offset " +
                                             std::to_string(reference.place) +
                                             " of its outbox, where it has stored none");
    segment.fault_in_chunk(reference.place, reference.bytes);
    return segment.chunk(reference.place).data;
}

// From far those that are read next. From near, which are as quick then, those of the message that went there
// last, in whose place the answer is likely to be stored, if the peer has read them.
void ReferenceReader::fetch_lines(Peer& peer, const std::byte* data, const wire::Reference& reference) const {
    constexpr std::size_t kLinesRead = 32, kLinesStored = 20;
    peer.tells_read(reference.read);
    if (threads_) return;  // what others may be changing is not looked at
    if (peer.proximity.far()) {
        const std::size_t lines = std::min(kLinesRead, (std::size_t{reference.bytes} + 63) / 64);
        for (std::size_t line = 0; line < lines; ++line) platform::prefetch(data + 64 * line);
    } else if (peer.last_reference.bytes > 0 && peer.last_reference.place < own_.outbox_plan().bytes() &&
               peer.has_read_all()) {
        const auto* chunk = reinterpret_cast<const std::byte*>(&own_.chunk(peer.last_reference.place).unread);
        const std::size_t lines =
            std::min<std::size_t>(kLinesStored, 1 + (peer.last_reference.bytes + 63) / 64);
        for (std::size_t line = 0; line < lines; ++line) platform::prefetch_for_write(chunk + 64 * line);
    }
}

// The library's copy reads long messages by the processor's string instruction, and while it does, some
// processors hold up whoever stores into the lines behind.
bool ReferenceReader::counts_as_streamed(Peer& peer, std::size_t bytes) const {
    return bytes >= kLeastCopied && bytes <= kMostCopied && !threads_ && peer.streams_to_us();
}

std::byte* ReferenceReader::copy_of(const std::byte* data, std::size_t bytes) {
    copied_.resize(kMostCopied);
    platform::copy(copied_.data(), data, bytes);
    return copied_.data();
}

// The count comes last: another thread may tell it to the owner at once, who then stores other data there.
void ReferenceReader::release(Peer& peer, const wire::Reference& reference) {
    peer.segment.chunk(reference.place).unread.store(0, std::memory_order_release);
    const std::uint32_t read = peer.references_read.load(std::memory_order_relaxed);
    peer.references_read.store(read + 1, std::memory_order_release);  // what was read comes before
}

}  // namespace velo::engine
