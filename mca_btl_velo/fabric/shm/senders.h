// The senders of a segment's mailbox: each has an entry in the directory, by which it is known there.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "fabric/shm/address.h"
#include "fabric/shm/directory.h"
#include "flow/policy_config.h"

namespace velo::fabric::shm {

// A view, as Doorbell.
class Senders {
 public:
    Senders(const Address& owner, const flow::PolicyConfig& flow, std::uint32_t limic_peers,
            std::atomic<std::uint32_t>& claims, const Directory& directory)
        : owner_(owner), flow_(flow), limic_peers_(limic_peers), claims_(claims), directory_(directory) {}

    // The index of process `name`; takes a spare entry for a stranger. nullopt if there is none left. Safe
    // against the owner and other senders doing the same. Throws Failure if the owner has died in `vacate`.
    std::optional<flow::PeerIndex> find_place(std::uint64_t name);
    // The same, for another process than the owner, who gives back the entries of ended processes: waits for
    // that a while. Throws Failure.
    flow::PeerIndex claim(std::uint64_t name, int patience_ms);
    [[noreturn]] void fail_to_claim(std::uint64_t name) const;
    // Owner: the entry of a stranger that has ended is free. False while somebody looks for an entry.
    bool vacate(flow::PeerIndex index);
    // The name of that sender; Directory::kFree while the place is nobody's.
    std::uint64_t name(flow::PeerIndex index) const {
        return directory_.entry(index).name.load(std::memory_order_relaxed);
    }
    // See Directory.
    void introduce(flow::PeerIndex index, const Address& sender) { directory_.introduce(index, sender); }
    bool is_introduced(flow::PeerIndex index) const { return directory_.is_introduced(index); }
    void will_read(flow::PeerIndex index) const { directory_.will_read(index); }
    bool reads(flow::PeerIndex index) const { return directory_.reads(index); }
    std::optional<Address> introduced(flow::PeerIndex index) const {
        return directory_.introduced(index, owner_.agreement);
    }

 private:
    std::optional<flow::PeerIndex> take_entry(std::uint64_t name);

    const Address& owner_;
    const flow::PolicyConfig& flow_;
    std::uint32_t limic_peers_;
    std::atomic<std::uint32_t>& claims_;  // SegmentHeader::claims
    Directory directory_;
};

}  // namespace velo::fabric::shm
