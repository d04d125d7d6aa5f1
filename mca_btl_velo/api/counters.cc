#include "api/counters.h"

#include <algorithm>
#include <iterator>

#include "collectives/board/member.h"
#include "platform/monotonic.h"

namespace velo::engine {
namespace {

template <typename Value>
std::uint64_t sum_over_peers(const Engine& engine, Value value) {
    std::uint64_t sum = 0;
    const std::uint32_t entries = engine.policy().config().total_peers() + engine.limic_peers();
    for (flow::PeerIndex index = 0; index < entries; ++index) sum += value(engine, index);
    return sum;
}

// Of the rows VELO_PEER_COUNTER.
std::uint64_t peer_names(const Engine& engine, flow::PeerIndex index) {
    return engine.peers().name_at(index);
}
std::uint64_t peer_credits(const Engine& engine, flow::PeerIndex index) {
    const Peer* peer = engine.peers().find(index);
    return peer != nullptr && peer->policy().limited() ? peer->ledger().credits(*peer) : 0;
}
std::uint64_t peer_queued_bytes(const Engine& engine, flow::PeerIndex index) {
    const Peer* peer = engine.peers().find(index);
    return peer != nullptr ? peer->queue.bytes() : 0;
}
std::uint64_t peer_stalls(const Engine& engine, flow::PeerIndex index) {
    const Peer* peer = engine.peers().find(index);
    return peer != nullptr ? peer->stall.count : 0;
}
std::uint64_t peer_stalled_time(const Engine& engine, flow::PeerIndex index) {
    const Peer* peer = engine.peers().find(index);
    return peer != nullptr && peer->stall.count > 0 ? peer->stall.ns_until(platform::monotonic_ns()) : 0;
}

std::uint64_t peer_far(const Engine& engine, flow::PeerIndex index) {
    const Peer* peer = engine.peers().find(index);
    return peer != nullptr && peer->proximity.far();
}

// Of the rows VELO_READ_COUNTER.
std::uint64_t far_peers(const Engine& engine) {
    return sum_over_peers(engine, peer_far);
}
std::uint64_t stalled_time(const Engine& engine) {
    return sum_over_peers(engine, peer_stalled_time);
}
std::uint64_t credits(const Engine& engine) {
    return sum_over_peers(engine, peer_credits);
}
std::uint64_t queued_bytes(const Engine& engine) {
    return sum_over_peers(engine, peer_queued_bytes);
}

std::uint64_t boards(const Engine&) {
    return board::totals().boards;
}
std::uint64_t board_published(const Engine&) {
    return board::totals().published;
}
std::uint64_t board_picked_up(const Engine&) {
    return board::totals().picked_up;
}
std::uint64_t board_direct(const Engine&) {
    return board::totals().direct;
}
std::uint64_t board_credit_waits(const Engine&) {
    return board::totals().credit_waits;
}
std::uint64_t board_requests(const Engine&) {
    return board::totals().requests;
}
std::uint64_t board_long_waits(const Engine&) {
    return board::totals().long_waits;
}

template <auto Member>
std::uint64_t statistic(const Engine& engine) {
    return engine.observer().counts.*Member;
}
template <auto Member>
std::uint64_t flow_count(const Engine& engine) {
    const auto& remote = engine.remote().domain();
    return engine.policy().counters().*Member + (remote ? remote->policy->counters().*Member : 0);
}

struct Counter {
    velo_counter description;
    std::uint64_t (*value)(const Engine& engine);                           // of the process, or
    std::uint64_t (*of_peer)(const Engine& engine, flow::PeerIndex index);  // of a peer
};

#define VELO_ROW_LIVE(kind, name, help) \
    {{#name, help, VELO_COUNTER_##kind, false}, statistic<&fabric::shm::Statistics::name>, nullptr},
#define VELO_ROW_AT_END(kind, name, help)

constexpr Counter kCounters[] = {
#define VELO_FLOW_COUNTER(name, help) \
    {{#name, help, VELO_COUNTER_SUM, false}, flow_count<&flow::Counters::name>, nullptr},
#define VELO_COUNTER(when, ...) VELO_ROW_##when(__VA_ARGS__)
#define VELO_READ_COUNTER(kind, name, help) {{#name, help, VELO_COUNTER_##kind, false}, name, nullptr},
#define VELO_PEER_COUNTER(kind, name, help) {{#name, help, VELO_COUNTER_##kind, true}, nullptr, name},
#define VELO_MULTICAST_COUNTER(kind, name, help) \
    {{#name, help, VELO_COUNTER_##kind, false}, nullptr, nullptr},
#define VELO_SCHEDULE_COUNTER(kind, name, help, member) VELO_MULTICAST_COUNTER(kind, name, help)
#include "types/counters.inc"
};
#undef VELO_ROW_LIVE
#undef VELO_ROW_AT_END

// The directory has the spare places before the peers of the LiMIC-like path.
flow::PeerIndex directory_index(const Engine& engine, std::uint32_t place) {
    const flow::PolicyConfig& flow = engine.policy().config();
    if (place < flow.peers) return place;
    const std::uint32_t limic = engine.limic_peers();
    return place < flow.peers + limic ? place + flow.spare_peers : place - limic;
}

}  // namespace

const velo_counter* counter_at(unsigned index) noexcept {
    return index < std::size(kCounters) ? &kCounters[index].description : nullptr;
}

std::uint64_t counter_value(const Engine& engine, unsigned index) {
    return index < std::size(kCounters) && kCounters[index].value != nullptr ? kCounters[index].value(engine)
                                                                             : 0;
}

std::uint32_t counter_peers(const Engine& engine) {
    const flow::PolicyConfig& flow = engine.policy().config();
    std::uint32_t spares = flow.spare_peers;
    while (spares > 0 && engine.peers().find(flow.peers + spares - 1) == nullptr) --spares;
    return flow.peers + engine.limic_peers() + spares;
}

void counter_of_peers(const Engine& engine, unsigned index, std::uint64_t* values, std::uint32_t count) {
    std::fill_n(values, count, 0);
    if (index >= std::size(kCounters) || kCounters[index].of_peer == nullptr) return;
    const std::uint32_t peers = std::min(count, counter_peers(engine));
    for (std::uint32_t place = 0; place < peers; ++place)
        values[place] = kCounters[index].of_peer(engine, directory_index(engine, place));
}

}  // namespace velo::engine
