// Data past the mailbox. Where all networks are TCP it travels in fragments that UCX sends from the user's
// memory and that are copied to their place on arrival: no round trip for a rendezvous, no second assembly.
// Elsewhere UCX's own rendezvous moves it, with the network's remote memory access.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/ucx/traffic.h"
#include "platform/failure.h"

namespace velo::fabric::ucx {
namespace {

// See kSegmentBytes.
constexpr std::size_t kFragmentBytes = std::size_t{128} * 1024;
// What UCX holds of the bulk data for one peer: enough to keep the connection busy, little enough that small
// messages soon get their turn.
constexpr std::size_t kBulkWindow = std::size_t{512} * 1024;
// The engine's header, at most.
constexpr std::size_t kMostHeaderBytes = 256;

}  // namespace

void UcxNetwork::send_bulk(flow::PeerIndex index, const MessageView& message, void* context) {
    Remote& to = remotes_[index];
    auto bulk = std::make_unique<Bulk>();
    bulk->to = &to;
    bulk->id = to.next_bulk++;
    bulk->header.assign(message.part[0], message.part[0] + message.bytes[0]);
    bulk->data = message.part[1];
    bulk->bytes = message.bytes[1];
    bulk->context = context;
    if (to.broken != UCS_OK) return;  // check_lost will tell
    if (!fragments_) return send_by_rendezvous(std::move(bulk));
    to.bulks.push_back(std::move(bulk));
    pump(to);
}

void UcxNetwork::send_by_rendezvous(std::unique_ptr<Bulk> bulk) {
    Remote& to = *bulk->to;
    auto flight = take_flight(to);
    Introduction introduction{to.address.key, config_.process_name};
    flight->put_header(introduction, bulk->header);
    bulk->sent = bulk->flying = bulk->bytes;
    flight->bulk = bulk.get();
    flight->bulk_bytes = bulk->bytes;
    to.flying.push_back(std::move(bulk));
    launch(std::move(flight), kBulkId, to.flying.back()->data, to.flying.back()->bytes, 0);
}

// Sends as many fragments as the window takes.
void UcxNetwork::pump(Remote& to) {
    while (!to.bulks.empty() && to.bulk_outstanding < kBulkWindow && to.broken == UCS_OK) {
        Bulk& bulk = *to.bulks.front();
        const std::size_t bytes = std::min<std::size_t>(kFragmentBytes, bulk.bytes - bulk.sent);
        auto flight = take_flight(to);
        Fragment fragment{to.address.key, config_.process_name, bulk.bytes, bulk.sent, bulk.id, 0};
        flight->put_header(fragment, bulk.header);
        flight->bulk = &bulk;
        flight->bulk_bytes = bytes;
        const std::byte* data = bulk.data + bulk.sent;
        bulk.sent += bytes;
        bulk.flying += bytes;
        to.bulk_outstanding += bytes;
        if (bulk.sent == bulk.bytes) {
            to.flying.push_back(std::move(to.bulks.front()));
            to.bulks.pop_front();
        }
        launch(std::move(flight), kFragmentId, data, bytes, UCP_AM_SEND_FLAG_EAGER);
    }
}

// UCX has done with a part of it.
void UcxNetwork::landed(const Flight& flight) {
    Bulk& bulk = *flight.bulk;
    Remote& to = *bulk.to;
    bulk.flying -= flight.bulk_bytes;
    if (fragments_) {
        to.bulk_outstanding -= flight.bulk_bytes;
        if (!to.bulks.empty()) due_.push_back(&to);
    }
    if (bulk.flying > 0 || bulk.sent < bulk.bytes) return;
    sent_.push_back(bulk.context);
    std::erase_if(to.flying, [&](const auto& one) { return one.get() == &bulk; });
}

ucs_status_t UcxNetwork::on_fragment(void* argument, const void* header, std::size_t header_bytes, void* data,
                                     std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    return self.shielded([&] {
        Fragment fragment;
        if (!read_header(header, header_bytes, &fragment) ||
            header_bytes - sizeof fragment > kMostHeaderBytes ||
            (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
            return self.refuse("a message of another format");
        flow::PeerIndex index = self.sender_of(fragment.key, fragment.sender);
        if (index == self.remotes_.size()) return;
        auto* first = static_cast<const std::byte*>(header);
        const char* fault =
            self.take_fragment(index, fragment, {first + sizeof fragment, first + header_bytes},
                               {static_cast<const std::byte*>(data), bytes});
        if (fault != nullptr) blame(fragment.sender, fault);
    });
}

const char* UcxNetwork::take_fragment(flow::PeerIndex from, const Fragment& fragment,
                                      std::span<const std::byte> header, std::span<const std::byte> data) {
    if (receiver_ == nullptr) return "data after the end";
    bool complete;
    const char* fault = remotes_[from].landings.arrive(
        fragment, header, data, [&] { return receiver_->place(from, header, fragment.total); }, &complete);
    if (complete) placed_.push_back({from, {header.begin(), header.end()}});
    return fault;
}

// --- by UCX's rendezvous

ucs_status_t UcxNetwork::on_bulk(void* argument, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    constexpr std::uint64_t kKept = UCP_AM_RECV_ATTR_FLAG_DATA | UCP_AM_RECV_ATTR_FLAG_RNDV;
    bool kept = false;
    self.shielded([&] {
        Introduction introduction;
        if (!read_header(header, header_bytes, &introduction)) return;
        flow::PeerIndex index = self.sender_of(introduction.key, introduction.sender);
        if (index == self.remotes_.size() || (param->recv_attr & kKept) == 0 ||
            header_bytes - sizeof introduction > kMostHeaderBytes)
            return;
        auto* first = static_cast<const std::byte*>(header);
        self.arrivals_.push_back(Arrival{{index, {first + sizeof introduction, first + header_bytes}},
                                         bytes,
                                         data,
                                         (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0});
        kept = true;
    });
    return kept ? UCS_INPROGRESS : UCS_OK;
}

struct UcxNetwork::Receipt {
    UcxNetwork* network;
    Placed placed;
};

void UcxNetwork::accept_arrivals() {
    for (Arrival& arrival : std::exchange(arrivals_, {})) {
        std::byte* to = receiver_->place(arrival.placed.from, arrival.placed.header, arrival.bytes);
        if (to == nullptr) throw Failure(VELO_ERR_PROTOCOL, "a bulk transfer that nobody has asked for");
        accept(arrival, to);
    }
}

void UcxNetwork::accept(Arrival& arrival, std::byte* to) {
    if (arrival.here) {
        std::memcpy(to, arrival.descriptor, arrival.bytes);
        ucp_am_data_release(worker_, arrival.descriptor);
        placed_.push_back(std::move(arrival.placed));
        return;
    }
    auto receipt = std::make_unique<Receipt>(Receipt{this, std::move(arrival.placed)});
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params.cb.recv_am = on_received;
    params.user_data = receipt.get();
    ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker_, arrival.descriptor, to, arrival.bytes, &params);
    if (UCS_PTR_IS_PTR(request)) {
        (void)receipt.release();  // on_received has it
    } else if (request != nullptr) {
        broke(remotes_[receipt->placed.from], UCS_PTR_STATUS(request));
    } else {
        placed_.push_back(std::move(receipt->placed));
    }
}

void UcxNetwork::on_received(void* request, ucs_status_t status, std::size_t, void* argument) {
    std::unique_ptr<Receipt> receipt(static_cast<Receipt*>(argument));
    UcxNetwork& network = *receipt->network;
    network.shielded([&] {
        if (status == UCS_OK) {
            network.placed_.push_back(std::move(receipt->placed));
        } else {
            network.broke(network.remotes_[receipt->placed.from], status);
        }
    });
    ucp_request_free(request);
}

}  // namespace velo::fabric::ucx
