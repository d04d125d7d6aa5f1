// One process's shared memory segment: what its peers must know about it, the directory of its senders, its
// mailbox.
//
//   SegmentHeader | Directory | doorbell bits | Slot[capacity] | Slot[limic slots] | outbox | DepositHeader[]
//   | rings of deposits
//
// The rings have no memory before `provide` has given them some.
//
// Nothing read from another process's segment is trusted before `attach` has checked it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "fabric/shm/address.h"
#include "fabric/shm/directory.h"
#include "fabric/shm/doorbell.h"
#include "fabric/shm/share_cell.h"
#include "flow/counters.h"
#include "flow/deposit_rings.h"
#include "flow/outbox.h"
#include "flow/policy_config.h"
#include "mailbox/reader.h"
#include "mailbox/writer.h"
#include "parameters/agreement.h"
#include "platform/shared_file.h"

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

// A chunk of an outbox: its header, at the begin of a line, and the data.
struct OutboxChunk {
    std::atomic<std::uint32_t>& unread;  // 1: lent. The reader stores 0, with release, when it is done
    std::byte* data;
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

class Segment {
 public:
    static constexpr std::uint32_t kMostSlots = 1U << 24;
    // With nested page tables a first access takes .1 us, without 6.5: docs/measured/routes.md.
    static constexpr std::uint64_t kSlowPageNs = 2000;

    struct Layout {
        std::uint64_t owner;
        Agreement agreement;
        flow::PolicyConfig flow;          // with a plan of at most kMostSlots
        const std::uint64_t* node_peers;  // ascending names for the first flow.peers entries of the directory
        const std::uint64_t* limic_peers;  // the same for the last entries
        std::uint32_t limic_peer_count;
        std::uint32_t limic_slots;
        std::int64_t xpmem_segment;   // see Address
        std::uint64_t outbox_bytes;   // at most flow::OutboxPlan::kMostBytes; 0: none
        std::uint64_t deposit_bytes;  // in turn, at most flow::InTurn::kMostBytes; 0: none
    };

    // `probe`: see Address. Throws Failure.
    static Segment create(const std::string& directory, const Layout& layout, std::uint64_t* probe);
    // Attaches to the segment at `address` and validates it; without its outbox where there is no address
    // space for that. `at_once`: with the pages of what has memory. Throws Failure.
    static Segment attach(const Address& address, bool at_once = true);

    const Address& address() const { return address_; }
    SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(file_.data()); }
    // A copy made at attach, after validation: what the peer writes there later has no effect.
    const flow::PolicyConfig& flow() const { return flow_; }
    std::size_t bytes() const { return file_.bytes(); }
    std::uint64_t used_bytes() const { return file_.used_bytes(); }
    platform::SharedFile& file() { return file_; }

    std::uint32_t limic_slots() const { return limic_slots_; }
    // Of what is mapped.
    const flow::OutboxPlan& outbox_plan() const { return outbox_plan_; }
    // At a place that the plan holds.
    OutboxChunk chunk(std::uint32_t place) const {
        std::byte* const outbox = file_.data() + outbox_offset_;
        return {*reinterpret_cast<std::atomic<std::uint32_t>*>(outbox + place),
                outbox + outbox_plan_.data_of(place)};
    }
    // Owner: the reader of what was lent there is done with it.
    bool is_read(std::uint32_t place) const {
        return chunk(place).unread.load(std::memory_order_acquire) == 0;
    }
    const flow::DepositPlan& deposit_plan() const { return deposit_plan_; }
    // Of a ring that the plan has.
    DepositHeader& deposit_header(std::uint32_t ring) const {
        return reinterpret_cast<DepositHeader*>(file_.data() + deposits_offset_)[ring];
    }
    // At a place that the plan holds.
    std::byte* ring_data(std::uint32_t place) const { return file_.data() + rings_offset_ + place; }
    // The pages of the first `end` bytes of what is cut in turn are mapped many at once, and not each with
    // its first use.
    void fault_in_turn(std::size_t end) const {
        if (std::atomic_ref(turn_mapped_).load(std::memory_order_relaxed) < end) map_turn(end);
    }
    // The same for so many bytes of data at a place of the outbox: only what is cut in turn has such pages.
    void fault_in_chunk(std::uint32_t place, std::size_t bytes) const {
        const std::uint32_t begin = outbox_plan_.in_turn_begin();
        if (place >= begin) fault_in_turn(place - begin + bytes);
    }
    // Owner: the first access to a page took long.
    bool has_slow_pages() const { return file_.page_ns() >= kSlowPageNs; }
    // Owner: the rings have memory from now on, once. Throws Failure if there is too little.
    void provide_rings();
    std::uint32_t directory_entries() const { return flow_.total_peers() + limic_peers_; }

    // The index of process `name` among the senders of this mailbox; takes a spare entry for a stranger.
    // nullopt if there is none left. Safe against the owner and other senders doing the same. Throws Failure
    // if the owner has died in `vacate`.
    std::optional<flow::PeerIndex> find_place(std::uint64_t name);
    // The same, for another process than the owner, who gives back the entries of ended processes: waits for
    // that a while. Throws Failure.
    flow::PeerIndex claim(std::uint64_t name, int patience_ms);
    [[noreturn]] void fail_to_claim(std::uint64_t name) const;
    // Owner: the entry of a stranger that has ended is free. False while somebody looks for an entry.
    bool vacate(flow::PeerIndex index);
    // The name of that sender; Directory::kFree while the place is nobody's.
    std::uint64_t sender_name(flow::PeerIndex index) const;
    // See Directory.
    void introduce(flow::PeerIndex index, const Address& sender) { directory().introduce(index, sender); }
    bool is_introduced(flow::PeerIndex index) const { return directory().is_introduced(index); }
    void will_read(flow::PeerIndex index) const { directory().will_read(index); }
    bool reads(flow::PeerIndex index) const { return directory().reads(index); }
    std::optional<Address> introduced(flow::PeerIndex index) const {
        return directory().introduced(index, address_.agreement);
    }

    // For a policy whose first contact takes no slot (PolicyConfig::lazy_doorbell).
    Doorbell doorbell() const { return {&header().rings, doorbell_bits(), flow_.total_peers()}; }
    std::atomic<std::uint64_t>& retrieved(flow::PeerIndex index) const {
        return directory().entry(index).retrieved;
    }

    mailbox::Writer<> writer() const { return {&header().pointers, slots(), capacity()}; }
    mailbox::Reader<> reader() const { return {&header().pointers, slots(), capacity()}; }
    mailbox::Writer<> limic_writer() const { return {&header().limic_pointers, limic_ring(), limic_slots_}; }
    mailbox::Reader<> limic_reader() const { return {&header().limic_pointers, limic_ring(), limic_slots_}; }

 private:
    static platform::SharedFile open(const Address& address);
    static flow::PolicyConfig flow_of(const SegmentHeader& header);
    std::optional<flow::PeerIndex> take_entry(std::uint64_t name);
    static std::uint64_t planned_slots(const Agreement& agreement, const flow::PolicyConfig& flow);
    Directory directory() const;
    std::uint32_t homes() const;
    std::atomic<std::uint64_t>* doorbell_bits() const;
    mailbox::Slot<>* slots() const;
    mailbox::Slot<>* limic_ring() const;
    std::size_t doorbell_offset() const;
    std::size_t slots_offset() const;
    std::size_t limic_offset() const;
    std::size_t planned_outbox_offset() const;
    void map_turn(std::size_t end) const;
    void plan(std::uint64_t outbox_bytes, std::uint64_t deposit_bytes);
    std::size_t backed_bytes() const;
    std::size_t total_bytes() const;
    void require_room(const char* directory, std::size_t bytes, const char* parameter) const;
    std::uint32_t capacity() const { return capacity_; }

    platform::SharedFile file_;
    Address address_{};
    flow::PolicyConfig flow_;
    std::uint32_t capacity_ = 0;  // slots of the mailbox, as its policy plans it
    std::uint32_t limic_peers_ = 0, limic_slots_ = 0;
    flow::OutboxPlan outbox_plan_;
    std::size_t outbox_offset_ = 0;
    flow::DepositPlan deposit_plan_;
    std::size_t deposits_offset_ = 0, rings_offset_ = 0;
    mutable std::size_t turn_mapped_ = 0;  // several threads may read
};

}  // namespace velo::fabric::shm
