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
#include <string>

#include "fabric/shm/address.h"
#include "fabric/shm/doorbell.h"
#include "fabric/shm/segment_header.h"
#include "fabric/shm/segment_plan.h"
#include "fabric/shm/senders.h"
#include "mailbox/reader.h"
#include "mailbox/writer.h"
#include "platform/shared_file.h"

namespace velo::fabric::shm {

class Segment {
 public:
    static constexpr std::uint32_t kMostSlots = SegmentPlan::kMostSlots;
    // With nested page tables a first access takes .1 us, without 6.5: docs/measured/routes.md.
    static constexpr std::uint64_t kSlowPageNs = 2000;

    struct Layout {
        std::uint64_t owner;
        parameters::Agreement agreement;
        flow::PolicyConfig flow;          // with a plan of at most kMostSlots
        const std::uint64_t* node_peers;  // ascending names for the first flow.peers entries of the directory
        const std::uint64_t* limic_peers;  // the same for the last entries
        std::uint32_t limic_peer_count;
        std::uint32_t limic_slots;
        std::int64_t xpmem_segment;   // see Address
        std::uint64_t outbox_bytes;   // at most flow::OutboxPlan::kMostBytes; 0: none
        std::uint64_t deposit_bytes;  // of rotating memory, at most flow::RotatingMemory::kMostBytes; 0: none
    };

    // `probe`: see Address. Throws Failure.
    static Segment create(const std::string& directory, const Layout& layout, std::uint64_t* probe);
    // Attaches to the segment at `address` and validates it; without its outbox where there is no address
    // space for that. `at_once`: with the pages of what has memory. Throws Failure.
    static Segment attach(const Address& address, bool at_once = true);

    const Address& address() const { return address_; }
    SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(file_.data()); }
    // A copy made at attach, after validation: what the peer writes there later has no effect.
    const flow::PolicyConfig& flow() const { return plan_.numbers.flow; }
    std::size_t bytes() const { return file_.bytes(); }
    std::uint64_t used_bytes() const { return file_.used_bytes(); }
    platform::SharedFile& file() { return file_; }

    std::uint32_t limic_slots() const { return plan_.numbers.limic_slots; }
    // Of what is mapped.
    const flow::OutboxPlan& outbox_plan() const { return plan_.outbox; }
    // At a place that the plan holds.
    std::byte* chunk(std::uint32_t place) const { return file_.data() + plan_.outbox_offset + place; }
    const flow::DepositPlan& deposit_plan() const { return plan_.deposits; }
    // Of a ring that the plan has.
    DepositHeader& deposit_header(std::uint32_t ring) const {
        return reinterpret_cast<DepositHeader*>(file_.data() + plan_.deposits_offset)[ring];
    }
    // At a place that the plan holds.
    std::byte* ring_data(std::uint32_t place) const { return file_.data() + plan_.rings_offset + place; }
    // Maps the pages of the first `end` bytes of rotating memory, many at a time instead of one with each
    // first access.
    void fault_rotating(std::size_t end) const {
        if (std::atomic_ref(rotating_mapped_).load(std::memory_order_relaxed) < end) map_rotating(end);
    }
    // The same for `bytes` of data of the chunk at `place`. No effect outside of rotating memory.
    void fault_in_chunk(std::uint32_t place, std::size_t bytes) const {
        const std::uint32_t begin = plan_.outbox.rotating_begin();
        if (place >= begin) fault_rotating(place - begin + bytes);
    }
    // Owner: the first access to a page took long.
    bool has_slow_pages() const { return file_.page_ns() >= kSlowPageNs; }
    // Owner: the rings have memory from now on, once. Throws Failure if there is too little.
    void provide_rings();
    std::uint32_t directory_entries() const { return plan_.entries(); }

    Senders senders() const {
        return {address_, flow(), plan_.numbers.limic_peers, header().claims, directory()};
    }

    // For a policy whose first contact takes no slot (PolicyConfig::lazy_doorbell).
    Doorbell doorbell() const { return {&header().rings, doorbell_bits(), flow().total_peers()}; }
    std::atomic<std::uint32_t>& retrieved(flow::PeerIndex index) const {
        return directory().entry(index).retrieved;
    }
    std::atomic<std::uint32_t>& references_read(flow::PeerIndex index) const {
        return directory().entry(index).references_read;
    }

    mailbox::Writer<> writer() const { return {&header().pointers, slots(), capacity()}; }
    mailbox::Reader<> reader() const { return {&header().pointers, slots(), capacity()}; }
    mailbox::Writer<> limic_writer() const { return {&header().limic_pointers, limic_ring(), limic_slots()}; }
    mailbox::Reader<> limic_reader() const { return {&header().limic_pointers, limic_ring(), limic_slots()}; }

 private:
    static platform::SharedFile open(const Address& address);
    void map_rotating(std::size_t end) const;
    void require_room(const char* directory, std::size_t bytes, const char* parameter) const;
    template <typename T>
    T* at(std::size_t offset) const {
        return reinterpret_cast<T*>(file_.data() + offset);
    }
    Directory directory() const { return {at<std::byte>(SegmentPlan::directory_offset()), plan_.homes()}; }
    std::atomic<std::uint64_t>* doorbell_bits() const {
        return at<std::atomic<std::uint64_t>>(plan_.doorbell_offset);
    }
    mailbox::Slot<>* slots() const { return at<mailbox::Slot<>>(plan_.slots_offset); }
    mailbox::Slot<>* limic_ring() const { return at<mailbox::Slot<>>(plan_.limic_offset); }
    std::uint32_t capacity() const { return static_cast<std::uint32_t>(plan_.numbers.capacity); }

    platform::SharedFile file_;
    Address address_{};
    SegmentPlan plan_;
    mutable std::size_t rotating_mapped_ = 0;  // several threads may read
};

}  // namespace velo::fabric::shm
