#include "reference_party.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace velo::schedule {

using flow::PeerIndex;
using wire::PacketKind;

ReferenceParty::ReferenceParty(const Scenario& scenario, std::uint32_t process, Literal literal)
    : literal_(literal), n_(scenario.credit_slots), piggyback_(scenario.piggyback) {
    const flow::PolicyConfig config = scenario.config_of(process);
    data_slots_ = config.total_data_slots();
    intended_max_ = std::min<std::int64_t>(scenario.intended_max, 65535 - n_);
    avail_ = data_slots_ - config.total_peers() * n_;
    peers_.resize(config.total_peers());
    for (PeerIndex q = 0; q < peers_.size(); ++q) {
        peers_[q].credit = peers_[q].cc = n_;
        peers_[q].t.assign(static_cast<std::size_t>(n_) + 1, 1);
        const bool spare = q >= config.peers;
        peers_[q].intended =
            spare ? n_ : config.data_slots / config.peers + (q < config.data_slots % config.peers ? 1 : 0);
        lists_[spare ? kNull : kLow].push_back(q);
    }
}

// ---- sender role ---

void ReferenceParty::send(PeerIndex to, Pending packet, Outbox& out) {
    out_ = &out;
    peers_[to].sendq.push(packet);
    flush(to);
}

void ReferenceParty::flush_all(Outbox& out) {
    out_ = &out;
    for (PeerIndex q = 0; q < peers_.size(); ++q) flush(q);
}

void ReferenceParty::flush(PeerIndex q) {
    Peer& p = peers_[q];
    if (p.req_flag && p.credit > 0) emit_request(q);
    if (p.resp_flag && p.credit > 0) emit_response(q);
    while (!p.sendq.empty() && p.credit > 0) {
        const bool room = p.sendq.pop().spare;
        const std::int64_t pb = room && piggyback_ ? piggyback(q) : 0;
        --p.credit;
        out_->put(q, Packet{.piggyback = static_cast<std::uint32_t>(pb)});
    }
}

void ReferenceParty::emit(PeerIndex q, PacketKind kind, std::int64_t value) {
    out_->put(q, Packet{.kind = kind, .value = static_cast<std::uint32_t>(value)});
}

void ReferenceParty::emit_request(PeerIndex q) {
    --peers_[q].credit;
    peers_[q].req_flag = false;
    emit(q, PacketKind::kRequest, 0);
}

void ReferenceParty::emit_response(PeerIndex q) {
    const std::int64_t m = std::max<std::int64_t>(peers_[q].credit - n_, 0);
    peers_[q].credit -= m + 1;
    peers_[q].resp_flag = false;
    emit(q, PacketKind::kResponse, m);
}

// ---- receiver role ---

void ReferenceParty::retrieve(PeerIndex q, const Packet& packet, Outbox& out) {
    out_ = &out;
    Peer& p = peers_[q];
    if (packet.kind == PacketKind::kCredit) {
        p.credit += packet.value;
        flush(q);
        return;
    }
    const bool counted = packet.kind == PacketKind::kData || literal_ != Literal::kA8ControlUncounted;
    if (counted) {
        ++avail_;
        ++p.retr;
        --p.cc;
    }
    if (literal_ == Literal::kA6ActivityFirst) activity(q);
    if (packet.kind == PacketKind::kResponse) apply_response(q, packet.value);
    if (literal_ != Literal::kA6ActivityFirst) activity(q);
    if (packet.kind == PacketKind::kRequest) {
        if (p.credit > 0)
            emit_response(q);
        else
            p.resp_flag = true;
    }
    if (packet.piggyback > 0) {
        p.credit += packet.piggyback;
        flush(q);
    }
}

// All n + 1 lots add up to I + 1 where all can be T(I) or one less; the literal rules know T(I) alone.
std::int64_t ReferenceParty::lot_of(const Peer& p) const {
    const std::int64_t most = threshold_of(p.intended);
    const std::int64_t others = std::accumulate(p.t.begin() + 1, p.t.end(), std::int64_t{0});
    const bool fits = others + most <= p.intended + 1 || (p.intended + 1) % (n_ + 1) == 0;
    return literal_ != Literal::kNone || fits ? most : most - 1;
}

void ReferenceParty::activity(PeerIndex q) {
    Peer& p = peers_[q];
    std::int64_t total = 0;
    while ((literal_ == Literal::kA7ExactMatch ? p.retr == p.t[0] : p.retr >= p.t[0]) && avail_ > 0) {
        if (p.blocked && p.cc >= n_) {
            if (literal_ == Literal::kA5BlockedPops) push(q, 1);
            if (literal_ == Literal::kA5BlockedPops || literal_ == Literal::kA5BlockedResets) p.retr = 0;
            break;
        }
        if (p.blocked && literal_ == Literal::kA5BlockedTrickles) {
            grant(q, 1);
            ++total;
            break;
        }
        if (!p.blocked) crossing(q);
        const std::int64_t lot = lot_of(p);
        const std::int64_t c = std::min(lot, avail_);
        p.retr = literal_ == Literal::kA3OvershootDropped ? 0 : p.retr - p.t[0];
        push(q, literal_ == Literal::kA1ComputedThreshold ? lot : c);
        p.pig = 0;
        grant(q, c);
        total += c;
    }
    if (total > 0) emit(q, PacketKind::kCredit, total);
}

std::int64_t ReferenceParty::piggyback(PeerIndex q) {
    Peer& p = peers_[q];
    if (p.blocked) return 0;
    std::int64_t x = 0;
    if (p.retr + p.pig >= p.t[0] && !(avail_ == 0 && p.pig == 0)) {
        crossing(q);
        const std::int64_t tn = lot_of(p);
        const std::int64_t o = p.retr + p.pig - p.t[0];
        if (tn >= p.pig) {
            x = std::min(tn - p.pig, std::max<std::int64_t>(avail_, 0));
            push(q, literal_ == Literal::kA1ComputedThreshold ? tn : p.pig + x);
        } else {
            push(q, tn);
            p.t[0] += p.pig - tn;
            ++excess_adjustments_;
        }
        p.retr = literal_ == Literal::kA3OvershootDropped ? 0 : o;
        p.pig = 0;
    } else {
        x = literal_ == Literal::kA4PiggybackUnbounded ? p.retr : std::min(p.retr, avail_);
        p.retr -= x;
        p.pig += x;
    }
    grant(q, x);
    return x;
}

void ReferenceParty::crossing(PeerIndex q) {
    if (++peers_[q].cross < n_ + 1) return;
    peers_[q].cross = 0;
    monitor(q);
}

void ReferenceParty::monitor(PeerIndex q) {
    if (level(q) == kLow) return move(q, kMedium);
    if (level(q) == kMedium) return move(q, kHigh);
    if (lists_[kLow].empty()) {
        lists_[kLow] = lists_[kMedium];
        lists_[kMedium] = lists_[kHigh];
        lists_[kHigh].clear();
    }
    move(q, kHigh);
    if (!lists_[kLow].empty()) steal(q, lists_[kLow].back());
}

void ReferenceParty::steal(PeerIndex q, PeerIndex v) {
    Peer& thief = peers_[q];
    Peer& victim = peers_[v];
    std::int64_t d = std::max(n_ + 1, std::abs(thief.intended - victim.intended) / 2);
    d = std::min(d, victim.intended - n_);
    d = std::min(d, intended_max_ - thief.intended);
    thief.intended += d;
    victim.intended -= d;
    if (victim.intended > n_) return move(v, kMedium);
    move(v, kNull);
    if (victim.cc <= victim.intended) return;
    victim.blocked = true;
    if (victim.credit > 0)
        emit_request(v);
    else
        victim.req_flag = true;
}

void ReferenceParty::apply_response(PeerIndex v, std::int64_t m) {
    Peer& p = peers_[v];
    p.blocked = false;
    p.cc -= m;
    avail_ += m;
    if (literal_ == Literal::kA2ThresholdsKept) return;
    for (std::size_t i = p.t.size(); i-- > 0;) {
        const std::int64_t k = std::min(m, p.t[i] - 1);
        p.t[i] -= k;
        m -= k;
    }
}

void ReferenceParty::push(PeerIndex q, std::int64_t v) {
    peers_[q].t.erase(peers_[q].t.begin());
    peers_[q].t.push_back(v);
}

void ReferenceParty::grant(PeerIndex q, std::int64_t c) {
    peers_[q].cc += c;
    avail_ -= c;
}

ReferenceParty::Level ReferenceParty::level(PeerIndex q) const {
    for (Level l : {kLow, kMedium, kHigh})
        if (std::find(lists_[l].begin(), lists_[l].end(), q) != lists_[l].end()) return l;
    return kNull;
}

void ReferenceParty::move(PeerIndex q, Level to) {
    for (auto& list : lists_) std::erase(list, q);
    lists_[to].insert(lists_[to].begin(), q);
}

// ---- inspection ---

std::string ReferenceParty::violation() const {
    std::int64_t granted = 0;
    std::int64_t intended = 0;
    for (PeerIndex q = 0; q < peers_.size(); ++q) {
        const Peer& p = peers_[q];
        std::int64_t sum = 0;
        for (std::int64_t t : p.t) {
            if (t < 1) return "I9: " + state(q);
            sum += t;
        }
        granted += p.cc;
        intended += p.intended;
        if (p.credit < 0 || p.retr < 0 || p.cc < 0) return "I1: " + state(q);
        if (p.intended < n_) return "I6: " + state(q);
        if (p.blocked && (level(q) != kNull || p.intended != n_)) return "I8: " + state(q);
        if (sum != p.cc + p.retr + 1) return "I9: " + state(q);
        if (p.t[0] > p.cc + p.retr) return "I10: " + state(q);
        if (p.cc + p.retr < n_) return "I11: " + state(q);
        if (p.pig >= p.t[0]) return "I13: " + state(q);
    }
    if (avail_ < 0) return "I1: available";
    if (avail_ + granted != data_slots_) return "I2";
    if (intended != data_slots_) return "I6";
    return {};
}

void ReferenceParty::encode(std::string& text) const {
    const auto put = [&text](std::int64_t value) { text.push_back(static_cast<char>(value)); };
    put(avail_);
    for (const Peer& p : peers_) {
        for (std::int64_t v : {p.credit, p.retr, p.intended, p.pig, p.cc, p.cross}) put(v);
        for (std::int64_t v : p.t) put(v);
        put(p.blocked | p.req_flag << 1 | p.resp_flag << 2);
        put(static_cast<std::int64_t>(p.sendq.size()));
        for (std::size_t i = 0; i < p.sendq.size(); ++i) put(p.sendq[i].spare);
    }
    for (const auto& list : lists_) {
        put(static_cast<std::int64_t>(list.size()));
        for (PeerIndex q : list) put(q);
    }
}

std::string ReferenceParty::state(PeerIndex peer) const {
    const Peer& p = peers_[peer];
    std::string text;
    for (std::int64_t t : p.t) text += std::to_string(t) + ",";
    text += " |";
    for (std::int64_t v : {p.intended, p.retr, p.pig, p.cc, p.credit, p.cross})
        text += " " + std::to_string(v);
    text += " level " + std::to_string(level(peer));
    if (p.blocked) text += " blocked";
    if (p.req_flag) text += " REQ";
    if (p.resp_flag) text += " RESP";
    return text;
}

}  // namespace velo::schedule
