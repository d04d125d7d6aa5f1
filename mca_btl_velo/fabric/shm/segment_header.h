// What lies in a segment besides slots and data: written by its owner, read by its peers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/shm/share_cell.h"
#include "flow/counters.h"
#include "mailbox/layout.h"
#include "parameters/agreement.h"

namespace velo::fabric::shm {

using parameters::Agreement;

// Counters of one process, for the report. Written by the owner.
struct Statistics {
#define VELO_COUNTER(when, kind, name, ...) std::uint64_t name;
#include "types/counters.inc"
    flow::Counters flow;
};

struct SegmentHeader {
    std::uint64_t magic;
    std::uint64_t nonce;
    std::uint64_t owner;
    std::int32_t numa_node;  // that the owner is bound to, -1: several or unknown
    Agreement agreement;
    // Flow control configuration of this mailbox: a sender computes its initial credit from it.
    std::uint32_t peers;
    std::uint32_t spare_peers;
    std::uint32_t data_slots;
    std::uint32_t capacity;
    std::uint64_t directory_offset;
    std::uint64_t slots_offset;
    // The ring of the LiMIC-like path; nothing of it if no peer uses it.
    std::uint32_t limic_peers;
    std::uint32_t limic_slots;
    std::uint64_t limic_offset;
    // What peers read of it by reference; see flow/outbox.h.
    std::uint64_t outbox_bytes;
    std::uint64_t outbox_offset;
    // What is stored ahead of their gets; see flow/deposit_rings.h.
    std::uint64_t deposit_bytes;
    std::uint64_t rings_offset;
    mailbox::Pointers<> pointers;
    mailbox::Pointers<> limic_pointers;
    // Counts the senders that have set their doorbell bits.
    alignas(mailbox::kPointerSpacing) std::atomic<std::uint32_t> rings;
    // Processes that are looking for their entries now, or kVacating.
    std::atomic<std::uint32_t> claims;
    std::uint32_t may_doze;  // the owner sleeps on pointers.doze: whoever stores something wakes it
    std::atomic<std::uint32_t>
        getting;                    // copies of gets that the owner makes at present, each of its threads'
    ShareCell shares[kShareCells];  // of the transfers that this process has started
    alignas(mailbox::kPointerSpacing) Statistics statistics;
    std::atomic<std::uint32_t> statistics_final;  // 1: the owner has closed, `statistics` will not change
};

// Of a deposit: by which number its reader knows it, bytes of the data that have been stored, where the data
// are in the owner's memory, and its ring (offset, bytes); bytes that the reader has taken.
struct alignas(64) DepositHeader {
    std::atomic<std::uint32_t> number;
    std::atomic<std::uint32_t> stored;
    std::uint64_t address;
    std::uint32_t place, ring;
    alignas(64) std::atomic<std::uint32_t> taken;
};

}  // namespace velo::fabric::shm
