// Sending and receiving through UCX.
#include "fabric/ucx/traffic.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "fabric/ucx/user_timeout.h"
#include "platform/failure.h"

namespace velo::fabric::ucx {
namespace {

// A connection that fails for no told reason: at the end of a job a peer may have left before its goodbye
// was read, and within this time the job is over.
constexpr std::chrono::seconds kGrace{4};

// New connections are looked at for some seconds after their first use: that is when UCX makes them.
constexpr int kLooks = 20;
constexpr std::chrono::milliseconds kLookInterval{250};
constexpr std::uint32_t kLookPolls = 64;

void gather(std::byte* to, const MessageView& message, std::size_t offset, std::size_t bytes) {
    for (int part = 0; part < 2; ++part) {
        if (offset < message.bytes[part]) {
            std::size_t count = std::min(bytes, message.bytes[part] - offset);
            std::memcpy(to, message.part[part] + offset, count);
            to += count;
            bytes -= count;
            offset = 0;
        } else {
            offset -= message.bytes[part];
        }
        if (bytes == 0) return;
    }
}

template <typename Header>
bool read_header(const void* from, std::size_t bytes, Header* header) {
    if (bytes < sizeof *header) return false;
    std::memcpy(header, from, sizeof *header);
    return true;
}

ucp_request_param_t send_params(Flight* flight, ucp_send_nbx_callback_t done, std::uint32_t flags) {
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    params.cb.send = done;
    params.user_data = flight;
    params.flags = flags;
    return params;
}

}  // namespace

// --- sending

void UcxNetwork::send(Remote& to, Parcel parcel, const MessageView& message, std::size_t offset) {
    if (to.broken.load(std::memory_order_relaxed) != UCS_OK) return;  // check_lost will tell
    parcel.key = to.address.key;
    parcel.sender = config_.process_name;
    parcel.sequence = to.next_sequence++;
    std::unique_ptr<Flight> flight = std::move(spare_);
    if (flight == nullptr) flight = std::make_unique<Flight>();
    flight->network = this;
    flight->to = &to;
    flight->outstanding = sizeof parcel + parcel.bytes;
    flight->context = nullptr;
    flight->header.resize(sizeof parcel);
    std::memcpy(flight->header.data(), &parcel, sizeof parcel);
    if (flight->data.size() < parcel.bytes) flight->data.resize(parcel.bytes);
    gather(flight->data.data(), message, offset, parcel.bytes);

    to.outstanding.fetch_add(flight->outstanding, std::memory_order_relaxed);
    ucp_request_param_t params = send_params(flight.get(), on_sent, UCP_AM_SEND_FLAG_EAGER);
    ucs_status_ptr_t request =
        ucp_am_send_nbx(to.endpoint, kParcelId, flight->header.data(), flight->header.size(),
                        flight->data.data(), parcel.bytes, &params);
    if (UCS_PTR_IS_PTR(request)) {
        flight.release();
        return;
    }
    to.outstanding.fetch_sub(flight->outstanding, std::memory_order_relaxed);
    spare_ = std::move(flight);
    if (request != nullptr) broke(to, UCS_PTR_STATUS(request));
}

void UcxNetwork::send_bulk(flow::PeerIndex index, const MessageView& message, void* context) {
    Remote& to = remotes_[index];
    auto flight = std::make_unique<Flight>();
    flight->network = this;
    flight->to = &to;
    flight->outstanding = 0;  // the receiver provides the memory
    flight->context = context;
    Introduction introduction{to.address.key, config_.process_name};
    flight->header.resize(sizeof introduction + message.bytes[0]);
    std::memcpy(flight->header.data(), &introduction, sizeof introduction);
    std::memcpy(flight->header.data() + sizeof introduction, message.part[0], message.bytes[0]);
    if (to.broken.load(std::memory_order_relaxed) != UCS_OK) return;  // the job ends
    ucp_request_param_t params = send_params(flight.get(), on_sent, 0);
    ucs_status_ptr_t request =
        ucp_am_send_nbx(to.endpoint, kBulkId, flight->header.data(), flight->header.size(), message.part[1],
                        message.bytes[1], &params);
    if (UCS_PTR_IS_PTR(request)) {
        flight.release();
    } else if (request != nullptr) {
        broke(to, UCS_PTR_STATUS(request));
    } else {
        std::lock_guard lock(done_lock_);
        done_.push_back(context);
    }
}

// A message about this process itself.
void UcxNetwork::say(Remote& to, unsigned id, std::span<const std::byte> payload) {
    auto flight = std::make_unique<Flight>();
    flight->network = this;
    flight->to = &to;
    flight->outstanding = 0;
    flight->context = nullptr;
    Introduction introduction{to.address.key, config_.process_name};
    flight->header.resize(sizeof introduction);
    std::memcpy(flight->header.data(), &introduction, sizeof introduction);
    flight->data.assign(payload.begin(), payload.end());
    ucp_request_param_t params = send_params(flight.get(), on_sent, UCP_AM_SEND_FLAG_EAGER);
    ucs_status_ptr_t request = ucp_am_send_nbx(to.endpoint, id, flight->header.data(), flight->header.size(),
                                               flight->data.data(), flight->data.size(), &params);
    if (UCS_PTR_IS_PTR(request)) {
        flight.release();
    } else if (request != nullptr) {
        broke(to, UCS_PTR_STATUS(request));
    }
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

void UcxNetwork::on_sent(void* request, ucs_status_t status, void* argument) {
    std::unique_ptr<Flight> flight(static_cast<Flight*>(argument));
    UcxNetwork& network = *flight->network;
    flight->to->outstanding.fetch_sub(flight->outstanding, std::memory_order_relaxed);
    if (status != UCS_OK) {
        network.broke(*flight->to, status);
    } else if (flight->context != nullptr) {
        std::lock_guard lock(network.done_lock_);
        network.done_.push_back(flight->context);
    }
    ucp_request_free(request);
}

std::vector<void*> UcxNetwork::sent_bulk() {
    std::lock_guard lock(done_lock_);
    return std::exchange(done_, {});
}

// --- receiving

// The sender of a message with that key and name; remotes_.size() for a stranger.
flow::PeerIndex UcxNetwork::sender_of(std::uint64_t key, std::uint64_t name) {
    flow::PeerIndex index =
        key == own_.key ? index_of(name, false) : static_cast<flow::PeerIndex>(remotes_.size());
    if (index == remotes_.size()) refuse("a message of a process that does not belong to this job");
    return index;
}

// Strangers are told nothing, and their messages have no effect.
void UcxNetwork::refuse(const char* what) {
    if (std::exchange(refused_, true)) return;
    std::fprintf(stderr, "velo: the network refused %s (said once)\n", what);
}

ucs_status_t UcxNetwork::on_parcel(void* argument, const void* header, std::size_t header_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    Parcel parcel;
    if (header_bytes != sizeof parcel || !read_header(header, header_bytes, &parcel) ||
        (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
        self.refuse("a message of another format");
        return UCS_OK;
    }
    flow::PeerIndex index = self.sender_of(parcel.key, parcel.sender);
    if (index == self.remotes_.size()) return UCS_OK;
    const char* fault = self.intake_.arrive(index, parcel, {static_cast<std::byte*>(data), bytes});
    if (fault != nullptr && self.fault_.empty())
        self.fault_ = "process " + process_text(parcel.sender) + " sent " + fault;
    return UCS_OK;
}

ucs_status_t UcxNetwork::on_hello(void* argument, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    Introduction introduction;
    Address address;
    if (!read_header(header, header_bytes, &introduction) || introduction.key != self.own_.key ||
        (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 ||
        !parse({static_cast<std::byte*>(data), bytes}, &address) || address.name != introduction.sender) {
        self.refuse("an introduction that is not valid");
        return UCS_OK;
    }
    std::string reason = shm::difference(self.own_.agreement, address.agreement);
    std::lock_guard lock(self.directory_);
    flow::PeerIndex index = self.index_of(address.name, true);
    if (index == self.remotes_.size()) reason = "btl_velo_spare_peers is too small for another process";
    if (!reason.empty()) {
        if (self.fault_.empty()) self.fault_ = reason;
        return UCS_OK;
    }
    self.learn(index, std::move(address));
    self.watch_connections();
    return UCS_OK;
}

ucs_status_t UcxNetwork::on_goodbye(void* argument, const void* header, std::size_t header_bytes, void*,
                                    std::size_t, const ucp_am_recv_param_t*) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    Introduction introduction;
    if (!read_header(header, header_bytes, &introduction)) return UCS_OK;
    flow::PeerIndex index = self.sender_of(introduction.key, introduction.sender);
    if (index != self.remotes_.size()) self.remotes_[index].gone.store(true);
    return UCS_OK;
}

ucs_status_t UcxNetwork::on_retrieved(void* argument, const void* header, std::size_t header_bytes,
                                      void* data, std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    Introduction introduction;
    std::uint64_t count;
    if (!read_header(header, header_bytes, &introduction) || bytes != sizeof count ||
        (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
        self.refuse("a message of another format");
        return UCS_OK;
    }
    flow::PeerIndex index = self.sender_of(introduction.key, introduction.sender);
    if (index == self.remotes_.size()) return UCS_OK;
    std::memcpy(&count, data, sizeof count);
    // Reports may overtake each other.
    std::atomic<std::uint64_t>& known = self.remotes_[index].known_retrieved;
    if (count > known.load(std::memory_order_relaxed)) known.store(count, std::memory_order_relaxed);
    return UCS_OK;
}

ucs_status_t UcxNetwork::on_bulk(void* argument, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    constexpr std::uint64_t kKept = UCP_AM_RECV_ATTR_FLAG_DATA | UCP_AM_RECV_ATTR_FLAG_RNDV;
    Introduction introduction;
    if (!read_header(header, header_bytes, &introduction)) return UCS_OK;
    flow::PeerIndex index = self.sender_of(introduction.key, introduction.sender);
    if (index == self.remotes_.size() || (param->recv_attr & kKept) == 0) return UCS_OK;
    auto* first = static_cast<const std::byte*>(header);
    self.arrivals_.push_back(BulkArrival{index,
                                         {first + sizeof introduction, first + header_bytes},
                                         bytes,
                                         data,
                                         (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0});
    return UCS_INPROGRESS;
}

struct UcxNetwork::Receipt {
    UcxNetwork* network;
    BulkArrival arrival;
};

bool UcxNetwork::accept(BulkArrival& arrival, void* to) {
    if (arrival.here) {
        std::memcpy(to, arrival.descriptor, arrival.bytes);
        ucp_am_data_release(worker_, arrival.descriptor);
        return true;
    }
    auto receipt = std::make_unique<Receipt>(Receipt{this, std::move(arrival)});
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params.cb.recv_am = on_received;
    params.user_data = receipt.get();
    ucs_status_ptr_t request =
        ucp_am_recv_data_nbx(worker_, receipt->arrival.descriptor, to, receipt->arrival.bytes, &params);
    if (UCS_PTR_IS_PTR(request)) {
        receipt.release();
        return false;
    }
    arrival = std::move(receipt->arrival);
    if (request != nullptr) {
        broke(remotes_[arrival.from], UCS_PTR_STATUS(request));
        return false;
    }
    return true;
}

void UcxNetwork::on_received(void* request, ucs_status_t status, std::size_t, void* argument) {
    std::unique_ptr<Receipt> receipt(static_cast<Receipt*>(argument));
    UcxNetwork& network = *receipt->network;
    if (status == UCS_OK) {
        network.received_.push_back(std::move(receipt->arrival));
    } else {
        network.broke(network.remotes_[receipt->arrival.from], status);
    }
    ucp_request_free(request);
}

// --- trouble

void UcxNetwork::on_error(void* argument, ucp_ep_h, ucs_status_t status) {
    auto& remote = *static_cast<Remote*>(argument);
    remote.network->broke(remote, status);
}

void UcxNetwork::broke(Remote& remote, ucs_status_t status) {
    int fine = UCS_OK;
    remote.broken.compare_exchange_strong(fine, status);
    any_broken_.store(true);
}

std::string UcxNetwork::lost_text(const Remote& remote) const {
    auto status = static_cast<ucs_status_t>(remote.broken.load());
    return "the connection to process " + process_text(remote.name) +
           " is lost: " + ucs_status_string(status) +
           ". The process or its node died, or the network between them failed";
}

void UcxNetwork::check_lost() {
    const Remote* lost = nullptr;
    for (const Remote& remote : remotes_) {
        if (remote.broken.load(std::memory_order_relaxed) != UCS_OK && !remote.gone.load()) lost = &remote;
    }
    if (lost == nullptr) {
        broken_since_ = {};
        return;
    }
    if (broken_since_ == Clock::time_point{}) broken_since_ = Clock::now();
    if (Clock::now() - broken_since_ > kGrace) throw Failure(VELO_ERR_UNREACHABLE, lost_text(*lost));
}

void UcxNetwork::watch_connections() {
    looks_.store(kLooks, std::memory_order_relaxed);
}

void UcxNetwork::limit_connections() {
    auto now = Clock::now();
    if (now < next_look_) return;
    next_look_ = now + kLookInterval;
    looks_.fetch_sub(1, std::memory_order_relaxed);
    limit_unacknowledged(config_.patience_ms, own_.worker, [this](const auto& test) {
        return std::any_of(remotes_.begin(), remotes_.end(), [&](const Remote& remote) {
            return remote.known.load(std::memory_order_acquire) && test(remote.address.worker);
        });
    });
}

bool UcxNetwork::progress() {
    if (looks_.load(std::memory_order_relaxed) > 0 && ++polls_ % kLookPolls == 0) limit_connections();
    bool moved = false;
    if (intake_.settle()) moved = ucp_worker_progress(worker_) != 0;
    if (!fault_.empty()) throw Failure(VELO_ERR_PROTOCOL, fault_);
    if (any_broken_.load(std::memory_order_relaxed)) check_lost();
    return moved;
}

}  // namespace velo::fabric::ucx
