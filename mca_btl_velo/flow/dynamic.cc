#include "flow/dynamic.h"

#include <algorithm>
#include <cassert>

#include "flow/factory.h"

namespace velo::flow {
namespace {

// A lot, a sum of lots less one and the return of a RESP fit into 16 bits if no intended quota exceeds this:
// the n + 1 lots of a quota q sum to at most q + n + 1, and they exceed current + retrieved by one.
std::uint32_t largest_intended(const PolicyConfig& config) {
    return std::min(std::max(config.intended_max, config.even_share(0)), kMaxQuota - config.credit_slots);
}

}  // namespace

DynamicPolicy::DynamicPolicy(const PolicyConfig& config)
    : Policy(
          config,
          {.name = kDynamicFactory.name, .credits_may_wait = true, .bytes_per_peer = bytes_of_peer(config)}),
      intended_max_(largest_intended(config)),
      lots_reciprocal_(UINT32_MAX / (config.credit_slots + 1) + 1),
      extras_(config.total_peers()),
      rings_(std::size_t{config.total_peers()} * config.credit_slots, 1) {
    available_ = config.data_slots - config.peers * config.credit_slots;
    for (PeerIndex q = config.total_peers(); q-- > 0;) {
        peers_[q].current = config.credit_slots;
        peers_[q].threshold = 1;
        extras_[q].intended = static_cast<std::uint16_t>(config.even_share(q));
        link_front(q, list_of(q < config.peers ? Level::kLow : Level::kNull));
    }
}

// ---- thresholds ---

std::size_t DynamicPolicy::ring_slot(PeerIndex from, std::uint32_t position) const {
    const std::uint32_t n = config_.credit_slots;
    const std::uint32_t slot = extras_[from].oldest + position - 1;
    return std::size_t{from} * n + (slot < n ? slot : slot - n);
}

std::uint32_t DynamicPolicy::threshold(PeerIndex from, std::uint32_t position) const {
    return position == 0 ? peers_[from].threshold : rings_[ring_slot(from, position)];
}

void DynamicPolicy::push_threshold(PeerIndex from, std::uint32_t lot) {
    assert(lot >= 1 && lot <= kMaxQuota);
    std::uint16_t& slot = rings_[ring_slot(from, 1)];
    peers_[from].threshold = slot;
    slot = static_cast<std::uint16_t>(lot);
    Extra& extra = extras_[from];
    extra.oldest = static_cast<std::uint8_t>(extra.oldest + 1U < config_.credit_slots ? extra.oldest + 1 : 0);
}

// Credits that came back without having been used are taken out of the lots that were granted last.
void DynamicPolicy::shrink_thresholds(PeerIndex from, std::uint32_t credits) {
    for (std::uint32_t position = config_.credit_slots; position > 0 && credits > 0; --position) {
        std::uint16_t& lot = rings_[ring_slot(from, position)];
        const std::uint32_t cut = std::min<std::uint32_t>(credits, lot - 1U);
        lot = static_cast<std::uint16_t>(lot - cut);
        credits -= cut;
    }
    const std::uint32_t cut = std::min(credits, peers_[from].threshold - 1);
    peers_[from].threshold -= cut;
    credits -= cut;
    // I9 and the floor I11: the RESP itself is in `retrieved` and n - 1 credits stayed at the sender.
    assert(credits == 0);
}

// By I9 n + 1 lots of T(I) let a sender hold as many as I + n. Where all senders use their quotas, whoever
// comes last would find nothing available, get short lots, reach its thresholds more often than the others,
// seem the most active of all and be given their quotas. So a lot is one less than T(I) where its sender
// would hold more than I: the n + 1 lots then add up to I + 1.
std::uint32_t DynamicPolicy::next_lot(const Extra& extra, std::uint32_t held) const {
    const std::uint32_t lot = intended_lot(extra);
    const bool beyond = held + lot > extra.intended;
    const bool divisible = lot * (config_.credit_slots + 1) == extra.intended + 1U;
    return beyond && !divisible ? lot - 1 : lot;
}

// ---- returning credits (thesis sections 6.5.2 and 6.6) ---

void DynamicPolicy::due(PeerIndex from, Emitter& out) {
    PeerFlow& peer = peers_[from];
    Extra& extra = extras_[from];
    std::uint32_t total = 0;
    while (peer.retrieved >= peer.threshold && available_ > 0) {
        // A blocked sender keeps its floor and no more. What it has used stays in `retrieved` until it
        // answers.
        if (extra.blocked && peer.current >= config_.credit_slots) break;
        if (!extra.blocked) threshold_crossed(from, out);
        peer.retrieved -= peer.threshold;
        const std::uint32_t lot = std::min(next_lot(extra, peer.current + peer.retrieved), available_);
        push_threshold(from, lot);
        extra.piggybacked = 0;
        grant(from, lot);
        total += lot;
    }
    if (total > 0) out.emit(from, wire::PacketKind::kCredit, total);
}

std::uint32_t DynamicPolicy::attach(PeerIndex to, Emitter& out) {
    PeerFlow& peer = peers_[to];
    Extra& extra = extras_[to];
    if (extra.blocked) return 0;

    const std::uint32_t early = extra.piggybacked;
    const std::uint32_t progress = peer.retrieved + early;
    std::uint32_t count = 0;
    if (progress >= peer.threshold && (available_ > 0 || early > 0)) {
        threshold_crossed(to, out);
        const std::uint32_t overshoot = progress - peer.threshold;
        const std::uint32_t lot = next_lot(extra, peer.current + overshoot - early);
        if (lot >= early) {  // by deficit: the rest of the lot leaves now
            count = std::min(lot - early, available_);
            push_threshold(to, early + count);
        } else {  // by excess: the next threshold waits for what left too early
            push_threshold(to, lot);
            peer.threshold += early - lot;
        }
        peer.retrieved = overshoot;
        extra.piggybacked = 0;
    } else {
        count = std::min(peer.retrieved, available_);
        peer.retrieved -= count;
        extra.piggybacked = static_cast<std::uint16_t>(early + count);
    }
    grant(to, count);
    return count;
}

// ---- monitoring (thesis sections 6.4 and 6.5.2) ---

void DynamicPolicy::threshold_crossed(PeerIndex from, Emitter& out) {
    Extra& extra = extras_[from];
    if (extra.crossings < config_.credit_slots) {
        ++extra.crossings;
        return;
    }
    extra.crossings = 0;
    monitor(from, out);
}

void DynamicPolicy::monitor(PeerIndex from, Emitter& out) {
    const Level now = level(from);
    if (now == Level::kLow) return move_to_front(from, Level::kMedium);
    if (now == Level::kMedium) return move_to_front(from, Level::kHigh);

    // Shift the lists: LOW = MED, MED = HIGH, HIGH = the empty one.
    if (lists_[list_of(Level::kLow)].oldest == kNobody) low_ = list_of(Level::kMedium);
    move_to_front(from, Level::kHigh);
    const PeerIndex victim = lists_[list_of(Level::kLow)].oldest;
    if (victim != kNobody) steal(from, victim, out);
}

void DynamicPolicy::steal(PeerIndex thief, PeerIndex victim, Emitter& out) {
    const std::uint32_t floor = config_.credit_slots;
    const std::uint32_t rich = extras_[thief].intended;
    const std::uint32_t poor = extras_[victim].intended;
    const std::uint32_t half = (rich > poor ? rich - poor : poor - rich) / 2;
    // Eq 6.1, clamped: the victim keeps its floor and the thief its ceiling.
    const std::uint32_t moved = std::min({std::max(floor + 1, half), poor - floor, intended_max_ - rich});
    extras_[thief].intended = static_cast<std::uint16_t>(rich + moved);
    extras_[victim].intended = static_cast<std::uint16_t>(poor - moved);
    if (moved > 0) {
        ++counters_.steals;
        counters_.stolen_slots += moved;
    }
    if (extras_[victim].intended > floor) return move_to_front(victim, Level::kMedium);
    move_to_front(victim, Level::kNull);
    if (peers_[victim].current > floor) block(victim, out);
}

// ---- compulsory credit return (thesis sections 6.1 and 6.5.4) ---

void DynamicPolicy::block(PeerIndex victim, Emitter& out) {
    extras_[victim].blocked = true;
    extras_[victim].request_waiting = true;
    if (peers_[victim].credit > 0) send_request(victim, out);
}

void DynamicPolicy::send_request(PeerIndex to, Emitter& out) {
    --peers_[to].credit;
    extras_[to].request_waiting = false;
    out.emit(to, wire::PacketKind::kRequest, 0);
}

// The excess is computed when the packet leaves: credits may have come and gone while it waited.
void DynamicPolicy::send_response(PeerIndex to, Emitter& out) {
    PeerFlow& peer = peers_[to];
    const std::uint32_t floor = config_.credit_slots;
    const std::uint32_t excess = peer.credit > floor ? peer.credit - floor : 0;
    peer.credit -= excess + 1;
    extras_[to].response_waiting = false;
    out.emit(to, wire::PacketKind::kResponse, excess);
}

void DynamicPolicy::send_waiting_control(PeerIndex to, Emitter& out) {
    if (extras_[to].request_waiting && peers_[to].credit > 0) send_request(to, out);
    if (extras_[to].response_waiting && peers_[to].credit > 0) send_response(to, out);
}

void DynamicPolicy::request_retrieved(PeerIndex from, Emitter& out) {
    data_retrieved(from, out);
    extras_[from].response_waiting = true;
    if (peers_[from].credit > 0) send_response(from, out);
}

// The returned credits leave the books before the activity control looks at them.
void DynamicPolicy::response_retrieved(PeerIndex from, std::uint32_t returned, Emitter& out) {
    // The RESP itself took one of the credits that are counted.
    if (!expected(extras_[from].blocked && returned < peers_[from].current)) return;
    slot_freed(from);
    extras_[from].blocked = false;
    peers_[from].current -= returned;
    available_ += returned;
    shrink_thresholds(from, returned);
    if (peers_[from].retrieved >= peers_[from].threshold) due(from, out);
}

// ---- the end of a peer ---

bool DynamicPolicy::departed(PeerIndex peer, Emitter&) {
    const std::uint32_t floor = config_.credit_slots;
    if (available_ + peers_[peer].current < floor || !hand_back_quota(peer)) return false;
    start_again(peer, floor);
    peers_[peer].threshold = 1;
    for (std::uint32_t i = 1; i <= floor; ++i) rings_[ring_slot(peer, i)] = 1;
    Extra& extra = extras_[peer];
    extra.piggybacked = 0;
    extra.crossings = 0;
    extra.blocked = extra.request_waiting = extra.response_waiting = false;
    // What it may still claim as one of its job is the first to be stolen.
    unlink(peer);
    link_back(peer, list_of(extra.intended > floor ? Level::kLow : Level::kNull));
    return true;
}

// What it has stolen goes to those who have less than an even share: all of it, as the intended quotas sum to
// the same as the even shares, unless some of them are blocked and so stay at their floor.
bool DynamicPolicy::hand_back_quota(PeerIndex from) {
    const auto missing = [this, from](PeerIndex q) -> std::uint32_t {
        const std::uint32_t share = config_.even_share(q), intended = extras_[q].intended;
        return q == from || extras_[q].blocked || intended >= share ? 0 : share - intended;
    };
    const std::uint32_t share = config_.even_share(from);
    if (extras_[from].intended <= share) return true;
    std::uint32_t excess = extras_[from].intended - share;
    std::uint64_t room = 0;
    for (PeerIndex q = 0; q < extras_.size(); ++q) room += missing(q);
    if (room < excess) return false;
    extras_[from].intended = static_cast<std::uint16_t>(share);
    for (PeerIndex q = 0; excess > 0; ++q) {
        const std::uint32_t moved = std::min(missing(q), excess);
        if (moved == 0) continue;
        extras_[q].intended = static_cast<std::uint16_t>(extras_[q].intended + moved);
        excess -= moved;
        if (level(q) == Level::kNull) move_to_front(q, Level::kLow);
    }
    return true;
}

// ---- activity lists ---

DynamicPolicy::Level DynamicPolicy::level(PeerIndex from) const {
    const std::uint8_t list = extras_[from].list;
    return list == kNullList ? Level::kNull : static_cast<Level>((list + 3U - low_) % 3);
}

void DynamicPolicy::move_to_front(PeerIndex peer, Level level) {
    unlink(peer);
    link_front(peer, list_of(level));
}

void DynamicPolicy::unlink(PeerIndex peer) {
    const Extra& extra = extras_[peer];
    List& list = lists_[extra.list];
    (extra.newer == kNobody ? list.newest : extras_[extra.newer].older) = extra.older;
    (extra.older == kNobody ? list.oldest : extras_[extra.older].newer) = extra.newer;
}

void DynamicPolicy::link_front(PeerIndex peer, std::uint8_t list) {
    Extra& extra = extras_[peer];
    List& to = lists_[list];
    extra.list = list & 3;
    extra.newer = kNobody;
    extra.older = to.newest;
    (to.newest == kNobody ? to.oldest : extras_[to.newest].newer) = peer;
    to.newest = peer;
}

void DynamicPolicy::link_back(PeerIndex peer, std::uint8_t list) {
    Extra& extra = extras_[peer];
    List& to = lists_[list];
    extra.list = list & 3;
    extra.older = kNobody;
    extra.newer = to.oldest;
    (to.oldest == kNobody ? to.newest : extras_[to.oldest].older) = peer;
    to.oldest = peer;
}

// ---- invariants ---

std::string DynamicPolicy::list_violation() const {
    std::size_t members = 0;
    for (std::uint8_t list = 0; list <= kNullList; ++list) {
        PeerIndex newer = kNobody;
        for (PeerIndex q = lists_[list].newest; q != kNobody; q = extras_[q].older) {
            if (extras_[q].list != list || extras_[q].newer != newer || ++members > extras_.size())
                return "I7: peer " + std::to_string(q) + " is not where its level says";
            newer = q;
        }
        if (lists_[list].oldest != newer) return "I7: a list does not end at its oldest member";
    }
    return members == extras_.size() ? "" : "I7: " + std::to_string(members) + " peers in the lists";
}

std::string DynamicPolicy::peer_violation(PeerIndex from) const {
    const PeerFlow& peer = peers_[from];
    const Extra& extra = extras_[from];
    const std::uint32_t floor = config_.credit_slots;
    const std::uint32_t held = peer.current + peer.retrieved;
    std::uint64_t sum = 0;
    std::uint32_t smallest = UINT32_MAX;
    for (std::uint32_t i = 0; i <= floor; ++i) {
        sum += threshold(from, i);
        smallest = std::min(smallest, threshold(from, i));
    }
    const char* broken = nullptr;
    if (extra.intended < floor) broken = "I6: intended below the floor";
    if (extra.blocked && (level(from) != Level::kNull || extra.intended != floor))
        broken = "I8: blocked, but not at the floor";
    if (extra.request_waiting && !extra.blocked) broken = "I8: a REQ waits, but the peer is not blocked";
    if (smallest < 1 || sum != std::uint64_t{held} + 1) broken = "I9: sum of thresholds";
    if (peer.threshold > held) broken = "I10: the current threshold cannot be reached";
    if (held < floor) broken = "I11: below the floor";
    if (extra.piggybacked >= peer.threshold) broken = "I13: piggybacked";
    if (broken == nullptr) return {};

    std::string text = std::string(broken) + ": peer " + std::to_string(from) + " thresholds";
    for (std::uint32_t i = 0; i <= floor; ++i) text += " " + std::to_string(threshold(from, i));
    return text + " | intended " + std::to_string(extra.intended) + " retrieved " +
           std::to_string(peer.retrieved) + " piggybacked " + std::to_string(extra.piggybacked) +
           " current " + std::to_string(peer.current);
}

std::string DynamicPolicy::violation() const {
    if (std::string slots = slot_violation(); !slots.empty()) return slots;
    if (std::string lists = list_violation(); !lists.empty()) return lists;
    std::uint64_t intended = 0;
    for (PeerIndex q = 0; q < extras_.size(); ++q) {
        if (std::string peer = peer_violation(q); !peer.empty()) return peer;
        intended += extras_[q].intended;
    }
    if (intended != config_.total_data_slots())
        return "I6: intended quotas sum to " + std::to_string(intended) + " of " +
               std::to_string(config_.total_data_slots()) + " data slots";
    return {};
}

void DynamicPolicy::encode(std::string& text) const {
    const auto put = [&text](std::uint32_t value) { text.push_back(static_cast<char>(value)); };
    for (PeerIndex q = 0; q < extras_.size(); ++q) {
        const Extra& extra = extras_[q];
        for (std::uint32_t value :
             {peers_[q].credit, peers_[q].retrieved, peers_[q].current, std::uint32_t{extra.intended},
              std::uint32_t{extra.piggybacked}, std::uint32_t{extra.crossings}})
            put(value);
        put(extra.blocked * 4U + extra.request_waiting * 2U + extra.response_waiting);
        for (std::uint32_t i = 0; i <= config_.credit_slots; ++i) put(threshold(q, i));
    }
    for (Level level : {Level::kLow, Level::kMedium, Level::kHigh}) {
        for (PeerIndex q = lists_[list_of(level)].newest; q != kNobody; q = extras_[q].older) put(q);
        put(255);
    }
}

constinit const PolicyFactory kDynamicFactory{
    .name = "dynamic",
    .make = make_one<DynamicPolicy>,
    .initial_credit = [](const PolicyConfig& config, PeerIndex) { return config.credit_slots; },
    .minimum_data_slots =
        [](const PolicyConfig& config) { return std::uint64_t{config.peers} * config.credit_slots; },
    .maximum_share = [](const PolicyConfig& config) { return kMaxQuota - config.credit_slots; },
};

}  // namespace velo::flow
