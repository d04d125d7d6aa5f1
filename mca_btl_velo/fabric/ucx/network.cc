// Set-up: the worker, who is who, connections, and the end of them.
#include "fabric/ucx/network.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "fabric/ucx/messages.h"
#include "fabric/ucx/traffic.h"
#include "fabric/ucx/ucx_link.h"
#include "flow/policies.h"
#include "platform/failure.h"
#include "platform/layout.h"
#include "platform/process_identity.h"

namespace velo::fabric::ucx {
namespace {

// What has been sent must leave before the process does; a peer that is gone must not keep it.
constexpr std::chrono::seconds kCloseTime{3};

// What UCX's TCP receives in one piece. A parcel or a fragment with its headers is shorter: it is sent
// without a copy and not assembled.
constexpr const char* kSegmentBytes = "148K";
constexpr const char* kSegmentVariable = "UCX_TCP_RX_SEG_SIZE";

// True if the variable was not there before.
bool setenv_absent(const char* name, const char* value) {
    return getenv(name) == nullptr && setenv(name, value, 0) == 0;
}

void require(ucs_status_t status, const char* what) {
    if (status != UCS_OK) {
        throw Failure(VELO_ERR_RESOURCE, std::string("UCX: ") + what + ": " + ucs_status_string(status) +
                                             " (UCX_TLS and UCX_NET_DEVICES choose networks; "
                                             "btl_velo_network none does without)");
    }
}

// What keeps UCX from making a connection, as it opens sockets and reads /sys for each: no descriptor is
// left, or this process has gone into a directory without /sys. UCX itself says "Input/output error" of both.
std::string why_unreachable() {
    const char* const read = "/sys/class/net";
    const int fd = ::open(read, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return std::string(read) + " cannot be opened: " + std::strerror(errno);
    ::close(fd);
    return "UCX_TLS and UCX_NET_DEVICES choose networks";
}

std::uint32_t planned_slots(const NetworkConfig& config) {
    return static_cast<std::uint32_t>(flow::mailbox_plan(config.agreement.flow_control, config.flow).total());
}

}  // namespace

UcxNetwork::UcxNetwork(const NetworkConfig& config, Receiver& receiver)
    : config_(config),
      names_(config.peers, config.peers + config.flow.peers),
      intake_(planned_slots(config), config.flow.total_peers(), config.limited),
      last_sender_{UINT64_MAX, config.flow.total_peers()},
      receiver_(&receiver) {
    spares_.reserve(kMostSpares);
    for (std::uint32_t i = 0; i < config.flow.total_peers(); ++i) {
        remotes_.emplace_back().network = this;
        if (i < names_.size()) remotes_.back().name = names_[i];
    }
    // UCX 1.13 takes this setting from the environment alone; a user's own value stays.
    const bool preset = setenv_absent(kSegmentVariable, kSegmentBytes);
    try {
        open_context();
        open_worker();
        if (preset) unsetenv(kSegmentVariable);
    } catch (...) {
        if (preset) unsetenv(kSegmentVariable);
        if (packing_ != 0) ucp_dt_destroy(packing_);
        if (worker_ != nullptr) ucp_worker_destroy(worker_);
        if (context_ != nullptr) ucp_cleanup(context_);
        throw;
    }
}

UcxNetwork::~UcxNetwork() {
    receiver_ = nullptr;
    close_endpoints();
    ucp_worker_destroy(worker_);
    ucp_dt_destroy(packing_);
    ucp_cleanup(context_);
}

void UcxNetwork::open_context() {
    ucp_config_t* settings = nullptr;
    require(ucp_config_read(nullptr, nullptr, &settings), "configuration");
    // Peers here are on other nodes by definition: UCX must not take two of them for one because they have
    // the same kernel.
    if (getenv("UCX_TLS") == nullptr) ucp_config_modify(settings, "TLS", "^sm");
    ucp_params_t params{};
    params.field_mask =
        UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features = UCP_FEATURE_AM;
    params.mt_workers_shared = config_.threads;
    params.estimated_num_eps = names_.size();
    ucs_status_t status = ucp_init(&params, settings, &context_);
    ucp_config_release(settings);
    require(status, "start");
    fragments_ = all_tcp();
}

// Whether TCP is all that UCX has found: it says so only in print.
bool UcxNetwork::all_tcp() const {
    char* text = nullptr;
    std::size_t bytes = 0;
    FILE* file = open_memstream(&text, &bytes);
    if (file == nullptr) return false;
    ucp_context_print_info(context_, file);
    std::fclose(file);
    const std::unique_ptr<char, decltype(&free)> owned(text, free);
    std::istringstream lines(text);
    bool tcp = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.find(" resource ") == std::string::npos) continue;
        const std::string device = line.substr(line.rfind(' ') + 1),
                          name = device.substr(0, device.find('/'));
        if (name == "tcp")
            tcp = true;
        else if (name != "self")
            return false;
    }
    return tcp;
}

void UcxNetwork::open_worker() {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = config_.threads ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE;
    require(ucp_worker_create(context_, &params, &worker_), "worker");
    open_packing();
    set_handler(kParcelId, on_parcel, UCP_AM_FLAG_WHOLE_MSG);
    set_handler(kParcelsId, on_parcels, UCP_AM_FLAG_WHOLE_MSG);
    set_handler(kHelloId, on_hello, UCP_AM_FLAG_WHOLE_MSG);
    set_handler(kGoodbyeId, on_goodbye, UCP_AM_FLAG_WHOLE_MSG);
    set_handler(kRetrievedId, on_retrieved, UCP_AM_FLAG_WHOLE_MSG);
    set_handler(kFragmentId, on_fragment, UCP_AM_FLAG_WHOLE_MSG);
    set_handler(kBulkId, on_bulk, UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA);

    ucp_worker_attr_t attributes{};
    attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
    attributes.address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY;
    require(ucp_worker_query(worker_, &attributes), "address");
    const auto release = [this](ucp_address_t* address) { ucp_worker_release_address(worker_, address); };
    const std::unique_ptr<ucp_address_t, decltype(release)> address(attributes.address, release);
    auto* first = reinterpret_cast<const std::byte*>(attributes.address);
    own_.worker.assign(first, first + attributes.address_length);
    own_.name = config_.process_name;
    own_.key = platform::random_nonce();
    own_.host = platform::host_name();
    own_.agreement = config_.agreement;
    own_.flow = config_.flow;
    packed_ = pack(own_);
}

void UcxNetwork::open_packing() {
    ucp_generic_dt_ops_t operations{};
    operations.start_pack = [](void*, const void* flight, std::size_t) { return const_cast<void*>(flight); };
    operations.packed_size = [](void* flight) { return static_cast<const Flight*>(flight)->bytes; };
    operations.pack = [](void* flight, std::size_t from, void* to, std::size_t room) {
        return static_cast<const Flight*>(flight)->pack(from, static_cast<std::byte*>(to), room);
    };
    operations.finish = [](void*) {};
    require(ucp_dt_create_generic(&operations, this, &packing_), "datatype");
    packing_params_.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                   UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_DATATYPE;
    packing_params_.cb.send = on_sent;
    packing_params_.flags = UCP_AM_SEND_FLAG_EAGER;
    packing_params_.datatype = packing_;
}

void UcxNetwork::set_handler(unsigned id, ucp_am_recv_callback_t handler, std::uint32_t flags) {
    ucp_am_handler_param_t params{};
    params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                        UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    params.id = id;
    params.flags = flags;
    params.cb = handler;
    params.arg = this;
    require(ucp_worker_set_am_recv_handler(worker_, &params), "active message handler");
}

// The place of a process among the senders; remotes_.size() if it has none.
flow::PeerIndex UcxNetwork::index_of(std::uint64_t name, bool create) {
    auto found = std::lower_bound(names_.begin(), names_.end(), name);
    if (found != names_.end() && *found == name) return static_cast<flow::PeerIndex>(found - names_.begin());
    auto first = static_cast<flow::PeerIndex>(names_.size());
    std::uint32_t strangers = strangers_;
    for (flow::PeerIndex i = first; i < first + strangers; ++i) {
        if (remotes_[i].name == name) return i;
    }
    if (!create || first + strangers == remotes_.size()) return static_cast<flow::PeerIndex>(remotes_.size());
    remotes_[first + strangers].name = name;
    strangers_ = strangers + 1;
    return first + strangers;
}

void UcxNetwork::learn(flow::PeerIndex index, Address address) {
    Remote& remote = remotes_[index];
    if (remote.known) return;
    remote.address = std::move(address);
    remote.known = true;
}

flow::PeerIndex UcxNetwork::claim(std::span<const std::byte> bytes) {
    Address address;
    platform::check_layout(bytes, AddressHeader::kMagic, sizeof(AddressHeader));
    if (!parse(bytes, &address))
        throw Failure(VELO_ERR_PROTOCOL, "the address of a process on another node is damaged");
    std::string reason = parameters::difference(own_.agreement, address.agreement);
    if (!reason.empty()) throw Failure(VELO_ERR_MISMATCH, reason);
    flow::PeerIndex index = index_of(address.name, true);
    if (index == remotes_.size()) {
        throw Failure(VELO_ERR_UNREACHABLE,
                      "no entry is left for a process of another job: raise "
                      "btl_velo_spare_peers (now " +
                          std::to_string(config_.flow.spare_peers) + ")");
    }
    learn(index, std::move(address));
    return index;
}

std::unique_ptr<Link> UcxNetwork::open(flow::PeerIndex peer, flow::PolicyConfig* flow,
                                       flow::PeerIndex* index) {
    Remote& remote = remotes_[peer];
    if (!remote.known) throw Failure(VELO_ERR_PROTOCOL, "a sender on another node did not leave its address");
    connect(remote);
    *flow = remote.address.flow;
    // All regular senders of a mailbox have equal shares: the slots are so many for each.
    *index = peer < names_.size() ? 0 : remote.address.flow.peers;
    return std::make_unique<UcxLink>(*this, remote);
}

void UcxNetwork::connect(Remote& remote) {
    if (remote.endpoint != nullptr) return;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(remote.address.worker.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = on_error;
    params.err_handler.arg = &remote;
    ucs_status_t status = ucp_ep_create(worker_, &params, &remote.endpoint);
    if (status != UCS_OK) {
        remote.endpoint = nullptr;
        throw Failure(VELO_ERR_UNREACHABLE, "UCX cannot reach " + remote.text() + ": " +
                                                ucs_status_string(status) + " (" + why_unreachable() + ")");
    }
    say(remote, kHelloId, packed_);
    watch_connections();
}

// Waits, a little, for a request of the closing phase.
void UcxNetwork::finish(ucs_status_ptr_t request, Clock::time_point deadline) {
    if (!UCS_PTR_IS_PTR(request)) return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS && Clock::now() < deadline)
        ucp_worker_progress(worker_);
    ucp_request_free(request);
}

void UcxNetwork::close_endpoints() {
    // Without memory for it the peers hear no goodbye.
    shielded([this] {
        for (Remote& remote : remotes_) {
            if (remote.endpoint != nullptr && remote.broken == UCS_OK)
                say(remote, kGoodbyeId, std::as_bytes(std::span(&remote.next_sequence, 1)));
        }
    });
    auto deadline = Clock::now() + kCloseTime;
    ucp_request_param_t params{};
    finish(ucp_worker_flush_nbx(worker_, &params), deadline);
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
    for (Remote& remote : remotes_) {
        if (remote.endpoint != nullptr) finish(ucp_ep_close_nbx(remote.endpoint, &params), deadline);
    }
}

std::string Remote::text() const {
    return platform::process_text(name) + (address.host.empty() ? "" : " on " + address.host);
}

}  // namespace velo::fabric::ucx

namespace velo::fabric {

std::unique_ptr<Network> open_network(const NetworkConfig& config, Receiver& receiver, std::string*) {
    return std::make_unique<ucx::UcxNetwork>(config, receiver);
}

}  // namespace velo::fabric
