#include "rma/dual_copy.h"

namespace velo::rma {

void SharedGet::copy_own_part() {
    // After an error the rest is claimed and left, so that the peer does not go on.
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
    auto range = share.claim_back();
    if (!range) return false;
    if (memory->write(source + range->offset, destination + range->offset, range->bytes) == 0) {
        share.finish(*range);
        return true;
    }
    share.give_up();
    return false;
}

std::optional<unsigned> ShareCells::take() {
    for (unsigned cell = 0; cell < fabric::shm::kShareCells; ++cell) {
        if ((busy_ & 1U << cell) != 0) continue;
        busy_ |= 1U << cell;
        return cell;
    }
    return std::nullopt;
}

}  // namespace velo::rma
