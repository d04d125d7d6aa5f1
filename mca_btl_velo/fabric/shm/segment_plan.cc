#include "fabric/shm/segment_plan.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "fabric/shm/doorbell.h"
#include "fabric/shm/segment_header.h"
#include "flow/policies.h"
#include "wire/packet.h"

namespace velo::fabric::shm {
namespace {

constexpr std::size_t kPageBytes = Directory::kPageBytes;
// Of a policy for which a peer that never speaks must cost little: more are for containers on one machine.
constexpr std::uint32_t kMostSharedHomes = 64;
// Where rings begin in a page: buffers of programs begin with a page or a little behind, and addresses that
// look alike hold copies up (design/large-messages.md).
constexpr std::size_t kRingsInPage = kPageBytes / 2;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

}  // namespace

std::uint64_t SegmentPlan::planned_slots(const parameters::Agreement& agreement,
                                         const flow::PolicyConfig& flow) {
    std::string_view policy(agreement.flow_control,
                            strnlen(agreement.flow_control, sizeof agreement.flow_control));
    return flow::mailbox_plan(policy, flow).total();
}

bool SegmentPlan::Numbers::are_sane() const {
    constexpr std::uint32_t kSane = kMostSlots;
    return flow.peers < kSane && flow.spare_peers < kSane && flow.data_slots < kSane &&
           flow.credit_slots <= 255 && limic_peers < kSane && limic_slots <= kSane &&
           outbox_bytes <= flow::OutboxPlan::kMostBytes && deposit_bytes <= flow::RotatingMemory::kMostBytes;
}

SegmentPlan::SegmentPlan(const Numbers& of) : numbers(of), outbox(of.outbox_bytes) {
    deposits = flow::DepositPlan(flow::RotatingMemory(of.deposit_bytes).bytes());
    doorbell_offset =
        round_up(directory_offset() + Directory::bytes_for(homes(), entries()), wire::kPacketBytes);
    const std::size_t words = of.flow.lazy_doorbell ? Doorbell::words_for(of.flow.total_peers()) : 0;
    slots_offset = round_up(doorbell_offset + words * sizeof(std::uint64_t), kPageBytes);
    limic_offset = round_up(slots_offset + of.capacity * wire::kPacketBytes, kPageBytes);
    outbox_offset = round_up(limic_offset + std::size_t{of.limic_slots} * wire::kPacketBytes, kPageBytes);
    deposits_offset = round_up(outbox_offset + outbox.bytes(), alignof(DepositHeader));
    const std::size_t headers = deposits.none() ? 0 : flow::DepositPlan::kRings * sizeof(DepositHeader);
    rings_offset = round_up(deposits_offset + headers, kPageBytes) + kRingsInPage;
    outbox.set_rotating(static_cast<std::uint32_t>(rings_offset - outbox_offset), deposits.bytes());
}

std::size_t SegmentPlan::directory_offset() {
    return round_up(sizeof(SegmentHeader), mailbox::kPointerSpacing);
}

// The owner's, and where senders may have one each, one for each.
std::uint32_t SegmentPlan::homes() const {
    return 1 + (numbers.flow.lazy_doorbell ? std::min(entries(), kMostSharedHomes) : entries());
}

std::size_t SegmentPlan::backed_bytes() const {
    return rings_offset - kRingsInPage;
}

std::size_t SegmentPlan::total_bytes() const {
    return deposits.none() ? backed_bytes() : round_up(rings_offset + deposits.bytes(), kPageBytes);
}

}  // namespace velo::fabric::shm
