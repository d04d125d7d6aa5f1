// The C interface of schedules: translates handles, catches failures. No logic of its own.
#include "api/velo_goal.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/handle.h"
#include "collectives/algorithms/choice.h"
#include "collectives/algorithms/collectives.h"
#include "collectives/performing/performer.h"
#include "collectives/udp/place.h"
#include "fabric/shm/address.h"
#include "parameters/table.h"
#include "platform/layout.h"

using velo::Failure;
using velo::api::attempted;
using velo::api::guarded;
using velo::performing::Compiled;
using velo::performing::Group;
using velo::performing::Helper;
using velo::performing::LiveRun;
using velo::performing::Performer;
namespace goal = velo::goal;

struct velo_goal_graph {
    velo_goal_graph(uint32_t rank, uint32_t size) : graph(rank, size) {}

    goal::Graph graph;
    bool short_of_memory = false;
};

// It is used by handles of groups until they are closed, too.
struct velo_performer {
    velo_engine* engine = nullptr;
    velo_messenger* messenger = nullptr;
    std::vector<std::byte> address;
    std::vector<uint64_t> elsewhere;  // names of the job's processes on other nodes, ascending
    void (*log)(void* context, int level, const char* text) = nullptr;
    void* log_context = nullptr;
    std::unique_ptr<Helper> helper;  // null: none
    std::unique_ptr<Performer> performer;

    velo_performer() = default;
    velo_performer(const velo_performer&) = delete;
    ~velo_performer() {
        if (helper != nullptr) helper->stop();
        velo_messenger_close(messenger);
        velo_engine_close(engine);
    }
};

struct velo_goal_group {
    velo_performer* performer;
    std::shared_ptr<Group> group;
};

static_assert(VELO_GOAL_ANY == goal::kAny && VELO_GOAL_NO_VERTEX == goal::kNoVertex);
static_assert(VELO_GOAL_ARGUMENTS == goal::kArguments && VELO_GOAL_SCRATCH == goal::kScratch &&
              VELO_GOAL_ABSOLUTE == goal::kAbsolute && VELO_GOAL_NOWHERE == goal::kNowhere);
static_assert(VELO_GOAL_OWN == static_cast<int>(goal::Operator::kOwn) &&
              VELO_GOAL_COPY == static_cast<int>(goal::Operator::kCopy) &&
              VELO_GOAL_FLOAT == static_cast<int>(goal::Type::kFloat));

namespace {

struct Counter {
    const char* name;
    uint64_t (*value)(const velo_performer_state& state);
};
constexpr Counter kCounters[] = {
#define VELO_MULTICAST_COUNTER(kind, name, help) \
    {#name, [](const velo_performer_state& state) { return state.multicast.name; }},
#define VELO_SCHEDULE_COUNTER(kind, name, help, member) \
    {#name, [](const velo_performer_state& state) { return state.member; }},
#include "types/counters.inc"
};

// They come first.
constexpr std::size_t kMulticastCounters = sizeof(velo_multicast_state) / sizeof(uint64_t);

// Before an address: how much of it is the engine's.
struct AddressHeader {
    static constexpr std::uint64_t kMagic = 0x31476f6c6556;  // "VeloG1"
    std::uint64_t magic, engine_bytes;
};

void choose(velo::fabric::udp::ChannelConfig& channel, const velo_coll_config& chosen) {
    using namespace velo::multicast;
    const auto* const scheme = std::ranges::find(kSchemeNames, chosen.multicast_scheme);
    channel.scheme = static_cast<Scheme>(scheme - std::begin(kSchemeNames));
    if (std::string_view(chosen.multicast_shares) == "static") channel.shares = Shares::kStatic;
    channel.window = std::bit_ceil(chosen.multicast_window);
    channel.ack_every = chosen.multicast_ack_every;
    if (chosen.multicast_co_roots >= 0)
        channel.co_roots = static_cast<std::uint32_t>(chosen.multicast_co_roots);
}

goal::Place place_of(const velo_goal_place& place) {
    return {place.offset, place.space};
}

std::vector<goal::Piece> pieces_of(const velo_goal_piece* pieces, uint32_t count) {
    std::vector<goal::Piece> list;
    for (uint32_t i = 0; i < count; ++i) list.push_back({place_of(pieces[i].place), pieces[i].bytes});
    return list;
}

// Adds something; what fails is told by compile.
template <typename Action>
velo_goal_vertex guarded(velo_goal_graph* graph, Action action) {
    velo_goal_vertex vertex = VELO_GOAL_NO_VERTEX;
    graph->short_of_memory |=
        velo::contained([&] { vertex = action(graph->graph); }, [](velo_status, const char*) {}) != VELO_OK;
    return vertex;
}

// Of a group: a performer whose engine fails is of no use any more.
template <typename Action>
auto performed(velo_performer* performer, Action action) {
    return guarded(performer->engine, [&] { return action(*performer->performer); });
}

std::shared_ptr<Compiled>* compiled_of(velo_goal_schedule* schedule) {
    return reinterpret_cast<std::shared_ptr<Compiled>*>(schedule);
}
LiveRun* run_of(velo_goal_run* run) {
    return reinterpret_cast<LiveRun*>(run);
}

velo_status connect(velo_performer* performer, const void* address, size_t bytes, velo_peer** peer,
                    char* error, size_t error_bytes) {
    AddressHeader header;
    velo::platform::check_layout({static_cast<const std::byte*>(address), bytes}, AddressHeader::kMagic,
                                 sizeof header, "a peer");
    std::memcpy(&header, address, sizeof header);
    const auto* const engine = static_cast<const std::byte*>(address) + sizeof header;
    const size_t rest = bytes - sizeof header;
    if (header.engine_bytes > rest)
        throw Failure(VELO_ERR_PROTOCOL, "the address of a peer's schedules is damaged");
    // Who launches the job says what its nodes are; they may be containers on one machine.
    velo::fabric::shm::Address identity{};
    std::memcpy(&identity, engine, std::min<size_t>(sizeof identity, header.engine_bytes));
    const bool here = !std::ranges::binary_search(performer->elsewhere, identity.process_name) &&
                      velo_address_is_here(engine, header.engine_bytes);
    uint32_t place = 0;
    velo_status status = (here ? velo_peer_expect : velo_peer_expect_remote)(
        performer->engine, engine, header.engine_bytes, &place, error, error_bytes);
    if (status != VELO_OK) return status;
    velo_peer* found = velo_peer_at(performer->engine, place);
    if (found == nullptr) return VELO_ERR_RESOURCE;
    status = velo_messenger_connect(performer->messenger, found, engine + header.engine_bytes,
                                    rest - header.engine_bytes);
    if (status == VELO_OK) *peer = found;
    return status;
}

const char* reason_of(velo_status status) noexcept {
    switch (status) {
        case VELO_ERR_MISMATCH:
            return "the message was longer or shorter than its receive";
        case VELO_ERR_UNREACHABLE:
            return "there is no way to that rank";
        case VELO_ERR_RESOURCE:
            return "there is no more memory";
        case VELO_ERR_REMOTE:
            return "the transfer has failed";
        case VELO_ERR_PROTOCOL:
            return "that rank has called another operation";
        default:
            return "a call of the schedule has failed";
    }
}

}  // namespace

extern "C" {

velo_status velo_goal_graph_new(uint32_t rank, uint32_t size, velo_goal_graph** graph) {
    *graph = nullptr;
    if (rank >= size) return VELO_ERR_PARAMETER;
    attempted([&] { *graph = new velo_goal_graph(rank, size); });
    return *graph != nullptr ? VELO_OK : VELO_ERR_RESOURCE;
}

void velo_goal_graph_free(velo_goal_graph* graph) {
    static_assert(std::is_nothrow_destructible_v<velo_goal_graph>);
    delete graph;
}

velo_goal_vertex velo_goal_send(velo_goal_graph* graph, velo_goal_place from, uint64_t bytes, uint32_t to,
                                uint32_t tag) {
    return guarded(graph, [&](goal::Graph& g) { return g.send(place_of(from), bytes, to, tag); });
}

velo_goal_vertex velo_goal_receive(velo_goal_graph* graph, velo_goal_place into, uint64_t bytes,
                                   uint32_t from, uint32_t tag) {
    return guarded(graph, [&](goal::Graph& g) { return g.receive(place_of(into), bytes, from, tag); });
}

velo_goal_vertex velo_goal_send_pieces(velo_goal_graph* graph, const velo_goal_piece* pieces, uint32_t count,
                                       uint32_t to, uint32_t tag) {
    return guarded(graph, [&](goal::Graph& g) { return g.send(pieces_of(pieces, count), to, tag); });
}

velo_goal_vertex velo_goal_receive_pieces(velo_goal_graph* graph, const velo_goal_piece* pieces,
                                          uint32_t count, uint32_t from, uint32_t tag) {
    return guarded(graph, [&](goal::Graph& g) { return g.receive(pieces_of(pieces, count), from, tag); });
}

velo_goal_vertex velo_goal_combine(velo_goal_graph* graph, const velo_goal_combination* combination) {
    return guarded(graph, [&](goal::Graph& g) {
        const velo_goal_combination& asked = *combination;
        goal::Combination c;
        c.first = g.operand(pieces_of(asked.first, asked.first_count));
        c.second = g.operand(pieces_of(asked.second, asked.second_count));
        c.result = g.operand(pieces_of(asked.result, asked.result_count));
        c.elements = asked.elements;
        c.op = static_cast<goal::Operator>(asked.op);
        c.type = static_cast<goal::Type>(asked.type);
        c.width = static_cast<std::uint8_t>(asked.width <= 64 ? asked.width : 0);
        return g.combine(c);
    });
}

velo_goal_vertex velo_goal_call(velo_goal_graph* graph, uint32_t function) {
    return guarded(graph, [&](goal::Graph& g) { return g.call(function); });
}

velo_goal_vertex velo_goal_calculate(velo_goal_graph* graph, uint64_t ns, uint8_t cpu) {
    return guarded(graph, [&](goal::Graph& g) { return g.calculate(ns, cpu); });
}

void velo_goal_requires(velo_goal_graph* graph, velo_goal_vertex later, velo_goal_vertex earlier) {
    (void)guarded(graph, [&](goal::Graph& g) { return g.needs(later, earlier), later; });
}

void velo_goal_requires_start(velo_goal_graph* graph, velo_goal_vertex later, velo_goal_vertex earlier) {
    (void)guarded(graph, [&](goal::Graph& g) { return g.needs_start(later, earlier), later; });
}

void velo_goal_scratch(velo_goal_graph* graph, uint64_t bytes) {
    (void)guarded(graph, [&](goal::Graph& g) { return g.scratch(bytes), 0; });
}

bool velo_goal_is_legal(velo_goal_operator op, velo_goal_type type, uint32_t width) {
    bool legal = false;
    attempted([&] {
        legal = goal::is_legal(static_cast<goal::Operator>(op), static_cast<goal::Type>(type), width);
    });
    return legal;
}

velo_status velo_goal_compile(const velo_goal_graph* graph, velo_goal_schedule** schedule, char* error,
                              size_t error_bytes) {
    *schedule = nullptr;
    return guarded(error, error_bytes, [&] {
        if (graph->short_of_memory) throw std::bad_alloc();
        auto compiled = std::make_unique<std::shared_ptr<Compiled>>(velo::performing::compiled(graph->graph));
        *schedule = reinterpret_cast<velo_goal_schedule*>(compiled.release());
    });
}

void velo_goal_schedule_free(velo_goal_schedule* schedule) {
    static_assert(std::is_nothrow_destructible_v<std::shared_ptr<Compiled>>);
    delete compiled_of(schedule);
}

const char* velo_goal_algorithm_at(unsigned index, const char** operation) {
    const char* name = nullptr;
    attempted([&] {
        const auto all = goal::collectives::algorithms();
        if (index >= all.size()) return;
        *operation = all[index].operation.data();
        name = all[index].name.data();
    });
    return name;
}

velo_coll_config velo_default_coll_config(void) {
    static_assert(noexcept(velo::parameters::coll_defaults()));
    return velo::parameters::coll_defaults();
}

velo_performer_config velo_default_performer_config(void) {
    static_assert(noexcept(velo::parameters::engine_defaults()));
    static_assert(noexcept(velo::parameters::messenger_defaults()));
    return {velo::parameters::engine_defaults(), velo::parameters::messenger_defaults(), nullptr, 0};
}

velo_status velo_performer_open(const velo_performer_config* config, velo_performer** performer, char* error,
                                size_t error_bytes) {
    *performer = nullptr;
    return guarded(error, error_bytes, [&] {
        std::string wrong;
        std::optional<goal::collectives::Choices> choices =
            goal::collectives::Choices::load(config->choices == nullptr ? "" : config->choices, &wrong);
        if (!choices) throw Failure(VELO_ERR_PARAMETER, "coll_velo_choices: " + wrong);
        auto opened = std::make_unique<velo_performer>();
        velo_config engine = config->engine;
        opened->elsewhere.assign(engine.remote_peers, engine.remote_peers + engine.remote_peer_count);
        engine.message = [](void*, std::uint8_t, void*, std::size_t) {};
        engine.gone = nullptr;
        if (config->helper > 0) {
            engine.threads = true;
            opened->helper = std::make_unique<Helper>(engine);
        }
        opened->log = engine.log;
        opened->log_context = engine.context;
        velo_status status = velo_engine_open(&engine, &opened->engine, error, error_bytes);
        if (status == VELO_OK)
            status = velo_messenger_open(opened->engine, &config->messages, &opened->messenger, error,
                                         error_bytes);
        if (status != VELO_OK) throw Failure(status, std::string(error));
        opened->performer = std::make_unique<Performer>(
            opened->engine->engine, velo::api::messenger_of(opened->messenger), std::move(*choices));
        if (opened->helper != nullptr) opened->performer->have_help(*opened->helper, config->helper);
        AddressHeader header{AddressHeader::kMagic, 0};
        std::size_t messenger_bytes = 0;
        const auto* e =
            static_cast<const std::byte*>(velo_engine_address(opened->engine, &header.engine_bytes));
        const auto* m =
            static_cast<const std::byte*>(velo_messenger_address(opened->messenger, &messenger_bytes));
        const auto* h = reinterpret_cast<const std::byte*>(&header);
        opened->address.assign(h, h + sizeof header);
        opened->address.insert(opened->address.end(), e, e + header.engine_bytes);
        opened->address.insert(opened->address.end(), m, m + messenger_bytes);
        *performer = opened.release();
    });
}

void velo_performer_close(velo_performer* performer) {
    static_assert(std::is_nothrow_destructible_v<velo_performer>);
    delete performer;
}

void velo_performer_abandon(velo_performer* performer) {
    attempted([&] {
        if (performer->helper != nullptr) performer->helper->abandon();
        performer->engine->engine.abandon();
    });
}

void velo_performer_pair_idle_with(velo_performer* performer, velo_engine* engine) {
    attempted([&] { performer->engine->engine.idle().pair_with(engine->engine.idle()); });
}

void velo_performer_reset_idle(velo_performer* performer) {
    static_assert(noexcept(performer->engine->engine.idle().reset()));
    performer->engine->engine.idle().reset();
}

const void* velo_performer_address(const velo_performer* performer, size_t* bytes) {
    static_assert(noexcept(performer->address.data()));
    *bytes = performer->address.size();
    return performer->address.data();
}

velo_status velo_performer_connect(velo_performer* performer, const void* address, size_t bytes,
                                   velo_peer** peer, char* error, size_t error_bytes) {
    *peer = nullptr;
    velo_status status = VELO_OK;
    const velo_status caught = guarded(
        error, error_bytes, [&] { status = connect(performer, address, bytes, peer, error, error_bytes); });
    return caught != VELO_OK ? caught : status;
}

bool velo_multicast_interface(const char* name, uint32_t* address, uint32_t* mtu) {
    velo::fabric::udp::Interface found;
    attempted([&] { found = velo::fabric::udp::interface_named(name, std::getenv("UCX_NET_DEVICES")); });
    *address = found.address;
    *mtu = found.mtu;
    return found.address != 0;
}

bool velo_multicast_new_key(uint8_t key[16]) {
    bool made = false;
    attempted([&] { made = getrandom(key, 16, 0) == 16; });
    return made;
}

velo_status velo_performer_multicast(velo_performer* performer, const velo_multicast_config* config,
                                     char* error, size_t error_bytes) {
    return guarded(error, error_bytes, [&] {
        if (config->me >= config->count || config->count < 2)
            throw Failure(VELO_ERR_PARAMETER, "a multicast group has two members at least");
        velo::fabric::udp::ChannelConfig channel;
        std::memcpy(channel.key.data(), config->key, channel.key.size());
        channel.me = config->me;
        channel.members.assign(config->addresses, config->addresses + config->count);
        channel.ranks.assign(config->ranks, config->ranks + config->count);
        channel.mtu = config->mtu;
        choose(channel, config->chosen != nullptr ? *config->chosen : velo::parameters::coll_defaults());
        channel.silence_ns = std::uint64_t{config->stall_warning} * 1'000'000'000;
        channel.log = performer->log;
        channel.context = performer->log_context;
        channel.attached = config->led;
        if (!config->led)
            performer->performer->multicast(channel);
        else if (config->attach_after_us > 0)
            performer->performer->be_led(channel, std::uint64_t{config->attach_after_us} * 1000);
    });
}

void velo_performer_observe(velo_performer* performer, velo_performer_state* state) {
    *state = {};
    attempted([&] { *state = performer->performer->observe(); });
}

const char* velo_performer_counter_at(unsigned index) {
    const char* name = nullptr;
    attempted([&] { name = index < kMulticastCounters ? kCounters[index].name : nullptr; });
    return name;
}

uint64_t velo_performer_counter(velo_performer* performer, const char* name) {
    uint64_t value = 0;
    attempted([&] {
        const auto counter = std::ranges::find(kCounters, std::string_view(name), &Counter::name);
        if (performer != nullptr && counter != std::end(kCounters))
            value = counter->value(performer->performer->observe());
    });
    return value;
}

velo_status velo_goal_group_open(velo_performer* performer, uint32_t id, uint32_t rank, uint32_t size,
                                 velo_goal_reach_fn reach, void* context, velo_goal_group** group) {
    *group = nullptr;
    if (id >= 2 * VELO_GOAL_FIRST_FREE_ID || rank >= size || size > 1U << velo::performing::kRankBits)
        return VELO_ERR_PARAMETER;
    attempted([&] {
        *group = new velo_goal_group{performer, std::make_shared<Group>(id, rank, size, reach, context)};
    });
    return *group != nullptr ? VELO_OK : VELO_ERR_RESOURCE;
}

velo_status velo_goal_new_name(velo_performer* performer, uint64_t members, uint32_t id, uint64_t* name) {
    return guarded(nullptr, 0, [&] { *name = performer->performer->new_name(members, id); });
}

void velo_goal_group_name(velo_goal_group* group, uint64_t name) {
    attempted([&] { group->group->name = name; });
}

void velo_goal_group_close(velo_goal_group* group) {
    static_assert(std::is_nothrow_destructible_v<velo_goal_group>);
    if (group == nullptr) return;
    attempted([&] { group->performer->performer->close(*group->group); });
    delete group;
}

velo_status velo_goal_group_schedule(velo_goal_group* group, const velo_goal_request* request,
                                     velo_goal_schedule** schedule) {
    *schedule = nullptr;
    return guarded(nullptr, 0, [&] {
        *schedule = reinterpret_cast<velo_goal_schedule*>(
            group->performer->performer->schedule(*group->group, *request));
    });
}

velo_status velo_goal_group_keep(velo_goal_group* group, const velo_goal_request* request,
                                 velo_goal_schedule** kept) {
    *kept = nullptr;
    return guarded(nullptr, 0, [&] {
        auto own = std::make_unique<std::shared_ptr<Compiled>>();
        *own = group->performer->performer->keep(*group->group, *request);
        *kept = reinterpret_cast<velo_goal_schedule*>(own.release());
    });
}

uint32_t velo_goal_group_lane(velo_goal_group* group) {
    uint32_t lane = 0;
    attempted([&] { lane = group->performer->performer->take_lane(*group->group); });
    return lane;
}

velo_status velo_goal_run_start(velo_goal_group* group, velo_goal_schedule* schedule,
                                const velo_goal_start* start, velo_goal_run** run) {
    *run = nullptr;
    LiveRun* prepared = nullptr;
    const velo_status status = guarded(nullptr, 0, [&] {
        prepared = group->performer->performer->prepare(group->group, *compiled_of(schedule), *start);
    });
    if (status != VELO_OK) return status;
    *run = reinterpret_cast<velo_goal_run*>(prepared);
    return performed(group->performer, [&](Performer& performer) {
        performer.begin(prepared);
        return VELO_OK;
    });
}

void velo_goal_run_skip(velo_goal_group* group) {
    (void)guarded(group->performer->engine, [&] {
        group->performer->performer->skip(*group->group);
        return VELO_OK;
    });
}

bool velo_goal_run_is_over(const velo_goal_run* run) {
    static_assert(noexcept(reinterpret_cast<const LiveRun*>(run)->over.load()));
    return reinterpret_cast<const LiveRun*>(run)->over.load(std::memory_order_acquire);
}

const char* velo_goal_reason(velo_status status) {
    static_assert(noexcept(reason_of(status)));
    return reason_of(status);
}

velo_goal_result velo_goal_run_end(velo_goal_run* run) {
    velo_goal_result result{VELO_ERR_RESOURCE, VELO_GOAL_NO_VERTEX, VELO_GOAL_ANY, VELO_GOAL_ANY};
    attempted([&] { result = run_of(run)->performer->end(run_of(run)); });
    return result;
}

int velo_goal_progress(velo_performer* performer) {
    return guarded(performer->engine, [&] { return performer->performer->progress(); });
}

}  // extern "C"
