// Data that a REF of a process on another node stands for: announced by UCX's rendezvous, and fetched from
// the sender's outbox when this process has room. The REF takes its place in the mailbox like any packet;
// when its turn comes, its data must be here.
#include <cstring>
#include <utility>

#include "fabric/ucx/traffic.h"
#include "flow/outbox.h"
#include "platform/failure.h"

namespace velo::fabric::ucx {
namespace {

// What is held of all senders together before its turn has come; one more may be on top of that.
constexpr std::size_t kPullWindow = std::size_t{256} * 1024;

}  // namespace

void UcxNetwork::send_reference(Remote& to, Parcel parcel, const Referred& what) {
    if (to.broken != UCS_OK) return;  // check_lost will tell
    stamp(to, parcel);
    auto flight = take_flight(to);
    flight->unread = what.unread;
    flight->put_header(parcel);
    launch(std::move(flight), kReferenceId, what.data, what.reference.bytes, UCP_AM_SEND_FLAG_RNDV);
}

ucs_status_t UcxNetwork::on_reference(void* argument, const void* header, std::size_t header_bytes,
                                      void* data, std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxNetwork*>(argument);
    bool kept = false;
    self.shielded([&] {
        Parcel parcel;
        if (header_bytes != sizeof parcel || !read_header(header, header_bytes, &parcel))
            return self.refuse("a message of another format");
        const flow::PeerIndex index = self.sender_of(parcel.key, parcel.sender);
        if (index == self.remotes_.size() || self.receiver_ == nullptr) return;
        // The engine's own messages may be longer than those of the upper layer.
        const std::uint64_t most = (parcel.flags & wire::kInternal) != 0
                                       ? flow::OutboxPlan::kMostRoom
                                       : self.config_.agreement.max_message_bytes;
        if ((parcel.flags & wire::kReference) == 0 || bytes > most)
            blame(parcel.sender, "a reference to data that no message has");
        const std::uint32_t id = self.next_pull_++;
        Pull& pull = self.pulls_[id];
        pull.network = &self;
        pull.from = index;
        pull.bytes = bytes;
        if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
            pull.descriptor = data;
            self.awaited_pulls_.push_back(id);
            kept = true;
        } else {
            self.hold(pull);
            std::memcpy(pull.data.data(), data, bytes);
            pull.state = Pull::State::kHere;
        }
        const wire::Reference reference{id, static_cast<std::uint32_t>(bytes)};
        const char* fault = self.intake_.arrive(index, parcel, std::as_bytes(std::span(&reference, 1)));
        if (fault != nullptr) blame(parcel.sender, fault);
    });
    return kept ? UCS_INPROGRESS : UCS_OK;
}

// Memory for its data, until the engine is done with it.
void UcxNetwork::hold(Pull& pull) {
    pull.data.resize(pull.bytes);
    held_bytes_ += pull.bytes;
}

void UcxNetwork::release(std::uint32_t id) {
    const auto found = pulls_.find(id);
    held_bytes_ -= found->second.bytes;
    pulls_.erase(found);
}

// In the order in which they were announced, as far as the window reaches.
void UcxNetwork::start_pulls() {
    while (!awaited_pulls_.empty() && held_bytes_ < kPullWindow) {
        const auto found = pulls_.find(awaited_pulls_.front());
        awaited_pulls_.pop_front();
        if (found != pulls_.end() && found->second.state == Pull::State::kAnnounced) start(found->second);
    }
}

void UcxNetwork::start(Pull& pull) {
    hold(pull);
    pull.state = Pull::State::kUnderWay;
    ++pulls_under_way_;
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params.cb.recv_am = on_pulled;
    params.user_data = &pull;
    ucs_status_ptr_t request =
        ucp_am_recv_data_nbx(worker_, pull.descriptor, pull.data.data(), pull.data.size(), &params);
    if (!UCS_PTR_IS_PTR(request)) end(pull, UCS_PTR_STATUS(request));
}

void UcxNetwork::on_pulled(void* request, ucs_status_t status, std::size_t, void* argument) {
    Pull& pull = *static_cast<Pull*>(argument);
    pull.network->end(pull, status);
    ucp_request_free(request);
}

void UcxNetwork::end(Pull& pull, ucs_status_t status) {
    --pulls_under_way_;
    if (status == UCS_OK)
        pull.state = Pull::State::kHere;
    else
        broke(remotes_[pull.from], status);
}

// Whose turn has come is fetched whatever the window says: the rest of it may be held by what comes later.
std::byte* UcxNetwork::pulled(std::uint32_t id) {
    const auto found = pulls_.find(id);
    if (found == pulls_.end()) throw Failure(VELO_ERR_PROTOCOL, "a reference to nothing");
    Pull& pull = found->second;
    if (pull.state == Pull::State::kAnnounced) start(pull);
    return pull.state == Pull::State::kHere ? pull.data.data() : nullptr;
}

}  // namespace velo::fabric::ucx
