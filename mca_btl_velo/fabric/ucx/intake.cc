#include "fabric/ucx/intake.h"

#include <algorithm>
#include <cstring>

namespace velo::fabric::ucx {
namespace {

// Parcels that may overtake one: far more than any network reorders.
constexpr std::size_t kMostEarly = 4096;

}  // namespace

Intake::Intake(std::uint32_t capacity, std::uint32_t senders, bool limited, std::uint32_t first)
    : capacity_(capacity),
      limited_(limited),
      ring_(std::make_unique<Ring>()),
      slots_(std::make_unique<mailbox::Slot<>[]>(capacity)),
      writer_(&ring_->pointers, slots_.get(), capacity),
      senders_(senders, Sender{first, {}}) {}

const char* Intake::arrive(std::uint32_t index, const Parcel& parcel, std::span<const std::byte> payload) {
    if (const char* fault = fault_of(parcel, payload.size(), capacity_)) return fault;
    Sender& sender = senders_[index];
    auto ahead = static_cast<std::int32_t>(parcel.sequence - sender.expected);
    if (ahead < 0) return "a parcel that came before";
    if (ahead > 0) {
        if (sender.early.size() >= kMostEarly) return "parcels out of order";
        Held held{index, parcel, {payload.begin(), payload.end()}, 0};
        bool fresh = sender.early.emplace(parcel.sequence, std::move(held)).second;
        return fresh ? nullptr : "a parcel that came before";
    }
    const char* fault = take(index, parcel, payload);
    ++sender.expected;
    while (fault == nullptr && !sender.early.empty()) {
        auto next = sender.early.find(sender.expected);
        if (next == sender.early.end()) break;
        fault = take(index, next->second.parcel, next->second.payload);
        sender.early.erase(next);
        ++sender.expected;
    }
    return fault;
}

std::uint32_t Intake::pass(std::uint32_t index, const Parcel& parcel) {
    Sender& sender = senders_[index];
    const std::uint64_t slots = slots_of(parcel);
    const bool empty = ring_->pointers.write.load(std::memory_order_relaxed) ==
                       ring_->pointers.read.load(std::memory_order_relaxed);
    if (!empty || parcel.sequence != sender.expected || !sender.early.empty() || !waiting_.empty() ||
        slots > capacity_)
        return 0;
    ++sender.expected;
    return static_cast<std::uint32_t>(slots);
}

const char* Intake::take(std::uint32_t sender, const Parcel& parcel, std::span<const std::byte> payload) {
    std::size_t stored = 0;
    if (waiting_.empty() && store(sender, parcel, payload, &stored)) return nullptr;
    if (limited_) return "more packets than credits";
    waiting_.push_back(Held{sender, parcel, {payload.begin(), payload.end()}, stored});
    return nullptr;
}

bool Intake::settle() {
    while (!waiting_.empty()) {
        Held& held = waiting_.front();
        if (!store(held.sender, held.parcel, held.payload, &held.stored)) return false;
        waiting_.pop_front();
    }
    return true;
}

bool Intake::has_stored(std::uint32_t sender, std::uint32_t parcels) const {
    return senders_[sender].expected == parcels &&
           std::ranges::none_of(waiting_, [&](const Held& held) { return held.sender == sender; });
}

// Goes on after the `*stored` bytes that are in the mailbox. True when all of it is.
bool Intake::store(std::uint32_t sender, const Parcel& parcel, std::span<const std::byte> payload,
                   std::size_t* stored) {
    if (!wire::is_data(static_cast<wire::PacketKind>(parcel.kind))) return store_control(sender, parcel);
    do {
        std::size_t bytes = std::min(wire::run_capacity(parcel.run_packets), payload.size() - *stored);
        if (!store_run(sender, parcel, payload, *stored, bytes)) return false;
        *stored += bytes;
    } while (*stored < payload.size());
    return true;
}

bool Intake::store_run(std::uint32_t sender, const Parcel& parcel, std::span<const std::byte> payload,
                       std::size_t offset, std::size_t bytes) {
    const std::uint32_t packets = wire::packets_in_run(bytes);
    mailbox::Cursor at{};
    if (writer_.try_reserve(packets, packets, &at) == 0) return false;
    // Only the first run of a parcel says that it has waited.
    auto kind = offset == 0 ? static_cast<wire::PacketKind>(parcel.kind) : wire::PacketKind::kData;
    wire::Header header{kind, 0, parcel.tag, static_cast<std::uint16_t>(bytes), 0, sender};
    bool last = offset + bytes == payload.size();
    header.flags = parcel.flags & wire::kInternal;
    if (offset == 0) header.flags |= parcel.flags & wire::kFirst;
    if (last) header.flags |= parcel.flags & wire::kLast;
    const std::size_t contiguous = writer_.contiguous(at), head = std::min(bytes, contiguous);
    if (head > 0) std::memcpy(writer_.payload(at), payload.data() + offset, head);
    if (bytes > head) std::memcpy(writer_.start(), payload.data() + offset + head, bytes - head);
    if (last && parcel.value != 0) writer_.add_piggyback(at, header, parcel.value);
    writer_.publish(at, header);
    return true;
}

bool Intake::store_control(std::uint32_t sender, const Parcel& parcel) {
    mailbox::Cursor at{};
    if (writer_.try_reserve(1, 1, &at) == 0) return false;
    std::memcpy(writer_.payload(at), &parcel.value, sizeof parcel.value);
    writer_.publish(at, wire::Header{static_cast<wire::PacketKind>(parcel.kind), wire::kFirst | wire::kLast,
                                     0, sizeof parcel.value, 0, sender});
    return true;
}

}  // namespace velo::fabric::ucx
