#include "rma/dual_copy.h"

namespace velo::rma {

void SharedGet::copy_own_part() {
    while (auto range = share.claim_front()) {
        if (error == 0) error = memory->read(local + range->offset, remote + range->offset, range->bytes);
    }
}

bool SharedGet::complete() {
    std::uint64_t theirs = share.peers_bytes();
    if (share.helped() == theirs) return true;
    if (!share.failed()) return false;
    std::uint64_t from = bytes - theirs;
    if (error == 0) error = memory->read(local + from, remote + from, theirs);
    return true;
}

bool Help::copy() {
    const auto range = share.claim_back();
    return range && copy(*range);
}

bool Help::copy(const Share::Range& range) {
    if (memory->write(source + range.offset, destination + range.offset, range.bytes) != 0) {
        share.give_up();
        return false;
    }
    share.finish(range);
    completion.result += range.bytes;
    return true;
}

std::optional<unsigned> ShareCells::take(unsigned first, unsigned end) {
    for (unsigned cell = first; cell < end; ++cell) {
        if ((busy_ & 1U << cell) != 0) continue;
        busy_ |= 1U << cell;
        return cell;
    }
    return std::nullopt;
}

}  // namespace velo::rma
