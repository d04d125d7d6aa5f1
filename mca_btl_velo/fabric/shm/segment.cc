#include "fabric/shm/segment.h"

#include <algorithm>
#include <new>
#include <span>

#include "platform/failure.h"
#include "platform/layout.h"
#include "platform/locality.h"
#include "platform/process_identity.h"

namespace velo::fabric::shm {
namespace {

// How long to wait for a segment whose owner must publish it for another namespace first.
constexpr int kPublishPatienceMs = 20'000;
// Larger segments of peers are mapped page by page as they are used.
constexpr std::size_t kPopulateBytes = 1 << 20;

void check(bool sane, const Address& address, const char* what) {
    if (!sane) {
        throw Failure(VELO_ERR_PROTOCOL, "the shared memory segment of " +
                                             platform::process_here(address.process_name) +
                                             " is not a valid Velo segment (" + what + ")");
    }
}

flow::PolicyConfig flow_of(const SegmentHeader& header) {
    flow::PolicyConfig flow = parameters::agreed_flow(header.agreement);
    flow.peers = header.peers;
    flow.spare_peers = header.spare_peers;
    flow.data_slots = header.data_slots;
    return flow;
}

}  // namespace

// What makes messages faster takes no room that another process of the node needs for its mailbox: there is
// room for all, or each process finds too little.
void Segment::require_room(const char* directory, std::size_t bytes, const char* parameter) const {
    const std::uint64_t processes = directory_entries() - flow().spare_peers + 1;
    if (platform::SharedFile::room_in(directory) >= processes * bytes) return;
    throw Failure(VELO_ERR_RESOURCE, "\"" + std::string(directory) + "\" has less than the " +
                                         std::to_string(bytes) + " bytes for each of " +
                                         std::to_string(processes) + " processes. Enlarge it, or lower " +
                                         parameter + ".");
}

void Segment::map_rotating(std::size_t end) const {
    constexpr std::size_t kPiece = 64U << 10;
    end = std::min<std::size_t>((end + kPiece - 1) / kPiece * kPiece, plan_.deposits.bytes());
    const std::size_t begin = std::atomic_ref(rotating_mapped_).exchange(end, std::memory_order_relaxed);
    if (begin < end) file_.fault_in(plan_.rings_offset + begin, end - begin);
}

void Segment::provide_rings() {
    require_room(file_.address().directory, plan_.deposits.bytes(), "the number of processes on the node");
    file_.allocate(plan_.rings_offset, plan_.deposits.bytes());
}

Segment Segment::create(const std::string& directory, const Layout& layout, std::uint64_t* probe) {
    Segment segment;
    const SegmentPlan& plan = segment.plan_;
    segment.plan_ =
        SegmentPlan({layout.flow, SegmentPlan::planned_slots(layout.agreement, layout.flow),
                     layout.limic_peer_count, layout.limic_slots, layout.outbox_bytes, layout.deposit_bytes});
    if (layout.outbox_bytes > 0)
        segment.require_room(directory.c_str(), plan.backed_bytes(), "btl_velo_outbox");
    segment.file_ = platform::SharedFile::create(directory, plan.total_bytes(), plan.backed_bytes());
    *probe = segment.file_.address().nonce;
    segment.address_ = Address{Address::kMagic,
                               layout.owner,
                               parameters::digest(layout.agreement),
                               reinterpret_cast<std::uint64_t>(probe),
                               layout.xpmem_segment,
                               segment.file_.address()};

    SegmentHeader* const header = new (segment.file_.data()) SegmentHeader{};
    header->nonce = segment.file_.address().nonce;
    header->owner = layout.owner;
    header->numa_node = platform::own_numa_node();
    header->agreement = layout.agreement;
    header->peers = layout.flow.peers;
    header->spare_peers = layout.flow.spare_peers;
    header->data_slots = layout.flow.data_slots;
    header->capacity = segment.capacity();
    header->directory_offset = SegmentPlan::directory_offset();
    header->slots_offset = plan.slots_offset;
    header->limic_peers = layout.limic_peer_count;
    header->limic_slots = layout.limic_slots;
    header->limic_offset = plan.limic_offset;
    header->outbox_bytes = layout.outbox_bytes;
    header->outbox_offset = plan.outbox_offset;
    header->deposit_bytes = layout.deposit_bytes;
    header->rings_offset = plan.rings_offset;
    const std::uint32_t total = layout.flow.total_peers();
    for (std::uint32_t i = 0; i < segment.directory_entries(); ++i) {
        std::uint64_t name = Directory::kFree;
        if (i < layout.flow.peers) name = layout.node_peers[i];
        if (i >= total) name = layout.limic_peers[i - total];
        segment.directory().entry(i).name.store(name, std::memory_order_relaxed);
    }
    header->magic = Address::kMagic;
    return segment;
}

// All of it, or, where there is no address space for that, what comes before the outbox.
platform::SharedFile Segment::open(const Address& address) {
    const auto open = [&](std::size_t most) {
        return platform::SharedFile::open(address.file, kPublishPatienceMs, most, address.process_name);
    };
    try {
        return open(SIZE_MAX);
    } catch (const Failure& failure) {
        if (failure.status() != VELO_ERR_RESOURCE) throw;
    }
    const auto first = open(sizeof(SegmentHeader));
    const std::size_t rest = reinterpret_cast<const SegmentHeader*>(first.data())->outbox_offset;
    return open(std::max(rest, sizeof(SegmentHeader)));
}

Segment Segment::attach(const Address& address, bool at_once) {
    platform::check_layout(std::as_bytes(std::span(&address, 1)), Address::kMagic, sizeof address);
    check(address.file.bytes >= sizeof(SegmentHeader), address, "too small");
    Segment segment;
    segment.address_ = address;
    segment.file_ = open(address);

    const SegmentHeader& header = segment.header();
    check(header.magic == Address::kMagic, address, "magic number");
    check(header.nonce == address.file.nonce && header.owner == address.process_name, address, "owner");
    const SegmentPlan::Numbers numbers{flow_of(header),    header.capacity,     header.limic_peers,
                                       header.limic_slots, header.outbox_bytes, header.deposit_bytes};
    check(numbers.are_sane(), address, "counts");
    const std::uint64_t slots = SegmentPlan::planned_slots(header.agreement, numbers.flow);
    check(numbers.capacity == slots && slots > 0 && slots <= kMostSlots, address, "capacity");
    const SegmentPlan plan(numbers);
    check(header.directory_offset == plan.directory_offset() && header.slots_offset == plan.slots_offset &&
              header.limic_offset == plan.limic_offset && header.outbox_offset == plan.outbox_offset &&
              header.rings_offset == plan.rings_offset && plan.total_bytes() == address.file.bytes &&
              plan.outbox_offset <= segment.bytes(),
          address, "layout");
    segment.plan_ = plan;
    if (segment.bytes() < address.file.bytes) segment.plan_.leave_out_outbox();
    if (at_once && plan.backed_bytes() <= kPopulateBytes) segment.file_.fault_in(0, plan.backed_bytes());
    return segment;
}

}  // namespace velo::fabric::shm
