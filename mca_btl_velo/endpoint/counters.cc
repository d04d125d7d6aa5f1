#include "endpoint/counters.h"

#include <algorithm>
#include <iterator>

#include "platform/monotonic.h"

namespace velo::endpoint {
namespace {

struct Counter {
    velo_counter description;
    std::uint64_t (*value)(const Engine& engine);                                     // of the process, or
    std::uint64_t (*of_peer)(const Engine& engine, flow::PeerIndex index) = nullptr;  // of a peer
};

template <auto Member>
std::uint64_t statistic(const Engine& engine) {
    return engine.statistics().*Member;
}
template <auto Member>
std::uint64_t policy_count(const Engine& engine) {
    return engine.policy().counters().*Member;
}

template <typename Value>
std::uint64_t sum_over_peers(const Engine& engine, Value value) {
    std::uint64_t sum = 0;
    const std::uint32_t entries = engine.policy().config().total_peers() + engine.limic_peers();
    for (flow::PeerIndex index = 0; index < entries; ++index) {
        if (const Peer* peer = engine.known_peer(index); peer != nullptr) sum += value(*peer);
    }
    return sum;
}

std::uint64_t credits_of(const Engine& engine, flow::PeerIndex index) {
    const Peer* peer = engine.known_peer(index);
    return peer != nullptr && peer->policy().limited() ? peer->ledger().credits(*peer) : 0;
}
std::uint64_t stalled_ns_of(const Engine& engine, flow::PeerIndex index) {
    const Peer* peer = engine.known_peer(index);
    return peer != nullptr && peer->stall.count > 0 ? peer->stall.ns_until(platform::monotonic_ns()) : 0;
}

using fabric::shm::Statistics;
using flow::Counters;

constexpr Counter kCounters[] = {
    {{"messages_sent", "Messages that Open MPI gave to this process's transport", VELO_COUNTER_SUM, false},
     statistic<&Statistics::messages_sent>},
    {{"messages_delayed", "Messages that had to wait for credits or for a free slot", VELO_COUNTER_SUM,
      false},
     statistic<&Statistics::messages_delayed>},
    {{"data_packets", "Data packets sent, 64 bytes each", VELO_COUNTER_SUM, false},
     statistic<&Statistics::data_packets>},
    {{"credit_packets", "Credit packets sent", VELO_COUNTER_SUM, false},
     policy_count<&Counters::credit_packets>},
    {{"credits_in_packets", "Credits returned in credit packets", VELO_COUNTER_SUM, false},
     policy_count<&Counters::credits_in_packets>},
    {{"piggybacks", "Data packets that returned credits", VELO_COUNTER_SUM, false},
     policy_count<&Counters::piggybacks>},
    {{"piggybacked_credits", "Credits returned in data packets", VELO_COUNTER_SUM, false},
     policy_count<&Counters::piggybacked_credits>},
    {{"requests", "Compulsory credit return requests sent", VELO_COUNTER_SUM, false},
     policy_count<&Counters::requests>},
    {{"responses", "Compulsory credit return responses sent", VELO_COUNTER_SUM, false},
     policy_count<&Counters::responses>},
    {{"steals", "Times that a busy sender took quota, or a window, from an idle one", VELO_COUNTER_SUM,
      false},
     policy_count<&Counters::steals>},
    {{"stolen_slots", "Slots of quota moved by steals", VELO_COUNTER_SUM, false},
     policy_count<&Counters::stolen_slots>},
    {{"limic_packets", "Packets sent on the LiMIC-like path, which takes no credits", VELO_COUNTER_SUM,
      false},
     statistic<&Statistics::limic_packets>},
    {{"refusals", "Packets that a receiver refused and that were sent again (rnr)", VELO_COUNTER_SUM, false},
     policy_count<&Counters::refusals>},
    {{"grown_buffers", "Buffers that peers got beyond their first ones (mvapich_dynamic)", VELO_COUNTER_SUM,
      false},
     policy_count<&Counters::grown_buffers>},
    {{"stalls", "Times that messages for a peer began to wait for credits or for a free slot",
      VELO_COUNTER_SUM, false},
     [](const Engine& engine) { return engine.stalls().count(); }},
    {{"stalled_time", "Nanoseconds that messages waited for credits or for a free slot, all peers added up",
      VELO_COUNTER_TIME, false},
     [](const Engine& engine) {
         return sum_over_peers(engine, [&](const Peer& peer) { return stalled_ns_of(engine, peer.index); });
     }},
    {{"credits",
      "Packets that may be sent now without waiting, all peers added up; 0 where nothing is counted",
      VELO_COUNTER_LEVEL, false},
     [](const Engine& engine) {
         return sum_over_peers(engine, [&](const Peer& peer) { return credits_of(engine, peer.index); });
     }},
    {{"queued_bytes", "Bytes that wait for credits or for a free slot now", VELO_COUNTER_LEVEL, false},
     [](const Engine& engine) {
         return sum_over_peers(engine, [](const Peer& peer) { return peer.queue.bytes(); });
     }},
    {{"mailbox_high_water", "Most packets seen in this process's mailbox at once (sampled)",
      VELO_COUNTER_HIGH_WATER, false},
     statistic<&Statistics::mailbox_high_water>},
    {{"peer_names", "Who the values of the peers are of: job in the upper 32 bits, rank in the lower",
      VELO_COUNTER_CONSTANT, true},
     nullptr,
     [](const Engine& engine, flow::PeerIndex index) { return engine.peer_name(index); }},
    {{"peer_credits", "Packets that may be sent to the peer now; 0 where nothing is counted",
      VELO_COUNTER_LEVEL, true},
     nullptr,
     credits_of},
    {{"peer_queued_bytes", "Bytes for the peer that wait for credits or for a free slot now",
      VELO_COUNTER_LEVEL, true},
     nullptr,
     [](const Engine& engine, flow::PeerIndex index) -> std::uint64_t {
         const Peer* peer = engine.known_peer(index);
         return peer != nullptr ? peer->queue.bytes() : 0;
     }},
    {{"peer_stalls", "Times that messages for the peer began to wait for credits or for a free slot",
      VELO_COUNTER_SUM, true},
     nullptr,
     [](const Engine& engine, flow::PeerIndex index) -> std::uint64_t {
         const Peer* peer = engine.known_peer(index);
         return peer != nullptr ? peer->stall.count : 0;
     }},
    {{"peer_stalled_time", "Nanoseconds that messages for the peer waited for credits or for a free slot",
      VELO_COUNTER_TIME, true},
     nullptr,
     stalled_ns_of},
};

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
    while (spares > 0 && engine.known_peer(flow.peers + spares - 1) == nullptr) --spares;
    return flow.peers + engine.limic_peers() + spares;
}

void counter_of_peers(const Engine& engine, unsigned index, std::uint64_t* values, std::uint32_t count) {
    std::fill_n(values, count, 0);
    if (index >= std::size(kCounters) || kCounters[index].of_peer == nullptr) return;
    const std::uint32_t peers = std::min(count, counter_peers(engine));
    for (std::uint32_t place = 0; place < peers; ++place)
        values[place] = kCounters[index].of_peer(engine, directory_index(engine, place));
}

}  // namespace velo::endpoint
