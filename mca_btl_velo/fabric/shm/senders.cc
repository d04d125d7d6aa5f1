#include "fabric/shm/senders.h"

#include <chrono>
#include <thread>

#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::fabric::shm {
namespace {

// Of SegmentHeader::claims. The owner gives entries back, which takes some stores.
constexpr std::uint32_t kVacating = 1U << 31;
constexpr int kVacatingPatienceMs = 1000;

}  // namespace

// Two claimers of one name meet at the same entry: while one of them is at it, entries are taken in order and
// none is given back. A process that is killed here leaves the counter up, and no entry is given back any
// more.
std::optional<flow::PeerIndex> Senders::find_place(std::uint64_t name) {
    // acquire: with the end of kVacating come the entries.
    for (int waited_ms = 0; claims_.fetch_add(1, std::memory_order_acq_rel) & kVacating; ++waited_ms) {
        claims_.fetch_sub(1, std::memory_order_relaxed);
        if (waited_ms > kVacatingPatienceMs)
            throw Failure(VELO_ERR_UNREACHABLE, platform::process_here(owner_.process_name) +
                                                    " died while it tidied up its mailbox");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto place = take_entry(name);
    claims_.fetch_sub(1, std::memory_order_release);
    return place;
}

std::optional<flow::PeerIndex> Senders::take_entry(std::uint64_t name) {
    const auto name_at = [this](flow::PeerIndex i) -> std::atomic<std::uint64_t>& {
        return directory_.entry(i).name;
    };
    const auto read = [&](flow::PeerIndex i) { return name_at(i).load(std::memory_order_acquire); };
    // Those of the job keep their entries; the spare ones are few and in no order.
    const std::uint32_t total = flow_.total_peers();
    if (const auto place = find_ascending(0, flow_.peers, name, read)) return place;
    if (const auto place = find_ascending(total, limic_peers_, name, read)) return place;
    for (flow::PeerIndex i = flow_.peers; i < total; ++i)
        if (read(i) == name) return i;
    for (flow::PeerIndex i = flow_.peers; i < total; ++i) {
        std::uint64_t found = Directory::kFree;
        if (name_at(i).compare_exchange_strong(found, name, std::memory_order_acq_rel) || found == name)
            return i;
    }
    return {};
}

flow::PeerIndex Senders::claim(std::uint64_t name, int patience_ms) {
    for (;; --patience_ms) {
        if (const auto place = find_place(name)) return *place;
        if (patience_ms <= 0 || platform::closed_by_owner(owner_.file)) fail_to_claim(name);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

// acquire and release: what claimers see of the entries is from before or from after.
bool Senders::vacate(flow::PeerIndex index) {
    std::uint32_t nobody = 0;
    if (!claims_.compare_exchange_strong(nobody, kVacating, std::memory_order_acq_rel)) return false;
    directory_.clear(index);
    claims_.fetch_sub(kVacating, std::memory_order_release);
    return true;
}

void Senders::fail_to_claim(std::uint64_t name) const {
    throw Failure(VELO_ERR_UNREACHABLE,
                  "the mailbox of " + platform::process_here(owner_.process_name) +
                      " has no entry left for " + platform::process_text(name) +
                      ": raise btl_velo_spare_peers (now " + std::to_string(flow_.spare_peers) +
                      "), the number of processes of other jobs that it can serve at one time");
}

}  // namespace velo::fabric::shm
