// A segment that was right, then anything is written into its header and its directory and into the address
// that leads to it. Only who it is and where it lies stay: a wrong one of these waits for a file that nobody
// makes.
#include <cstring>
#include <vector>

#include "api/velo.h"
#include "fabric/shm/segment.h"
#include "flow/policies.h"
#include "input.h"
#include "platform/failure.h"
#include "require.h"

namespace velo::fuzz {
namespace {

using fabric::shm::Address;
using fabric::shm::Segment;
using fabric::shm::SegmentHeader;

constexpr std::uint64_t kOwner = 1;
constexpr std::uint64_t kPeers[] = {2, 3};
// Header, directory, the first slots.
constexpr std::size_t kPatchedBytes = 16 * 1024;

struct Original {
    std::uint64_t probe = 0;
    Segment segment;
    std::vector<std::byte> contents;

    explicit Original(const char* policy) {
        Segment::Layout layout{};
        layout.owner = kOwner;
        std::strcpy(layout.agreement.flow_control, policy);
        layout.flow.peers = 2;
        layout.flow.spare_peers = 1;
        layout.flow.data_slots = 12;
        layout.flow.preposted_buffers = 4;
        layout.flow.initial_buffers = 2;
        layout.flow.credit_message_threshold = 2;
        layout.flow.lazy_slots = 16;
        layout.flow.lazy_peers = 2;
        layout.flow.lazy_doorbell = std::string_view(policy) == "lazy";
        parameters::agree_on(layout.flow, &layout.agreement);
        layout.node_peers = kPeers;
        segment = Segment::create("/dev/shm", layout, &probe);
        contents.assign(memory(), memory() + std::min(kPatchedBytes, segment.bytes()));
    }
    std::byte* memory() const { return reinterpret_cast<std::byte*>(&segment.header()); }
    void restore() const { std::memcpy(memory(), contents.data(), contents.size()); }
};

const Original& original(unsigned index) {
    static const std::vector<Original> all = [] {
        std::vector<Original> made;
        for (unsigned i = 0; velo_policy_name(i) != nullptr; ++i) made.emplace_back(velo_policy_name(i));
        return made;
    }();
    return all[index % all.size()];
}

void patch(std::byte* memory, std::size_t bytes, std::size_t place, Bytes with) {
    for (std::size_t i = 0; i < with.size() && place + i < bytes; ++i) memory[place + i] = std::byte{with[i]};
}

void use(Segment& segment) {
    const flow::PeerIndex index = segment.senders().claim(kPeers[0], 0);
    require(index < segment.directory_entries(), "a place beyond the directory was claimed");
    segment.senders().introduce(index, segment.address());
    for (flow::PeerIndex i = 0; i < std::min(segment.directory_entries(), 64U); ++i)
        segment.senders().introduced(i);
    const SegmentHeader& header = segment.header();
    const std::string policy(header.agreement.flow_control,
                             strnlen(header.agreement.flow_control, sizeof header.agreement.flow_control));
    flow::initial_credit(policy, segment.flow(), index);
    parameters::difference(header.agreement, {});
    auto writer = segment.writer();
    const mailbox::Cursor at = writer.reserve(1);
    require(at.index < writer.capacity(), "a slot beyond the ring was reserved");
    writer.publish(at, wire::Header{wire::PacketKind::kData, 0, 0, 0, 0, index});
    if (segment.flow().lazy_doorbell && index < segment.flow().total_peers()) segment.doorbell().ring(index);
}

}  // namespace

void segments(Bytes bytes) {
    Input input(bytes);
    const Original& from = original(input.take<std::uint8_t>());
    Address address = from.segment.address();
    while (!input.empty()) {
        const auto place = input.take<std::uint16_t>();
        const Bytes with = input.take_bytes(1 + input.take<std::uint8_t>() % 8);
        if (place < kPatchedBytes) {
            patch(from.memory(), from.contents.size(), place, with);
        } else {
            patch(reinterpret_cast<std::byte*>(&address), sizeof address, place % sizeof address, with);
        }
    }
    const platform::FileAddress& file = from.segment.address().file;
    address.file.namespaces = file.namespaces;
    address.file.pid = file.pid;
    address.file.fd = file.fd;
    try {
        Segment segment = Segment::attach(address);
        use(segment);
    } catch (const Failure&) {
    }
    from.restore();
}

}  // namespace velo::fuzz
