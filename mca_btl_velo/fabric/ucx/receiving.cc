// Receiving through UCX, and what goes wrong.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "fabric/ucx/traffic.h"
#include "platform/failure.h"
#include "platform/process_identity.h"

namespace velo::fabric::ucx {
namespace {

// New connections are looked for during some seconds after their first use: that is when UCX makes them.
constexpr int kLooks = 20;
constexpr std::chrono::milliseconds kLookInterval{250};
constexpr std::uint32_t kLookPolls = 64;

}  // namespace

flow::PeerIndex UcxNetwork::other_sender_of(std::uint64_t key, std::uint64_t name) {
    flow::PeerIndex index =
        key == own_.key ? index_of(name, false) : static_cast<flow::PeerIndex>(remotes_.size());
    if (index == remotes_.size())
        refuse("a message of a process that does not belong to this job");
    else
        last_sender_ = {name, index};
    return index;
}

void UcxNetwork::blame(std::uint64_t sender, const char* fault) {
    throw Failure(VELO_ERR_PROTOCOL, platform::process_text(sender) + " sent " + fault);
}

// Strangers are told nothing, and their messages have no effect.
void UcxNetwork::refuse(const char* what) {
    if (std::exchange(refused_, true)) return;
    std::fprintf(stderr, "velo: the network refused %s (said once)\n", what);
}

const char* UcxNetwork::take_parcel(flow::PeerIndex from, const Parcel& parcel, std::byte* data,
                                    std::size_t bytes) {
    const auto kind = static_cast<wire::PacketKind>(parcel.kind);
    if (config_.threads || receiver_ == nullptr || !wire::is_data(kind))
        return intake_.arrive(from, parcel, {data, bytes});
    if (const char* fault = fault_of(parcel, bytes, intake_.capacity())) return fault;
    const std::uint32_t slots = intake_.pass(from, parcel);
    if (slots == 0) return intake_.arrive(from, parcel, {data, bytes});
    return receiver_->take({from, kind, parcel.flags, parcel.tag, data, bytes, slots, parcel.value});
}

ucs_status_t UcxNetwork::on_parcel(void* argument, const void*, std::size_t header_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    return self.shielded([&] {
        Parcel parcel;
        if (header_bytes != 0 || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 ||
            !read_header(data, bytes, &parcel))
            return self.refuse("a message of another format");
        self.parcel_arrived(parcel, static_cast<std::byte*>(data) + sizeof parcel, bytes - sizeof parcel);
    });
}

void UcxNetwork::parcel_arrived(const Parcel& parcel, std::byte* data, std::size_t bytes) {
    flow::PeerIndex index = sender_of(parcel.key, parcel.sender);
    if (index == remotes_.size()) return;
    const char* fault = take_parcel(index, parcel, data, bytes);
    if (fault != nullptr) blame(parcel.sender, fault);
}

// As if each had come alone.
ucs_status_t UcxNetwork::on_parcels(void* argument, const void*, std::size_t header_bytes, void* data,
                                    std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    return self.shielded([&] {
        const bool whole = header_bytes == 0 && (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
        auto* at = static_cast<std::byte*>(data);
        for (std::byte* const end = at + bytes; whole && at != end;) {
            const auto left = static_cast<std::size_t>(end - at);
            Parcel parcel;
            if (!read_header(at, left, &parcel)) return self.refuse("a message of another format");
            at += sizeof parcel;
            const std::size_t length = std::min<std::size_t>(parcel.bytes, left - sizeof parcel);
            self.parcel_arrived(parcel, at, length);
            at += length;
        }
        if (!whole) self.refuse("a message of another format");
    });
}

ucs_status_t UcxNetwork::on_hello(void* argument, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    return self.shielded([&] {
        Introduction introduction;
        Address address;
        if (!read_header(header, header_bytes, &introduction) || introduction.key != self.own_.key ||
            (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 ||
            !parse({static_cast<std::byte*>(data), bytes}, &address) || address.name != introduction.sender)
            return self.refuse("an introduction that is not valid");
        std::string reason = parameters::difference(self.own_.agreement, address.agreement);
        flow::PeerIndex index = self.index_of(address.name, true);
        if (index == self.remotes_.size()) reason = "btl_velo_spare_peers is too small for another process";
        if (!reason.empty()) throw Failure(VELO_ERR_PROTOCOL, reason);
        self.learn(index, std::move(address));
        self.watch_connections();
    });
}

ucs_status_t UcxNetwork::on_goodbye(void* argument, const void* header, std::size_t header_bytes, void* data,
                                    std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    return self.shielded([&] {
        Introduction introduction;
        if (!read_header(header, header_bytes, &introduction) || bytes != sizeof Remote::last_sequence ||
            (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
            return self.refuse("a message of another format");
        flow::PeerIndex index = self.sender_of(introduction.key, introduction.sender);
        if (index == self.remotes_.size() || self.remotes_[index].gone) return;
        std::memcpy(&self.remotes_[index].last_sequence, data, bytes);
        self.remotes_[index].gone = true;
        self.leaving_.push_back(index);
    });
}

std::vector<Left> UcxNetwork::left() {
    std::vector<Left> left;
    std::erase_if(leaving_, [&](flow::PeerIndex index) {
        const Remote& remote = remotes_[index];
        const bool all = intake_.has_stored(index, remote.last_sequence);
        if (all) left.push_back({index, remote.lost ? lost_text(remote) : std::string()});
        return all;
    });
    return left;
}

ucs_status_t UcxNetwork::on_retrieved(void* argument, const void* header, std::size_t header_bytes,
                                      void* data, std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    return self.shielded([&] {
        Introduction introduction;
        std::uint64_t count;
        if (!read_header(header, header_bytes, &introduction) || bytes != sizeof count ||
            (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
            return self.refuse("a message of another format");
        flow::PeerIndex index = self.sender_of(introduction.key, introduction.sender);
        if (index == self.remotes_.size()) return;
        std::memcpy(&count, data, sizeof count);
        // Reports may overtake each other.
        std::uint64_t& known = self.remotes_[index].known_retrieved;
        if (count > known) known = count;
    });
}

// --- trouble

void UcxNetwork::on_error(void* argument, ucp_ep_h, ucs_status_t status) {
    auto& remote = *static_cast<Remote*>(argument);
    remote.network->broke(remote, status);
}

void UcxNetwork::broke(Remote& remote, ucs_status_t status) {
    if (remote.broken == UCS_OK) remote.broken = status;
    any_broken_ = true;
}

std::string UcxNetwork::lost_text(const Remote& remote) const {
    const std::string reason = silent_ ? "it has answered nothing for " +
                                             std::to_string(config_.patience_ms / 1000) +
                                             " s (btl_velo_network_timeout)"
                                       : ucs_status_string(static_cast<ucs_status_t>(remote.broken));
    return "the connection to " + remote.text() + " is lost: " + reason +
           ". The process or its node died, or the network between them failed";
}

// Nothing more comes over a broken connection: who has taken leave before all of its parcels came is lost
// too.
bool UcxNetwork::is_lost(flow::PeerIndex index) const {
    const Remote& remote = remotes_[index];
    return remote.broken != UCS_OK && !(remote.gone && intake_.come(index) == remote.last_sequence);
}

// At the end of a job a peer may have left before its leave, or a parcel, was read.
void UcxNetwork::check_lost() {
    const Remote* lost = nullptr;
    for (flow::PeerIndex index = 0; index < remotes_.size(); ++index)
        if (is_lost(index)) lost = &remotes_[index];
    if (lost == nullptr) {
        broken_since_ = {};
        any_broken_ = false;
        return;
    }
    if (broken_since_ == Clock::time_point{}) broken_since_ = Clock::now();
    if (Clock::now() - broken_since_ <= std::chrono::milliseconds(config_.grace_ms)) return;
    if (!config_.outlives_peers) throw Failure(VELO_ERR_UNREACHABLE, lost_text(*lost));
    for (flow::PeerIndex index = 0; index < remotes_.size(); ++index) {
        Remote& remote = remotes_[index];
        if (!is_lost(index)) continue;
        remote.last_sequence = intake_.come(index);
        if (!std::exchange(remote.gone, true)) leaving_.push_back(index);
        remote.lost = true;
    }
}

void UcxNetwork::watch_connections() {
    looks_ = kLooks;
}

void UcxNetwork::look_at_connections() {
    const auto now = Clock::now();
    if (now < next_look_) return;
    next_look_ = now + kLookInterval;
    if (looks_ > 0) {
        --looks_;
        connections_.find(own_.worker, [this](const auto& test) {
            return std::any_of(remotes_.begin(), remotes_.end(), [&](const Remote& remote) {
                return remote.known && test(remote.address.worker);
            });
        });
    }
    silent_ |= connections_.end_silent(std::chrono::duration_cast<Silence::Time>(now.time_since_epoch()));
}

bool UcxNetwork::progress() {
    if (++polls_ % kLookPolls == 0) look_at_connections();
    bool moved = false;
    // While the mailbox is full nothing more is taken in.
    if (intake_.settle()) moved = ucp_worker_progress(worker_) != 0;
    if (!due_.empty()) {
        for (Remote* remote : std::exchange(due_, {})) pump(*remote);
    }
    if (!arrivals_.empty()) accept_arrivals();
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    if (any_broken_) check_lost();
    return moved;
}

}  // namespace velo::fabric::ucx
