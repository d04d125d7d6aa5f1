#include "fake_ucx.h"

#include <ucp/api/ucp.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "exact_memory.h"

using velo::test::ExactMemory;
using velo::test::FakeUcx;

namespace {

struct Handler {
    ucp_am_recv_callback_t callback = nullptr;
    void* argument = nullptr;
    bool persistent = false;
};

std::vector<std::byte> copy_of(const void* data, std::size_t bytes) {
    auto* first = static_cast<const std::byte*>(data);
    return {first, first + bytes};
}

}  // namespace

struct ucp_config {};
struct ucp_context {};
// Data that has been asked for and is on its way.
struct Late {
    void* descriptor;
    void* buffer;
    std::size_t bytes;
    ucp_request_param_t params;
};
struct ucp_worker {
    std::vector<Late> late;
    unsigned fetches = 0;
    std::uint64_t number;
    std::array<Handler, 64> handlers{};
    std::deque<FakeUcx::Message> inbox;
    // Data that its receiver keeps, or was only told of, by what it knows it by.
    std::map<void*, std::unique_ptr<ExactMemory>> kept;
};
struct ucp_ep {
    std::uint64_t to;
    ucp_err_handler_t on_error;
};

namespace {

// What waits in UCX's hands, not yet packed.
struct Unsent;
std::deque<Unsent>& busy();

std::map<std::uint64_t, std::unique_ptr<ucp_worker>>& workers() {
    static std::map<std::uint64_t, std::unique_ptr<ucp_worker>> all;
    return all;
}

ucp_worker* make_worker() {
    static std::uint64_t last = 0;
    auto worker = std::make_unique<ucp_worker>();
    worker->number = ++last;
    return (workers()[last] = std::move(worker)).get();
}

std::set<ucp_ep*>& connections() {
    static std::set<ucp_ep*> all;
    return all;
}

std::uint64_t number_of(std::span<const std::byte> address) {
    std::uint64_t number = 0;
    std::memcpy(&number, address.data(), std::min(address.size(), sizeof number));
    return number;
}

void put(std::uint64_t to, FakeUcx::Message message) {
    if (const auto found = workers().find(to); found != workers().end())
        found->second->inbox.push_back(std::move(message));
}

struct Unsent {
    std::uint64_t to;
    unsigned id;
    ucp_generic_dt_ops_t operations;
    void* state;
    ucp_request_param_t params;

    void* request() { return this; }
    // Packs in pieces, as where a segment is shorter than the message.
    void leave() const {
        constexpr std::size_t kPiece = 50;  // at first
        std::vector<std::byte> data(operations.packed_size(state));
        for (std::size_t at = 0; at < data.size();)
            at += operations.pack(state, at, data.data() + at,
                                  std::min(std::max(kPiece, at), data.size() - at));
        operations.finish(state);
        put(to, {id, {}, std::move(data), false});
    }
};

// Several pieces of memory as one.
const ucp_generic_dt_ops_t kPieces{
    .start_pack = [](void*, const void* pieces, std::size_t count) -> void* {
        const auto* first = static_cast<const ucp_dt_iov_t*>(pieces);
        return new std::vector<ucp_dt_iov_t>(first, first + count);
    },
    .start_unpack = nullptr,
    .packed_size =
        [](void* state) {
            std::size_t bytes = 0;
            for (const ucp_dt_iov_t& piece : *static_cast<std::vector<ucp_dt_iov_t>*>(state))
                bytes += piece.length;
            return bytes;
        },
    .pack =
        [](void* state, std::size_t from, void* to, std::size_t room) {
            std::vector<std::byte> all;
            for (const ucp_dt_iov_t& piece : *static_cast<std::vector<ucp_dt_iov_t>*>(state)) {
                const auto* data = static_cast<const std::byte*>(piece.buffer);
                all.insert(all.end(), data, data + piece.length);
            }
            const std::size_t count = std::min(room, all.size() - from);
            std::memcpy(to, all.data() + from, count);
            return count;
        },
    .unpack = nullptr,
    .finish = [](void* state) { delete static_cast<std::vector<ucp_dt_iov_t>*>(state); },
};

std::deque<Unsent>& busy() {
    static std::deque<Unsent> all;
    return all;
}

void deliver(ucp_worker& worker, const FakeUcx::Message& message) {
    const Handler& handler = worker.handlers[message.id];
    if (handler.callback == nullptr) return;
    auto kept = std::make_unique<ExactMemory>(message.data.data(), message.data.size());
    const ExactMemory header(message.header.data(), message.header.size());
    ucp_am_recv_param_t param{};
    void* data = kept->data();
    if (message.announced) {
        param.recv_attr = UCP_AM_RECV_ATTR_FLAG_RNDV;
        data = kept.get();
    } else if (handler.persistent) {
        param.recv_attr = UCP_AM_RECV_ATTR_FLAG_DATA;
    }
    const std::size_t bytes = kept->size();
    const bool keeps = param.recv_attr != 0;
    if (keeps) worker.kept[data] = std::move(kept);
    const ucs_status_t status =
        handler.callback(handler.argument, header.data(), header.size(), data, bytes, &param);
    if (keeps && status != UCS_INPROGRESS) worker.kept.erase(data);
}

}  // namespace

namespace velo::test {

std::vector<std::byte> FakeUcx::open_worker() {
    const std::uint64_t number = make_worker()->number;
    std::vector<std::byte> address(sizeof number);
    std::memcpy(address.data(), &number, sizeof number);
    return address;
}

void FakeUcx::close_worker(std::span<const std::byte> address) {
    workers().erase(number_of(address));
}

void FakeUcx::send(std::span<const std::byte> to, Message message) {
    put(number_of(to), std::move(message));
}

void FakeUcx::free_network() {
    is_busy = false;
    for (Unsent& unsent : std::exchange(busy(), {})) {
        unsent.leave();
        unsent.params.cb.send(unsent.request(), UCS_OK, unsent.params.user_data);
    }
}

void FakeUcx::break_connections(std::span<const std::byte> to) {
    for (ucp_ep* endpoint : connections())
        if (endpoint->to == number_of(to))
            endpoint->on_error.cb(endpoint->on_error.arg, endpoint, UCS_ERR_CONNECTION_RESET);
}

std::deque<FakeUcx::Message> FakeUcx::take_all(std::span<const std::byte> at) {
    return std::exchange(workers().at(number_of(at))->inbox, {});
}

}  // namespace velo::test

extern "C" {

ucs_status_t ucp_config_read(const char*, const char*, ucp_config_t** config) {
    *config = new ucp_config;
    return UCS_OK;
}
ucs_status_t ucp_config_modify(ucp_config_t*, const char*, const char*) {
    return UCS_OK;
}
void ucp_config_release(ucp_config_t* config) {
    delete config;
}

ucs_status_t ucp_init_version(unsigned, unsigned, const ucp_params_t*, const ucp_config_t*,
                              ucp_context_h* context) {
    *context = new ucp_context;
    return UCS_OK;
}
void ucp_cleanup(ucp_context_h context) {
    delete context;
}
void ucp_context_print_info(const ucp_context_h, FILE* stream) {
    std::fputs("#  resource 0 : md 0 dev 0 flags -- tcp/eth0\n", stream);
}

ucs_status_t ucp_worker_create(ucp_context_h, const ucp_worker_params_t*, ucp_worker_h* worker) {
    *worker = make_worker();
    return UCS_OK;
}
void ucp_worker_destroy(ucp_worker_h worker) {
    workers().erase(worker->number);
}
ucs_status_t ucp_worker_query(ucp_worker_h worker, ucp_worker_attr_t* attributes) {
    attributes->address = reinterpret_cast<ucp_address_t*>(new std::uint64_t(worker->number));
    attributes->address_length = sizeof worker->number;
    return UCS_OK;
}
void ucp_worker_release_address(ucp_worker_h, ucp_address_t* address) {
    delete reinterpret_cast<std::uint64_t*>(address);
}
ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker, const ucp_am_handler_param_t* param) {
    worker->handlers.at(param->id) = {param->cb, param->arg,
                                      (param->flags & UCP_AM_FLAG_PERSISTENT_DATA) != 0};
    return UCS_OK;
}
unsigned ucp_worker_progress(ucp_worker_h worker) {
    unsigned delivered = 0;
    for (const Late& fetch : std::exchange(worker->late, {})) {
        const auto found = worker->kept.find(fetch.descriptor);
        const std::size_t bytes = std::min(fetch.bytes, found->second->size());
        std::memcpy(fetch.buffer, found->second->data(), bytes);
        worker->kept.erase(found);
        fetch.params.cb.recv_am(worker, UCS_OK, bytes, fetch.params.user_data);
    }
    for (; !worker->inbox.empty(); ++delivered) {
        const FakeUcx::Message message = std::move(worker->inbox.front());
        worker->inbox.pop_front();
        deliver(*worker, message);
    }
    return delivered;
}
ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h, const ucp_request_param_t*) {
    return nullptr;
}

ucs_status_t ucp_ep_create(ucp_worker_h, const ucp_ep_params_t* params, ucp_ep_h* endpoint) {
    if (FakeUcx::is_unreachable) return UCS_ERR_IO_ERROR;
    std::uint64_t to;
    std::memcpy(&to, params->address, sizeof to);
    *endpoint = new ucp_ep{to, params->err_handler};
    connections().insert(*endpoint);
    return UCS_OK;
}
ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h endpoint, const ucp_request_param_t*) {
    connections().erase(endpoint);
    delete endpoint;
    return nullptr;
}

// A datatype is the operations by which a sender packs its data.
ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t* operations, void*, ucp_datatype_t* datatype) {
    *datatype = reinterpret_cast<ucp_datatype_t>(new ucp_generic_dt_ops_t(*operations));
    return UCS_OK;
}
void ucp_dt_destroy(ucp_datatype_t datatype) {
    delete reinterpret_cast<ucp_generic_dt_ops_t*>(datatype);
}

// Contiguous data leaves at once, other data unless the test says that the network is busy.
ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h endpoint, unsigned id, const void* header, std::size_t header_bytes,
                                 const void* data, std::size_t bytes, const ucp_request_param_t* params) {
    const bool announced = (params->flags & UCP_AM_SEND_FLAG_RNDV) != 0;
    if ((params->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) == 0) {
        put(endpoint->to, {id, copy_of(header, header_bytes), copy_of(data, bytes), announced});
        return nullptr;
    }
    const auto& operations = params->datatype == ucp_dt_make_iov()
                                 ? kPieces
                                 : *reinterpret_cast<ucp_generic_dt_ops_t*>(params->datatype);
    void* const state = operations.start_pack(nullptr, data, bytes);
    busy().push_back({endpoint->to, id, operations, state, *params});
    if (FakeUcx::is_busy) return busy().back().request();
    const Unsent now = std::move(busy().back());
    busy().pop_back();
    now.leave();
    return nullptr;
}
ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void* descriptor, void* buffer, std::size_t bytes,
                                      const ucp_request_param_t* params) {
    // Every other one that can be told of it later is.
    if ((params->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) != 0 && ++worker->fetches % 2 == 0) {
        worker->late.push_back({descriptor, buffer, bytes, *params});
        return worker;
    }
    const auto found = worker->kept.find(descriptor);
    std::memcpy(buffer, found->second->data(), std::min(bytes, found->second->size()));
    worker->kept.erase(found);
    return nullptr;
}
void ucp_am_data_release(ucp_worker_h worker, void* data) {
    worker->kept.erase(data);
}

ucs_status_t ucp_request_check_status(void*) {
    return UCS_OK;
}
void ucp_request_free(void*) {}

}  // extern "C"
