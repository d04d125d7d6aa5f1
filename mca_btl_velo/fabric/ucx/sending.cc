// Sending through UCX: a parcel in a message of its own, or several together.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/ucx/traffic.h"

namespace velo::fabric::ucx {
namespace {

// What UCX copies into one buffer of its own (UCX_TCP_TX_SEG_SIZE, 8 KiB) with its headers.
constexpr std::size_t kPackedBytes = 8000;
// Parcels that leave together, at most, and what is copied of them: more gain nothing, and the receiver
// begins later.
constexpr std::size_t kCollectionBytes = std::size_t{128} * 1024, kCopiedBytes = std::size_t{64} * 1024;
constexpr std::uint32_t kMostCollected = 64;
// Data of a parcel that UCX sends from where it is, if it stays. A collection has at most seven such parcels:
// UCX sends 16 pieces at once.
constexpr std::size_t kInPlaceBytes = std::size_t{16} * 1024;

}  // namespace

std::unique_ptr<Flight> UcxNetwork::take_flight(Remote& to) {
    std::unique_ptr<Flight> flight;
    if (spares_.empty()) {
        flight = std::make_unique<Flight>();
    } else {
        flight = std::move(spares_.back());
        spares_.pop_back();
    }
    flight->network = this;
    flight->to = &to;
    flight->outstanding = 0;
    flight->bulk = nullptr;
    flight->copied = false;
    return flight;
}

// Gives it to UCX, which may be done with it at once.
void UcxNetwork::launch(std::unique_ptr<Flight> flight, unsigned id, const void* data, std::size_t count,
                        std::uint32_t flags, ucp_datatype_t type) {
    Flight* launched = flight.release();
    launched->to->outstanding += launched->outstanding;
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    params.cb.send = on_sent;
    params.user_data = launched;
    params.flags = flags;
    if (type != ucp_dt_make_contig(1)) {
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        params.datatype = type;
    }
    ucs_status_ptr_t request = ucp_am_send_nbx(launched->to->endpoint, id, launched->header.data(),
                                               launched->header.size(), data, count, &params);
    if (!UCS_PTR_IS_PTR(request)) end_flight(launched, UCS_PTR_STATUS(request));
}

// The same of parcels that UCX packs. Given as memory they would go to the kernel in three pieces, which
// costs 0.35 us more than one. As long as UCX sends at once, which it nearly always does, nothing is copied
// here, and the flight stays for the next one: what runs between a receive and the answer is few lines of
// code.
inline void UcxNetwork::launch_packed(std::unique_ptr<Flight>& flight, unsigned id) {
    packing_params_.user_data = flight.get();
    const ucs_status_ptr_t request =
        ucp_am_send_nbx(flight->to->endpoint, id, nullptr, 0, flight.get(), 1, &packing_params_);
    if (request != nullptr) [[unlikely]]
        await(flight, request);
}

// It has not been sent at once.
void UcxNetwork::await(std::unique_ptr<Flight>& flight, ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return broke(*flight->to, UCS_PTR_STATUS(request));
    Flight& held = *flight.release();  // UCX has it now
    held.copy();
    held.outstanding = held.bytes;
    held.to->outstanding += held.bytes;
}

void UcxNetwork::on_sent(void* request, ucs_status_t status, void* argument) {
    auto* flight = static_cast<Flight*>(argument);
    UcxNetwork& network = *flight->network;
    network.shielded([&] { network.end_flight(flight, status); });
    ucp_request_free(request);
}

void UcxNetwork::end_flight(Flight* ended, ucs_status_t status) {
    std::unique_ptr<Flight> flight(ended);
    Remote& to = *flight->to;
    to.outstanding -= flight->outstanding;
    if (status != UCS_OK) {
        broke(to, status);
    } else if (flight->bulk != nullptr) {
        landed(*flight);
    }
    spare(std::move(flight));
}

void UcxNetwork::spare(std::unique_ptr<Flight> flight) {
    if (spares_.size() < kMostSpares) spares_.push_back(std::move(flight));
}

void UcxNetwork::send(Remote& to, Parcel parcel, const MessageView& message, std::size_t offset, bool stays) {
    if (to.broken != UCS_OK) return;  // check_lost will tell
    stamp(to, parcel);
    const bool in_place = stays && parcel.bytes >= kInPlaceBytes;
    if (to.series) return collect(to, parcel, message, offset, in_place);
    if (in_place) [[unlikely]] {
        collect(to, parcel, message, offset, in_place);
        return launch_collection(to);
    }
    if (next_ == nullptr) [[unlikely]]
        next_ = take_flight(to);
    next_->to = &to;
    next_->bytes = sizeof parcel + parcel.bytes;
    next_->parcel = parcel;
    next_->message = message;
    next_->offset = offset;
    launch_eager(next_, kParcelId);
}

void UcxNetwork::collect(Remote& to, const Parcel& parcel, const MessageView& message, std::size_t offset,
                         bool in_place) {
    const std::size_t first = offset < message.bytes[0] ? message.bytes[0] - offset : 0;
    const std::size_t head = in_place ? std::min<std::size_t>(first, parcel.bytes) : parcel.bytes;
    const std::size_t bytes = sizeof parcel + parcel.bytes, copied = sizeof parcel + head;
    if (to.collected == kMostCollected ||
        (to.collected > 0 &&
         (to.collection->bytes + bytes > kCollectionBytes || to.collection->filled + copied > kCopiedBytes)))
        launch_collection(to);
    if (to.collected == 0) {
        to.collection = take_flight(to);
        to.collection->bytes = to.collection->filled = 0;
        to.collection->copied = true;
        to.collection->pieces.clear();
        const std::size_t needed = std::max(copied, kCopiedBytes);
        if (to.collection->data.size() < needed) to.collection->data.resize(needed);
    }
    Flight& flight = *to.collection;
    std::byte* const at = flight.data.data() + flight.filled;
    std::memcpy(at, &parcel, sizeof parcel);
    message.copy_to(at + sizeof parcel, offset, head);
    flight.append(at, copied);
    flight.filled += copied;
    if (head < parcel.bytes)
        flight.append(message.part[1] + (offset + head - message.bytes[0]), parcel.bytes - head);
    flight.bytes += bytes;
    ++to.collected;
}

void UcxNetwork::launch_collection(Remote& to) {
    const unsigned id = std::exchange(to.collected, 0) == 1 ? kParcelId : kParcelsId;
    Flight& flight = *to.collection;
    if (flight.pieces.size() > 1) {
        flight.outstanding = flight.bytes;
        flight.header.clear();
        return launch(std::move(to.collection), id, flight.pieces.data(), flight.pieces.size(),
                      UCP_AM_SEND_FLAG_EAGER, ucp_dt_make_iov());
    }
    launch_eager(to.collection, id);
    if (to.collection != nullptr) spare(std::move(to.collection));
}

void UcxNetwork::end_series(flow::PeerIndex peer) {
    Remote& to = remotes_[peer];
    to.series = false;
    if (to.collected > 0) launch_collection(to);
}

// Leaves the flight where it is if UCX needs it no more.
inline void UcxNetwork::launch_eager(std::unique_ptr<Flight>& flight, unsigned id) {
    if (flight->bytes <= kPackedBytes) [[likely]]
        return launch_packed(flight, id);
    launch_copied(std::move(flight), id);
}

// Header and data in one piece: UCX has its fastest way for that.
void UcxNetwork::launch_copied(std::unique_ptr<Flight> flight, unsigned id) {
    flight->outstanding = flight->bytes;
    flight->header.clear();
    flight->copy();
    const std::byte* data = flight->data.data();
    const std::size_t bytes = flight->bytes;
    launch(std::move(flight), id, data, bytes, UCP_AM_SEND_FLAG_EAGER);
}

// A message about this process itself.
void UcxNetwork::say(Remote& to, unsigned id, std::span<const std::byte> payload) {
    auto flight = take_flight(to);
    flight->put_header(Introduction{to.address.key, config_.process_name});
    flight->data.assign(payload.begin(), payload.end());
    flight->outstanding = payload.size();
    const std::byte* data = flight->data.data();
    launch(std::move(flight), id, data, payload.size(), UCP_AM_SEND_FLAG_EAGER);
}

// A sender that is refused has at most the limit in this mailbox: all of it is reported, half at a time.
void UcxNetwork::retrieved(flow::PeerIndex peer, std::uint32_t packets) {
    Remote& remote = remotes_[peer];
    remote.retrieved += packets;
    if (remote.retrieved - remote.told < (std::uint64_t{config_.refusal_limit} + 1) / 2) return;
    connect(remote);
    remote.told = remote.retrieved;
    say(remote, kRetrievedId, std::as_bytes(std::span(&remote.retrieved, 1)));
}

}  // namespace velo::fabric::ucx
