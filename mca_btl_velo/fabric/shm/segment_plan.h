// Where each part of a segment lies: computed from its numbers, by its owner and by each peer, which
// compares.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/shm/directory.h"
#include "flow/deposit_rings.h"
#include "flow/outbox.h"
#include "flow/policy_config.h"
#include "parameters/agreement.h"

namespace velo::fabric::shm {

class SegmentPlan {
 public:
    static constexpr std::uint32_t kMostSlots = 1U << 24;

    struct Numbers {
        flow::PolicyConfig flow;
        std::uint64_t capacity;  // slots of the mailbox, as its policy plans it
        std::uint32_t limic_peers, limic_slots;
        std::uint64_t outbox_bytes;   // at most flow::OutboxPlan::kMostBytes; 0: none
        std::uint64_t deposit_bytes;  // of rotating memory, at most flow::RotatingMemory::kMostBytes; 0: none

        // Of another process: they are no nonsense.
        bool are_sane() const;
    };
    // The slots of a mailbox whose policy agrees on that.
    static std::uint64_t planned_slots(const parameters::Agreement& agreement,
                                       const flow::PolicyConfig& flow);

    SegmentPlan() = default;
    // Numbers that are sane.
    explicit SegmentPlan(const Numbers& numbers);

    static std::size_t directory_offset();
    std::uint32_t entries() const { return numbers.flow.total_peers() + numbers.limic_peers; }
    std::uint32_t homes() const;
    std::size_t backed_bytes() const;
    std::size_t total_bytes() const;
    // Of it no more is mapped than what comes before the outbox.
    void leave_out_outbox() {
        outbox = flow::OutboxPlan();
        deposits = flow::DepositPlan();
    }

    Numbers numbers{};
    std::size_t doorbell_offset = 0, slots_offset = 0, limic_offset = 0, outbox_offset = 0,
                deposits_offset = 0, rings_offset = 0;
    flow::OutboxPlan outbox;
    flow::DepositPlan deposits;
};

}  // namespace velo::fabric::shm
