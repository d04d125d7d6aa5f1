#include "experiment/literal_policy.h"

#include <algorithm>

namespace velo::sim {

using flow::Emitter;
using flow::PeerIndex;
using wire::PacketKind;

LiteralPolicy::LiteralPolicy(const flow::PolicyConfig& config)
    : Policy(config, {.name = "literal"}), extras_(config.peers) {
    available_ = config.data_slots - config.peers * config.credit_slots;
    for (PeerIndex q = 0; q < config.peers; ++q) {
        peers_[q].current = config.credit_slots;
        peers_[q].threshold = 1;
        extras_[q].later.assign(config.credit_slots, 1);
        extras_[q].intended = config.even_share(q);
        lists_[kLow].push_back(q);
    }
}

void LiteralPolicy::push(PeerIndex from, std::uint32_t lot) {
    std::vector<std::uint32_t>& later = extras_[from].later;
    peers_[from].threshold = later.front();
    later.erase(later.begin());
    later.push_back(lot);
}

// More than is available is given, too (A4); the books then stay at zero.
void LiteralPolicy::give(PeerIndex from, std::uint32_t count) {
    available_ = std::max(available_, count);
    grant(from, count);
}

void LiteralPolicy::due(PeerIndex from, Emitter& out) {
    Extra& extra = extras_[from];
    if (peers_[from].retrieved != peers_[from].threshold) return;  // A7: "both values are the same"
    crossed(from, out);
    const std::uint32_t lot = flow::return_threshold(extra.intended, config_.credit_slots);
    const std::uint32_t granted = extra.blocked ? 0 : std::min(lot, available_);  // A5
    peers_[from].retrieved = 0;
    push(from, lot);  // A1: the computed threshold, whatever was granted
    extra.piggybacked = 0;
    if (granted == 0) return;
    give(from, granted);
    out.emit(from, wire::PacketKind::kCredit, granted);
}

std::uint32_t LiteralPolicy::attach(PeerIndex to, Emitter& out) {
    Extra& extra = extras_[to];
    if (extra.blocked) return 0;
    std::uint32_t count = peers_[to].retrieved;  // A4
    if (peers_[to].retrieved + extra.piggybacked >= peers_[to].threshold) {
        crossed(to, out);
        const std::uint32_t lot = flow::return_threshold(extra.intended, config_.credit_slots);
        count = lot > extra.piggybacked ? lot - extra.piggybacked : 0;
        push(to, lot);
        extra.piggybacked = 0;  // A3: the overshoot is dropped
    } else {
        extra.piggybacked += count;
    }
    peers_[to].retrieved = 0;
    give(to, count);
    return count;
}

void LiteralPolicy::crossed(PeerIndex from, Emitter& out) {
    if (extras_[from].crossings++ < config_.credit_slots) return;
    extras_[from].crossings = 0;
    monitor(from, out);
}

void LiteralPolicy::monitor(PeerIndex from, Emitter& out) {
    const Level now = level(from);
    if (now == kLow) return move(from, kMedium);
    if (now == kMedium) return move(from, kHigh);
    if (lists_[kLow].empty()) {
        lists_[kLow].swap(lists_[kMedium]);
        lists_[kMedium].swap(lists_[kHigh]);
    }
    move(from, kHigh);
    if (!lists_[kLow].empty()) steal(from, lists_[kLow].back(), out);
}

void LiteralPolicy::steal(PeerIndex thief, PeerIndex victim, Emitter& out) {
    const std::uint32_t floor = config_.credit_slots;
    Extra& rich = extras_[thief];
    Extra& poor = extras_[victim];
    const std::uint32_t apart =
        rich.intended > poor.intended ? rich.intended - poor.intended : poor.intended - rich.intended;
    const std::uint32_t moved = std::min(std::max(floor + 1, apart / 2), poor.intended - floor);
    rich.intended += moved;
    poor.intended -= moved;
    counters_.steals += moved > 0;
    counters_.stolen_slots += moved;
    if (poor.intended > floor) return move(victim, kMedium);
    move(victim, kNull);
    if (peers_[victim].current <= floor || poor.blocked) return;
    poor.blocked = poor.request_waiting = true;
    send_waiting_control(victim, out);
}

void LiteralPolicy::send_waiting_control(PeerIndex to, Emitter& out) {
    Extra& extra = extras_[to];
    if (extra.request_waiting && peers_[to].credit > 0) {
        --peers_[to].credit;
        extra.request_waiting = false;
        out.emit(to, PacketKind::kRequest, 0);
    }
    if (extra.response_waiting && peers_[to].credit > 0) {
        const std::uint32_t floor = config_.credit_slots;
        const std::uint32_t excess = peers_[to].credit > floor ? peers_[to].credit - floor : 0;
        peers_[to].credit -= excess + 1;
        extra.response_waiting = false;
        out.emit(to, PacketKind::kResponse, excess);
    }
}

// A8: REQ and RESP are not counted as retrieved packets.
void LiteralPolicy::request_retrieved(PeerIndex from, Emitter& out) {
    extras_[from].response_waiting = true;
    send_waiting_control(from, out);
}

// A2: the thresholds stay as they are.
void LiteralPolicy::response_retrieved(PeerIndex from, std::uint32_t returned, Emitter&) {
    extras_[from].blocked = false;
    peers_[from].current -= std::min(returned, peers_[from].current);
    available_ += returned;
}

LiteralPolicy::Level LiteralPolicy::level(PeerIndex from) const {
    for (const Level l : {kLow, kMedium, kHigh})
        if (std::find(lists_[l].begin(), lists_[l].end(), from) != lists_[l].end()) return l;
    return kNull;
}

void LiteralPolicy::move(PeerIndex from, Level level) {
    for (auto& list : lists_) std::erase(list, from);
    lists_[level].insert(lists_[level].begin(), from);
}

}  // namespace velo::sim
