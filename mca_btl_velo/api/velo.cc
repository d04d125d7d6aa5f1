// The C interface: translates handles, catches failures. No logic of its own.
#include "api/velo.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>

#include "api/counters.h"
#include "api/handle.h"
#include "engine/routes/table.h"
#include "engine/send_now.h"
#include "flow/policies.h"
#include "parameters/table.h"
#include "platform/failure.h"
#include "platform/layout.h"
#include "platform/process_identity.h"
#include "platform/processors.h"
#include "report/report.h"
#include "rma/atomic.h"

using velo::Failure;
using velo::api::attempted;
using velo::api::guarded;
using velo::engine::Engine;
using velo::engine::engine_of;
using velo::platform::check_layout;

namespace {

// Peers publish their counters when they close, which they all do at about the same time.
constexpr std::chrono::seconds kReportPatience{5};

bool all_final(const std::vector<const velo::fabric::shm::SegmentHeader*>& segments) {
    for (const auto* segment : segments) {
        if (segment->statistics_final.load(std::memory_order_acquire) == 0) return false;
    }
    return true;
}

void print_report(const Engine& engine) {
    const velo::flow::Policy& policy = engine.policy();
    velo::report::Input input{engine.peers().segments(),
                              engine.slots_per_peer(),
                              velo::flow::parameters_text(policy.name(), policy.config()),
                              velo::parameters::values_json(engine.config()),
                              engine.observer().unmet_peer_bytes(),
                              engine.config().remote_peer_count,
                              velo::platform::host_name()};
    bool leader = input.segments.front()->owner == engine.config().process_name;
    if (engine.config().report == std::string_view("none") || !leader) return;
    auto deadline = std::chrono::steady_clock::now() + kReportPatience;
    while (!all_final(input.segments) && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    bool complete = all_final(input.segments);
    std::string text = std::string_view(engine.config().report) == "json" ? velo::report::json(input)
                                                                          : velo::report::summary(input);
    if (!complete) text = "velo: some processes did not close in time; their counters are missing\n" + text;
    std::fputs(text.c_str(), stderr);
}

velo::fabric::MessageView view_of(const void* header, size_t header_bytes, const void* payload,
                                  size_t payload_bytes) {
    return {{static_cast<const std::byte*>(header), static_cast<const std::byte*>(payload)},
            {header_bytes, payload_bytes}};
}

[[gnu::noinline]] velo_status send_slowly(velo_peer* peer, uint8_t tag, const void* header,
                                          size_t header_bytes, const void* payload, size_t payload_bytes) {
    velo::engine::Engine& engine = engine_of(*peer);
    return guarded(engine, [&] {
        return engine.send_now(*peer, tag, view_of(header, header_bytes, payload, payload_bytes));
    });
}

[[gnu::noinline]] velo_status send_other(velo_peer* peer, uint8_t tag, const void* header,
                                         size_t header_bytes, const void* payload, size_t payload_bytes) {
    const velo::fabric::MessageView message = view_of(header, header_bytes, payload, payload_bytes);
    if (engine_of(*peer).try_send_longer_fast(*peer, tag, message)) return VELO_OK;
    if (engine_of(*peer).try_append_fast(*peer, tag, message)) return VELO_OK;
    return send_slowly(peer, tag, header, header_bytes, payload, payload_bytes);
}

}  // namespace

extern "C" {

const char* velo_policy_name(unsigned index) {
    static_assert(noexcept(velo::flow::policy_name(index).data()));
    return velo::flow::policy_name(index).data();
}

const velo_parameter* velo_parameter_at(unsigned index) {
    static_assert(noexcept(velo::parameters::at(index)));
    return velo::parameters::at(index);
}

const velo_parameter* velo_parameter_like(const char* name) {
    static_assert(noexcept(velo::parameters::like(name)));
    return velo::parameters::like(name);
}

const char* velo_parameter_instead_of(const char* name) {
    static_assert(noexcept(velo::parameters::instead_of(name)));
    return velo::parameters::instead_of(name);
}

void velo_parameter_help(const velo_parameter* parameter, char* text, size_t text_bytes) {
    (void)guarded(text, text_bytes, [&] {
        const std::string help = velo::parameters::help(*parameter);
        std::snprintf(text, text_bytes, "%s", help.c_str());
    });
}

bool velo_parameter_permits(const velo_parameter* parameter, const char* value) {
    static_assert(noexcept(velo::parameters::permits(*parameter, value)));
    return velo::parameters::permits(*parameter, value);
}

void velo_parameter_objection(const velo_parameter* parameter, const char* value, char* text,
                              size_t text_bytes) {
    (void)guarded(text, text_bytes, [&] {
        const std::string objection = velo::parameters::objection(*parameter, value);
        std::snprintf(text, text_bytes, "%s", objection.c_str());
    });
}

velo_config velo_default_config(void) {
    static_assert(noexcept(velo::parameters::engine_defaults()));
    return velo::parameters::engine_defaults();
}

velo_status velo_engine_open(const velo_config* config, velo_engine** engine, char* error,
                             size_t error_bytes) {
    *engine = nullptr;
    return guarded(error, error_bytes, [&] {
        velo::parameters::check(*config);
        *engine = new velo_engine(*config);
    });
}

void velo_engine_hand_messages_to(velo_engine* engine, velo_message_fn message) {
    static_assert(noexcept(engine->engine.retrieval().hand_messages_to(message)));
    engine->engine.retrieval().hand_messages_to(message);
}

void velo_engine_close(velo_engine* engine) {
    if (engine == nullptr) return;
    attempted([&] {
        engine->engine.publish_statistics();
        print_report(engine->engine);
    });
    static_assert(std::is_nothrow_destructible_v<velo_engine>);
    delete engine;
}

void velo_engine_abandon(velo_engine* engine) {
    attempted([&] { engine->engine.abandon(); });
}

void velo_engine_trace_board(velo_engine* engine, const velo_board_event* event) {
    attempted([&] { engine->engine.observer().board(*event); });
}

const void* velo_engine_address(const velo_engine* engine, size_t* bytes) {
    static_assert(noexcept(engine->engine.peers().address().data()));
    *bytes = engine->engine.peers().address().size();
    return engine->engine.peers().address().data();
}

const char* velo_engine_description(const velo_engine* engine) {
    static_assert(noexcept(engine->engine.observer().description().c_str()));
    return engine->engine.observer().description().c_str();
}

bool velo_engine_is_short(const velo_engine* engine) {
    static_assert(noexcept(engine->engine.is_short()));
    return engine->engine.is_short();
}

size_t velo_engine_network_eager_limit(const velo_engine* engine) {
    static_assert(noexcept(engine->engine.remote().eager_limit()));
    return engine->engine.remote().eager_limit();
}

bool velo_address_is_here(const void* address, size_t bytes) {
    velo::fabric::shm::Address copy;
    if (bytes < sizeof copy) return false;
    std::memcpy(&copy, address, sizeof copy);
    std::uint64_t here = 0;
    attempted([&] { here = velo::platform::machine_identity(); });
    return copy.magic == copy.kMagic && here != 0 && copy.file.machine == here;
}

velo_status velo_peer_expect(velo_engine* engine, const void* address, size_t bytes, uint32_t* place,
                             char* error, size_t error_bytes) {
    return guarded(error, error_bytes, [&] {
        velo::fabric::shm::Address copy;
        check_layout({static_cast<const std::byte*>(address), bytes}, copy.kMagic, sizeof copy);
        std::memcpy(&copy, address, sizeof copy);
        *place = engine->engine.peers().expect(copy);
    });
}

velo_status velo_peer_expect_remote(velo_engine* engine, const void* address, size_t bytes, uint32_t* place,
                                    char* error, size_t error_bytes) {
    return guarded(error, error_bytes, [&] {
        using Local = velo::fabric::shm::Address;
        constexpr std::size_t kLocalPart = sizeof(Local);
        auto* first = static_cast<const std::byte*>(address);
        check_layout({first, bytes}, Local::kMagic, kLocalPart);
        *place = engine->engine.remote().expect({first + kLocalPart, bytes - kLocalPart});
    });
}

velo_peer* velo_peer_at(velo_engine* engine, uint32_t place) {
    return guarded(engine, [&] { return engine->engine.peers().get(place); });
}

velo_peer* velo_peer_nobody(velo_engine* engine) {
    static_assert(noexcept(&engine->engine.departures().null_peer()));
    return &engine->engine.departures().null_peer();
}

velo_status velo_peer_connect(velo_engine* engine, const void* address, size_t bytes, velo_peer** peer,
                              char* error, size_t error_bytes) {
    uint32_t place;
    *peer = nullptr;
    const velo_status status = velo_peer_expect(engine, address, bytes, &place, error, error_bytes);
    if (status != VELO_OK) return status;
    return guarded(error, error_bytes, [&] { *peer = engine->engine.peers().get(place); });
}

// No more arguments than registers, and a jump to what is seldom needed, so that nothing is saved on the
// stack.
velo_status velo_send_now(velo_peer* peer, uint8_t tag, const void* header, size_t header_bytes,
                          const void* payload, size_t payload_bytes) {
    const velo::fabric::MessageView message = view_of(header, header_bytes, payload, payload_bytes);
    static_assert(noexcept(engine_of(*peer).try_send_fast(*peer, tag, message)));
    if (engine_of(*peer).try_send_fast(*peer, tag, message)) [[likely]]
        return VELO_OK;
    return send_other(peer, tag, header, header_bytes, payload, payload_bytes);
}

velo_status velo_send_start(velo_engine* engine, velo_peer* peer, velo_send* send) {
    return guarded(engine, [&] {
        if (peer->died.load(std::memory_order_relaxed)) [[unlikely]] {
            engine->engine.large().failed(*peer, 0);
            return VELO_ERR_REMOTE;
        }
        return engine->engine.send_start(*peer, send);
    });
}

uint32_t velo_shared_processors(const char* const* localities, uint32_t count) {
    std::uint32_t processors = velo::platform::online_processors();
    (void)velo::contained(
        [&] {
            processors = velo::platform::shared_processors({localities, count});
        },
        [](velo_status, const char*) {});
    return processors;
}

void velo_death_text(uint64_t process_name, char* text, size_t bytes) {
    static_assert(noexcept(velo::platform::death_array(process_name)));
    (void)std::snprintf(text, bytes, "%s", velo::platform::death_array(process_name).data());
}

bool velo_peer_has_died(const velo_peer* peer) {
    static_assert(noexcept(peer->died.load(std::memory_order_relaxed)));
    return peer->died.load(std::memory_order_relaxed);
}

size_t velo_peer_queued_bytes(const velo_peer* peer) {
    static_assert(noexcept(peer->queue.bytes()));
    return peer->queue.bytes();
}

velo_status velo_get(velo_engine* engine, velo_peer* peer, void* local, uint64_t remote, size_t bytes,
                     velo_rma_done_fn done, void* argument) {
    return guarded(engine, [&] {
        return engine->engine.large().get(*peer, {local, remote, bytes, {done, argument}});
    });
}

velo_status velo_get_deposited(velo_engine* engine, velo_peer* peer, uint32_t deposit, void* local,
                               uint64_t remote, size_t bytes, velo_rma_done_fn done, void* argument) {
    return guarded(engine, [&] {
        return engine->engine.large().get_deposited(*peer, deposit, {local, remote, bytes, {done, argument}});
    });
}

uint64_t velo_deposit_begin(velo_peer* peer, const void* data, size_t bytes) {
    static_assert(noexcept(engine_of(*peer).large().begin_deposit(*peer, data, bytes)));
    return engine_of(*peer).large().begin_deposit(*peer, data, bytes);
}

void velo_deposit_store(velo_peer* peer, uint64_t deposit) {
    static_assert(noexcept(engine_of(*peer).large().store_deposit(deposit)));
    engine_of(*peer).large().store_deposit(deposit);
}

void velo_deposit_end(velo_peer* peer, uint64_t deposit) {
    static_assert(noexcept(engine_of(*peer).large().end_deposit(*peer, deposit)));
    engine_of(*peer).large().end_deposit(*peer, deposit);
}

size_t velo_routes_text(const char* choice, const char* eager_limit, char* text, size_t room) {
    std::size_t bytes = 0;
    const auto tell = [&](std::string_view told) {
        bytes = told.size();
        if (room > 0) text[told.copy(text, room - 1)] = '\0';
    };
    (void)velo::contained(
        [&] {
            const velo_parameter* const limit = velo::parameters::like("btl_velo_eager_limit");
            if (eager_limit != nullptr && !velo::parameters::permits(*limit, eager_limit))
                throw velo::Failure(VELO_ERR_PARAMETER, velo::parameters::objection(*limit, eager_limit));
            const std::size_t eager = eager_limit == nullptr ? 0 : std::strtoull(eager_limit, nullptr, 0);
            std::string source;
            const std::string processor = velo::routes::processor_name();
            const auto table =
                velo::routes::Table::choose(choice, velo::routes::calibration_file(), processor, &source);
            tell(source + "\n" + processor + "\n" + table.ranges(velo::routes::eager_bytes(eager)) + "\n" +
                 table.text());
            return VELO_OK;
        },
        [&](velo_status, const char* objection) { tell(objection); });
    return bytes;
}

velo_status velo_put(velo_engine* engine, velo_peer* peer, const void* local, uint64_t remote, size_t bytes,
                     velo_rma_done_fn done, void* argument) {
    return guarded(engine, [&] {
        return engine->engine.large().put(*peer, local, remote, bytes, {done, argument});
    });
}

velo_status velo_atomic_start(velo_engine* engine, velo_peer* peer, velo_atomic operation, unsigned width,
                              uint64_t remote, uint64_t operand, uint64_t compare, velo_rma_done_fn done,
                              void* argument) {
    return guarded(engine, [&] {
        return engine->engine.large().atomic(*peer, operation, width, remote, operand, compare,
                                             {done, argument});
    });
}

velo_status velo_atomic_here(velo_atomic operation, unsigned width, uint64_t address, uint64_t operand,
                             uint64_t compare, uint64_t* old_value) {
    static_assert(noexcept(velo::rma::atomic_valid(operation, width, address))&& noexcept(
        velo::rma::atomic_execute(operation, width, address, operand, compare)));
    if (!velo::rma::atomic_valid(operation, width, address)) return VELO_ERR_UNSUPPORTED;
    *old_value = velo::rma::atomic_execute(operation, width, address, operand, compare);
    return VELO_OK;
}

uint32_t velo_message_source(const velo_engine* engine) {
    static_assert(noexcept(engine->engine.retrieval().arriving()));
    return engine->engine.retrieval().arriving();
}

bool velo_message_is_remote(const velo_engine* engine) {
    static_assert(noexcept(engine->engine.remote().has(engine->engine.retrieval().arriving())));
    return engine->engine.remote().has(engine->engine.retrieval().arriving());
}

int velo_progress(velo_engine* engine) {
    return engine->engine.progress();
}

void velo_extend_progress(velo_engine* engine, uint32_t polls) {
    static_assert(noexcept(engine->engine.extend_progress(polls)));
    engine->engine.extend_progress(polls);
}

const velo_counter* velo_counter_at(unsigned index) {
    static_assert(noexcept(velo::engine::counter_at(index)));
    return velo::engine::counter_at(index);
}

uint64_t velo_counter_value(const velo_engine* engine, unsigned index) {
    uint64_t value = 0;
    attempted([&] { value = velo::engine::counter_value(engine->engine, index); });
    return value;
}

uint32_t velo_counter_peers(const velo_engine* engine) {
    uint32_t peers = 0;
    attempted([&] { peers = velo::engine::counter_peers(engine->engine); });
    return peers;
}

void velo_counter_of_peers(const velo_engine* engine, unsigned index, uint64_t* values, uint32_t count) {
    attempted([&] { velo::engine::counter_of_peers(engine->engine, index, values, count); });
}

void velo_dump(velo_engine* engine, const velo_peer* peer, int level) {
    attempted([&] { engine->engine.observer().dump(peer, level); });
}

}  // extern "C"
