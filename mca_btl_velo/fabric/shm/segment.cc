#include "fabric/shm/segment.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <span>
#include <thread>
#include <type_traits>

#include "flow/policies.h"
#include "platform/failure.h"
#include "platform/layout.h"
#include "platform/locality.h"
#include "platform/process_identity.h"

namespace velo::fabric::shm {
namespace {

// How long to wait for a segment whose owner must publish it for another namespace first.
constexpr int kPublishPatienceMs = 20'000;
// Of SegmentHeader::claims. The owner gives entries back, which takes some stores.
constexpr std::uint32_t kVacating = 1U << 31;
constexpr int kVacatingPatienceMs = 1000;
constexpr std::size_t kPageBytes = Directory::kPageBytes;
// Of a policy for which a peer that never speaks must cost little: more are for containers on one machine.
constexpr std::uint32_t kMostSharedHomes = 64;
// Larger segments of peers are mapped page by page as they are used.
constexpr std::size_t kPopulateBytes = 1 << 20;
// Where rings begin in a page: buffers of programs begin with a page or a little behind, and addresses that
// look alike hold copies up (design/large-messages.md).
constexpr std::size_t kRingsInPage = kPageBytes / 2;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

constexpr std::size_t directory_offset() {
    return round_up(sizeof(SegmentHeader), mailbox::kPointerSpacing);
}

void check(bool sane, const Address& address, const char* what) {
    if (!sane) {
        throw Failure(VELO_ERR_PROTOCOL, "the shared memory segment of " +
                                             platform::process_here(address.process_name) +
                                             " is not a valid Velo segment (" + what + ")");
    }
}

}  // namespace

flow::PolicyConfig Segment::flow_of(const SegmentHeader& header) {
    flow::PolicyConfig flow = parameters::agreed_flow(header.agreement);
    flow.peers = header.peers;
    flow.spare_peers = header.spare_peers;
    flow.data_slots = header.data_slots;
    return flow;
}

std::uint64_t Segment::planned_slots(const Agreement& agreement, const flow::PolicyConfig& flow) {
    std::string_view policy(agreement.flow_control,
                            strnlen(agreement.flow_control, sizeof agreement.flow_control));
    return flow::mailbox_plan(policy, flow).total();
}

// The owner's, and where senders may have one each, one for each.
std::uint32_t Segment::homes() const {
    const std::uint32_t entries = directory_entries();
    return 1 + (flow_.lazy_doorbell ? std::min(entries, kMostSharedHomes) : entries);
}

Directory Segment::directory() const {
    return {file_.data() + directory_offset(), homes()};
}

std::size_t Segment::doorbell_offset() const {
    return round_up(directory_offset() + Directory::bytes_for(homes(), directory_entries()),
                    wire::kPacketBytes);
}

std::size_t Segment::slots_offset() const {
    std::size_t words = flow_.lazy_doorbell ? Doorbell::words_for(flow_.total_peers()) : 0;
    return round_up(doorbell_offset() + words * sizeof(std::uint64_t), kPageBytes);
}

std::atomic<std::uint64_t>* Segment::doorbell_bits() const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(file_.data() + doorbell_offset());
}

std::size_t Segment::limic_offset() const {
    return round_up(slots_offset() + std::size_t{capacity()} * wire::kPacketBytes, kPageBytes);
}

std::size_t Segment::planned_outbox_offset() const {
    return round_up(limic_offset() + std::size_t{limic_slots_} * wire::kPacketBytes, kPageBytes);
}

void Segment::plan(std::uint64_t outbox_bytes, std::uint64_t deposit_bytes) {
    outbox_plan_ = flow::OutboxPlan(outbox_bytes);
    deposit_plan_ = flow::DepositPlan(flow::InTurn(deposit_bytes).bytes());
    outbox_offset_ = planned_outbox_offset();
    deposits_offset_ = round_up(outbox_offset_ + outbox_plan_.bytes(), alignof(DepositHeader));
    const std::size_t headers = deposit_plan_.none() ? 0 : flow::DepositPlan::kRings * sizeof(DepositHeader);
    rings_offset_ = round_up(deposits_offset_ + headers, kPageBytes) + kRingsInPage;
    outbox_plan_.cut_in_turn(static_cast<std::uint32_t>(rings_offset_ - outbox_offset_),
                             deposit_plan_.bytes());
}

std::size_t Segment::backed_bytes() const {
    return rings_offset_ - kRingsInPage;
}

std::size_t Segment::total_bytes() const {
    if (deposit_plan_.none()) return backed_bytes();
    return round_up(rings_offset_ + deposit_plan_.bytes(), kPageBytes);
}

// What makes messages faster takes no room that another process of the node needs for its mailbox: there is
// room for all, or each process finds too little.
void Segment::require_room(const char* directory, std::size_t bytes, const char* parameter) const {
    const std::uint64_t processes = directory_entries() - flow_.spare_peers + 1;
    if (platform::SharedFile::room_in(directory) >= processes * bytes) return;
    throw Failure(VELO_ERR_RESOURCE, "\"" + std::string(directory) + "\" has less than the " +
                                         std::to_string(bytes) + " bytes for each of " +
                                         std::to_string(processes) + " processes. Enlarge it, or lower " +
                                         parameter + ".");
}

void Segment::map_turn(std::size_t end) const {
    constexpr std::size_t kPiece = 64U << 10;
    end = std::min<std::size_t>(round_up(end, kPiece), deposit_plan_.bytes());
    const std::size_t begin = std::atomic_ref(turn_mapped_).exchange(end, std::memory_order_relaxed);
    if (begin < end) file_.fault_in(rings_offset_ + begin, end - begin);
}

void Segment::provide_rings() {
    require_room(file_.address().directory, deposit_plan_.bytes(), "the number of processes on the node");
    file_.allocate(rings_offset_, deposit_plan_.bytes());
}

Segment Segment::create(const std::string& directory, const Layout& layout, std::uint64_t* probe) {
    Segment segment;
    segment.flow_ = layout.flow;
    segment.capacity_ = static_cast<std::uint32_t>(planned_slots(layout.agreement, layout.flow));
    segment.limic_peers_ = layout.limic_peer_count;
    segment.limic_slots_ = layout.limic_slots;
    segment.plan(layout.outbox_bytes, layout.deposit_bytes);
    if (layout.outbox_bytes > 0)
        segment.require_room(directory.c_str(), segment.backed_bytes(), "btl_velo_outbox");
    segment.file_ = platform::SharedFile::create(directory, segment.total_bytes(), segment.backed_bytes());
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
    header->capacity = segment.capacity_;
    header->directory_offset = directory_offset();
    header->slots_offset = segment.slots_offset();
    header->limic_peers = layout.limic_peer_count;
    header->limic_slots = layout.limic_slots;
    header->limic_offset = segment.limic_offset();
    header->outbox_bytes = layout.outbox_bytes;
    header->outbox_offset = segment.outbox_offset_;
    header->deposit_bytes = layout.deposit_bytes;
    header->rings_offset = segment.rings_offset_;
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
    flow::PolicyConfig flow = flow_of(header);
    constexpr std::uint32_t kSane = kMostSlots;
    check(
        flow.peers < kSane && flow.spare_peers < kSane && flow.data_slots < kSane && flow.credit_slots <= 255,
        address, "counts");
    std::uint64_t slots = planned_slots(header.agreement, flow);
    check(header.capacity == slots && slots > 0 && slots <= kMostSlots, address, "capacity");
    segment.flow_ = flow;
    segment.capacity_ = static_cast<std::uint32_t>(slots);
    segment.limic_peers_ = header.limic_peers;
    segment.limic_slots_ = header.limic_slots;
    const std::uint64_t outbox_bytes = header.outbox_bytes, deposit_bytes = header.deposit_bytes;
    check(segment.limic_peers_ < kSane && segment.limic_slots_ <= kSane &&
              outbox_bytes <= flow::OutboxPlan::kMostBytes && deposit_bytes <= flow::InTurn::kMostBytes,
          address, "counts");
    segment.plan(outbox_bytes, deposit_bytes);
    check(header.directory_offset == directory_offset() && header.slots_offset == segment.slots_offset() &&
              header.limic_offset == segment.limic_offset() &&
              header.outbox_offset == segment.outbox_offset_ &&
              header.rings_offset == segment.rings_offset_ && segment.total_bytes() == address.file.bytes &&
              segment.outbox_offset_ <= segment.bytes(),
          address, "layout");
    if (segment.bytes() < address.file.bytes) {
        segment.outbox_plan_ = flow::OutboxPlan();
        segment.deposit_plan_ = flow::DepositPlan();
    }
    if (at_once && segment.backed_bytes() <= kPopulateBytes)
        segment.file_.fault_in(0, segment.backed_bytes());
    return segment;
}

// Two claimers of one name meet at the same entry: while one of them is at it, entries are taken in order and
// none is given back. A process that is killed here leaves the counter up, and no entry is given back any
// more.
std::optional<flow::PeerIndex> Segment::find_place(std::uint64_t name) {
    std::atomic<std::uint32_t>& claims = header().claims;
    // acquire: with the end of kVacating come the entries.
    for (int waited_ms = 0; claims.fetch_add(1, std::memory_order_acq_rel) & kVacating; ++waited_ms) {
        claims.fetch_sub(1, std::memory_order_relaxed);
        if (waited_ms > kVacatingPatienceMs)
            throw Failure(VELO_ERR_UNREACHABLE, platform::process_here(address_.process_name) +
                                                    " died while it tidied up its mailbox");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto place = take_entry(name);
    claims.fetch_sub(1, std::memory_order_release);
    return place;
}

std::optional<flow::PeerIndex> Segment::take_entry(std::uint64_t name) {
    const auto name_at = [this](flow::PeerIndex i) -> std::atomic<std::uint64_t>& {
        return directory().entry(i).name;
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

flow::PeerIndex Segment::claim(std::uint64_t name, int patience_ms) {
    for (;; --patience_ms) {
        if (const auto place = find_place(name)) return *place;
        if (patience_ms <= 0 || platform::closed_by_owner(address_.file)) fail_to_claim(name);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

// acquire and release: what claimers see of the entries is from before or from after.
bool Segment::vacate(flow::PeerIndex index) {
    std::uint32_t nobody = 0;
    std::atomic<std::uint32_t>& claims = header().claims;
    if (!claims.compare_exchange_strong(nobody, kVacating, std::memory_order_acq_rel)) return false;
    directory().clear(index);
    claims.fetch_sub(kVacating, std::memory_order_release);
    return true;
}

void Segment::fail_to_claim(std::uint64_t name) const {
    throw Failure(VELO_ERR_UNREACHABLE,
                  "the mailbox of " + platform::process_here(address_.process_name) +
                      " has no entry left for " + platform::process_text(name) +
                      ": raise btl_velo_spare_peers (now " + std::to_string(flow_.spare_peers) +
                      "), the number of processes of other jobs that it can serve at one time");
}

std::uint64_t Segment::sender_name(flow::PeerIndex index) const {
    return directory().entry(index).name.load(std::memory_order_relaxed);
}

mailbox::Slot<>* Segment::slots() const {
    return reinterpret_cast<mailbox::Slot<>*>(file_.data() + slots_offset());
}

mailbox::Slot<>* Segment::limic_ring() const {
    return reinterpret_cast<mailbox::Slot<>*>(file_.data() + limic_offset());
}

}  // namespace velo::fabric::shm
