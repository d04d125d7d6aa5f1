#include "engine/staging/reference_reader.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "platform/cache.h"
#include "platform/copy.h"
#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::engine {

bool ReferenceReader::is_chunk(const fabric::shm::Segment& segment, const wire::Reference& reference) {
    return segment.bytes() > 0 && segment.outbox_plan().holds(reference.place, reference.bytes);
}

std::byte* ReferenceReader::data(const fabric::shm::Segment& segment, const wire::Reference& reference,
                                 std::uint64_t sender) {
    if (!is_chunk(segment, reference))
        throw Failure(VELO_ERR_PROTOCOL, platform::process_here(sender) + " refers to " +
                                             std::to_string(reference.bytes) + " bytes at offset " +
                                             std::to_string(reference.place) +
                                             " of its outbox, where no such chunk is");
    segment.fault_in_chunk(reference.place, reference.bytes);
    return segment.chunk(reference.place);
}

// From far those that are read next. From near, which are as quick then, those of the message that went there
// last, in whose place the answer is likely to be stored, if the peer has read them.
void ReferenceReader::fetch_lines(Peer& peer, const std::byte* data, const wire::Reference& reference) const {
    constexpr std::size_t kLinesRead = 32, kLinesStored = 20;
    peer.sent_references.tell(reference.read);
    if (threads_) return;  // what others may be changing is not looked at
    const std::size_t read = std::min(kLinesRead, (std::size_t{reference.bytes} + 63) / 64);
    for (std::size_t line = 0; line < read; ++line) platform::prefetch(data + 64 * line);
    if (peer.proximity.far()) return;
    const wire::Reference last = peer.sent_references.read_last();
    if (last.bytes == 0 || last.place >= own_.outbox_plan().bytes()) return;
    const std::byte* const chunk = own_.chunk(last.place);
    const std::size_t lines = std::min<std::size_t>(kLinesStored, (last.bytes + 63) / 64);
    for (std::size_t line = 0; line < lines; ++line) platform::prefetch_for_write(chunk + 64 * line);
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

// release: the owner, who learns the count by a look or by a REF of another thread, stores other data there.
void ReferenceReader::release(Peer& peer) const {
    const std::uint32_t read = peer.references_read.load(std::memory_order_relaxed) + 1;
    peer.references_read.store(read, std::memory_order_release);
    own_.references_read(peer.index).store(read, std::memory_order_release);
}

}  // namespace velo::engine
