#include "flow/lazy.h"

#include <algorithm>
#include <utility>

#include "flow/factory.h"

namespace velo::flow {
namespace {

using wire::PacketKind;

constexpr std::uint32_t kNever = UINT32_MAX;
// The threshold of a sender without a window, and of a new flow: its first packet is found to be one too
// many.
constexpr std::uint32_t kNoWindow = 0;

std::uint32_t pairs_of(const PolicyConfig& config) {
    return std::min(config.lazy_peers, config.total_peers());
}

template <class State>
std::uint8_t code(State state) {
    return static_cast<std::uint8_t>(state);
}

}  // namespace

LazyPolicy::LazyPolicy(const PolicyConfig& config)
    : Policy(config, {.name = kLazyFactory.name, .bytes_per_peer = sizeof(Pair)}, config.lazy_slots,
             2 * pairs_of(config) + 1),
      pairs_(pairs_of(config)),
      contacts_(config.total_peers()),
      extras_(std::size_t{2} * pairs_),
      lots_(std::size_t{2} * pairs_ * config.credit_slots, 1),
      order_(config.total_peers(), config.lazy_ahead) {
    available_ = config.lazy_slots;
    traits_.bytes_shared = peers_.size() * sizeof(PeerFlow) + extras_.size() * sizeof(Extra) +
                           lots_.size() * sizeof(std::uint16_t) + order_.bytes();
    for (FlowIndex flow = 2 * pairs_; flow-- > 0;) {
        extras_[flow].in.newer = free_;
        free_ = flow;
    }
}

void LazyPolicy::contact_retrieved(PeerIndex from, PacketKind kind, std::uint32_t value, Emitter& out) {
    switch (kind) {
        case PacketKind::kCredit:
            return credit_retrieved(from, value);
        case PacketKind::kHello:
            return hello_retrieved(from, out);
        case PacketKind::kBye:
            return bye_retrieved(from, value, out);
        case PacketKind::kRelease:
            return release_retrieved(from, out);
        case PacketKind::kLeave:
            if (!expected(in(from) >= In::kActive)) return;
            // Otherwise the RELEASE is on its way already.
            if (in(from) == In::kActive) start_release(contacts_[from].in.value, out);
            return;
        default:
            return;
    }
}

// ---- sender role ---

void LazyPolicy::credit_wanted(PeerIndex to, Emitter& out) {
    review_order();
    const Out before = this->out(to);
    if (before < Out::kWarm && order_.enabled()) order_.met(to);
    if (before == Out::kCold) open(to, out);
    open_ahead(out);
}

void LazyPolicy::open(PeerIndex to, Emitter& out) {
    if (open_ < pairs_) return say_hello(to, out);
    push<&Pair::out>(queued_, to, code(Out::kQueued));
    make_room(out);
}

// Windows that were opened ahead and have been used since, or were closed before that.
void LazyPolicy::review_order() {
    for (std::uint32_t i = order_.count(); i-- > 0;) {
        const ContactOrder::Expected& expected = order_.expected(i);
        const Side& side = contacts_[expected.peer].out;
        if (side.state >= code(Out::kWarm) && expected.credit != ContactOrder::kUnopened &&
            peers_[side.value].credit != expected.credit)
            return order_.confirm(i);
        if (side.state == code(Out::kCold)) order_.wasted(i);
    }
}

void LazyPolicy::open_ahead(Emitter& out) {
    for (PeerIndex to = order_.upcoming(); to != ContactOrder::kNobody; to = order_.upcoming()) {
        const bool is_open = this->out(to) >= Out::kWarm;
        order_.expect(to, is_open ? peers_[contacts_[to].out.value].credit : ContactOrder::kUnopened);
        if (this->out(to) == Out::kCold) open(to, out);
    }
}

// The slots for the CREDITs and the RELEASE of the receiver are those of one of the `pairs_` windows.
void LazyPolicy::say_hello(PeerIndex to, Emitter& out) {
    set(contacts_[to].out, code(Out::kHello), take_flow(to));
    ++open_;
    out.emit(to, PacketKind::kHello, 0);
}

void LazyPolicy::credit_retrieved(PeerIndex from, std::uint32_t credits) {
    if (!expected(out(from) >= Out::kHello)) return;
    Side& side = contacts_[from].out;
    peers_[side.value].credit += credits;
    if (out(from) != Out::kHello) return;
    side.state = code(Out::kWarm);
    extras_[side.value].seen_credit = kNever;
    order_.opened(from, peers_[side.value].credit);
    append<&Extra::out>(warm_, side.value);
}

// FIFO: no CREDIT is under way behind a RELEASE, and no DATA behind a BYE.
void LazyPolicy::release_retrieved(PeerIndex from, Emitter& out) {
    if (!expected(this->out(from) >= Out::kWarm)) return;
    out.emit(from, PacketKind::kBye, close_window(from));
    open_queued(out);
}

// Returns the credits that were left.
std::uint32_t LazyPolicy::close_window(PeerIndex to) {
    const FlowIndex flow = contacts_[to].out.value;
    if (out(to) == Out::kWarm) remove<&Extra::out>(warm_, flow);
    if (out(to) == Out::kLeaving) --leaving_;
    --open_;
    const std::uint32_t rest = std::exchange(peers_[flow].credit, 0);
    set(contacts_[to].out, code(Out::kCold), kNobody);
    drop_flow(flow);
    return rest;
}

void LazyPolicy::open_queued(Emitter& out) {
    while (queued_.count > 0 && open_ < pairs_) say_hello(pop<&Pair::out>(queued_), out);
}

// A window that has just opened has sent at least one packet by now.
void LazyPolicy::control_flushed(Emitter& out) {
    review_order();
    open_ahead(out);
    make_room(out);
}

void LazyPolicy::make_room(Emitter& out) {
    while (leaving_ < queued_.count && warm_.count > 0) ask_to_leave(out);
}

void LazyPolicy::ask_to_leave(Emitter& out) {
    const FlowIndex flow = window_to_close();
    remove<&Extra::out>(warm_, flow);
    contacts_[extras_[flow].peer].out.state = code(Out::kLeaving);
    ++leaving_;
    out.emit(extras_[flow].peer, PacketKind::kLeave, 0);
}

// The oldest one whose credit has not changed since the last look; the oldest one if there is none.
FlowIndex LazyPolicy::window_to_close() {
    for (std::uint32_t looked = 0; looked < warm_.count; ++looked) {
        const FlowIndex flow = warm_.oldest;
        if (extras_[flow].seen_credit == peers_[flow].credit) return flow;
        extras_[flow].seen_credit = peers_[flow].credit;
        remove<&Extra::out>(warm_, flow);
        append<&Extra::out>(warm_, flow);
    }
    return warm_.oldest;
}

void LazyPolicy::contact_overdue(Emitter& out) {
    if (waiting_.count > 0 && active_.count > 0) start_release(active_.oldest, out);
    if (queued_.count > 0 && warm_.count > 0) ask_to_leave(out);
}

// What it holds, and what is on its way to it, comes back as if with a BYE.
bool LazyPolicy::departed(PeerIndex peer, Emitter& out) {
    order_.forget(peer);
    if (this->out(peer) == Out::kQueued) take_out<&Pair::out>(queued_, peer);
    if (this->out(peer) >= Out::kHello) close_window(peer);
    open_queued(out);
    if (in(peer) == In::kWaiting) take_out<&Pair::in>(waiting_, peer);
    if (in(peer) < In::kActive) return true;
    const FlowIndex flow = contacts_[peer].in.value;
    if (in(peer) == In::kActive) {
        remove<&Extra::in>(active_, flow);
        peers_[flow].threshold = kNever;
        ++releasing_;
    }
    contacts_[peer].in.state = code(In::kReleasing);
    bye_retrieved(peer, peers_[flow].current, out);
    return true;
}

// ---- receiver role: who holds credits ---

void LazyPolicy::hello_retrieved(PeerIndex from, Emitter& out) {
    if (in(from) == In::kReleasing) {
        contacts_[from].in.state = code(In::kReturning);
        return;
    }
    if (!expected(in(from) == In::kCold)) return;
    push<&Pair::in>(waiting_, from, code(In::kWaiting));
    service(out);
}

void LazyPolicy::bye_retrieved(PeerIndex from, std::uint32_t returned, Emitter& out) {
    if (!expected(in(from) >= In::kReleasing)) return;
    const bool returning = in(from) == In::kReturning;
    const FlowIndex flow = contacts_[from].in.value;
    available_ += returned;
    peers_[flow].current -= returned;
    if (!expected(peers_[flow].current == 0)) return;
    peers_[flow].retrieved = 0;
    peers_[flow].threshold = kNoWindow;
    --releasing_;
    set(contacts_[from].in, code(In::kCold), kNobody);
    drop_flow(flow);
    if (returning) push<&Pair::in>(waiting_, from, code(In::kWaiting));
    service(out);
}

// One RELEASE for each peer that waits.
void LazyPolicy::service(Emitter& out) {
    while (waiting_.count > 0 && available_ > 0 && active_.count + releasing_ < pairs_)
        activate(pop<&Pair::in>(waiting_), out);
    while (releasing_ < waiting_.count && active_.count > 0) start_release(active_.oldest, out);
}

void LazyPolicy::activate(PeerIndex from, Emitter& out) {
    const FlowIndex flow = take_flow(from);
    set(contacts_[from].in, code(In::kActive), flow);
    append<&Extra::in>(active_, flow);
    extras_[flow].turn = turns_;
    const std::uint32_t credits = std::min(std::max(share(), config_.credit_slots), available_);
    spread(flow, credits);
    grant(flow, credits);
    out.emit(from, PacketKind::kCredit, credits);
}

// From here on nothing goes back: what the sender uses stays in `retrieved`, and is available already.
void LazyPolicy::start_release(FlowIndex from, Emitter& out) {
    remove<&Extra::in>(active_, from);
    contacts_[extras_[from].peer].in.state = code(In::kReleasing);
    peers_[from].threshold = kNever;
    ++releasing_;
    last_release_ = turns_;
    out.emit(extras_[from].peer, PacketKind::kRelease, 0);
}

// A lot went back to `from`; `starved`: it was smaller than it should have been.
void LazyPolicy::relieve(FlowIndex from, bool starved, Emitter& out) {
    if (waiting_.count > 0) {
        service(out);
        // Whoever was asked does not answer: ask another one.
        if (waiting_.count > 0 && active_.count > 0 && turns_ - last_release_ >= patience())
            start_release(active_.oldest, out);
        return;
    }
    if (!starved || !config_.lazy_stealing) return;
    const FlowIndex victim = active_.oldest;
    if (victim == from || turns_ - extras_[victim].turn < patience()) return;
    ++counters_.steals;
    counters_.stolen_slots += peers_[victim].current;
    start_release(victim, out);
}

// ---- receiver role: how much they hold ---

std::uint32_t LazyPolicy::share() const {
    return std::max(config_.lazy_slots / (active_.count + waiting_.count + 1), 1U);
}

std::size_t LazyPolicy::lot_slot(FlowIndex from, std::uint32_t position) const {
    const std::uint32_t n = config_.credit_slots;
    return std::size_t{from} * n + (extras_[from].oldest + position - 1) % n;
}

std::uint32_t LazyPolicy::lot(FlowIndex from, std::uint32_t position) const {
    return position == 0 ? peers_[from].threshold : lots_[lot_slot(from, position)];
}

// The first credits as n + 1 lots, each at least 1.
void LazyPolicy::spread(FlowIndex from, std::uint32_t credits) {
    const std::uint32_t n = config_.credit_slots;
    const std::uint32_t sum = std::max(credits, n) + 1;
    extras_[from].shortfall = static_cast<std::uint8_t>(sum - 1 - credits);
    extras_[from].oldest = 0;
    peers_[from].threshold = sum / (n + 1);
    for (std::uint32_t i = 1; i <= n; ++i)
        lots_[lot_slot(from, i)] =
            static_cast<std::uint16_t>(sum / (n + 1) + (i > n - sum % (n + 1) ? 1 : 0));
}

// `used` retrieved slots, no more than the current threshold, are answered with `granted` >= 1 credits. What
// is left of the threshold falls to the next one, so that the lots still sum to what is held, and one.
void LazyPolicy::give_back(FlowIndex from, std::uint32_t used, std::uint32_t granted) {
    PeerFlow& peer = peers_[from];
    Extra& extra = extras_[from];
    std::uint16_t& next = lots_[lot_slot(from, 1)];
    const std::uint32_t left = peer.threshold - used;
    peer.retrieved -= used;
    peer.threshold = next + left;
    next = static_cast<std::uint16_t>(granted);
    extra.oldest = static_cast<std::uint8_t>((extra.oldest + 1) % config_.credit_slots);
    grant(from, granted);
}

std::uint32_t LazyPolicy::cross_thresholds(FlowIndex from, bool* starved) {
    PeerFlow& peer = peers_[from];
    std::uint32_t total = 0;
    while (peer.retrieved >= peer.threshold && available_ > 0) {
        const std::uint32_t wanted = return_threshold(share(), config_.credit_slots);
        const std::uint32_t granted = std::min(wanted, available_);
        *starved = granted < wanted;
        give_back(from, peer.threshold, granted);
        total += granted;
    }
    return total;
}

void LazyPolicy::mark_turn(FlowIndex from) {
    extras_[from].turn = ++turns_;
    remove<&Extra::in>(active_, from);
    append<&Extra::in>(active_, from);
}

void LazyPolicy::due(FlowIndex from, Emitter& out) {
    bool starved = false;
    const std::uint32_t total = cross_thresholds(from, &starved);
    if (total == 0) return;
    out.emit(extras_[from].peer, PacketKind::kCredit, total);
    mark_turn(from);
    relieve(from, starved, out);
}

// A sender that holds less than its share gets the difference at once; one that holds more waits for its
// threshold, where it gets a smaller lot.
std::uint32_t LazyPolicy::attach(FlowIndex to, Emitter&) {
    PeerFlow& peer = peers_[to];
    if (peer.threshold == kNever) return 0;
    bool starved = false;
    std::uint32_t total = cross_thresholds(to, &starved);
    const std::uint32_t held = peer.current + peer.retrieved;
    if (peer.retrieved > 0 && peer.retrieved < peer.threshold && available_ > 0 && held <= share()) {
        const std::uint32_t granted = std::min(peer.retrieved + share() - held, available_);
        give_back(to, std::min(peer.retrieved, granted), granted);
        total += granted;
    }
    if (total == 0) return 0;
    mark_turn(to);
    return total;
}

// ---- flows, queues and lists ---

FlowIndex LazyPolicy::flow_of(PeerIndex peer) const {
    const Pair& contact = contacts_[peer];
    if (contact.in.state >= code(In::kActive)) return contact.in.value;
    if (contact.out.state >= code(Out::kHello)) return contact.out.value;
    return cold_flow();
}

// At most `pairs_` peers have a window in each direction, so that there is a flow for each of them.
FlowIndex LazyPolicy::take_flow(PeerIndex peer) {
    if (const FlowIndex flow = flow_of(peer); flow != cold_flow()) return flow;
    const FlowIndex flow = free_;
    free_ = extras_[flow].in.newer;
    extras_[flow].peer = peer;
    return flow;
}

// One side of a pair has become cold; the other one may still need the flow.
void LazyPolicy::drop_flow(FlowIndex flow) {
    if (flow_of(extras_[flow].peer) == flow) return;
    extras_[flow].peer = kNobody;
    extras_[flow].in.newer = free_;
    free_ = flow;
}

template <LazyPolicy::Side LazyPolicy::Pair::*kSide>
void LazyPolicy::push(Queue& queue, PeerIndex peer, std::uint8_t state) {
    set(contacts_[peer].*kSide, state, kNobody);
    if (queue.count++ == 0)
        queue.first = peer;
    else
        (contacts_[queue.last].*kSide).value = peer & kNobody;
    queue.last = peer;
}

template <LazyPolicy::Side LazyPolicy::Pair::*kSide>
PeerIndex LazyPolicy::pop(Queue& queue) {
    const PeerIndex peer = queue.first;
    queue.first = (contacts_[peer].*kSide).value;
    --queue.count;
    return peer;
}

template <LazyPolicy::Side LazyPolicy::Pair::*kSide>
void LazyPolicy::take_out(Queue& queue, PeerIndex peer) {
    PeerIndex before = kNobody;
    for (PeerIndex q = queue.first; q != peer; q = (contacts_[q].*kSide).value) before = q;
    const std::uint32_t after = (contacts_[peer].*kSide).value;
    if (before == kNobody)
        queue.first = after;
    else
        (contacts_[before].*kSide).value = after & kNobody;
    if (queue.last == peer) queue.last = before;
    --queue.count;
    contacts_[peer].*kSide = Side{};
}

template <LazyPolicy::Links LazyPolicy::Extra::*kLinks>
void LazyPolicy::append(List& list, FlowIndex flow) {
    extras_[flow].*kLinks = {list.newest, kNobody};
    (list.newest == kNobody ? list.oldest : (extras_[list.newest].*kLinks).newer) = flow;
    list.newest = flow;
    ++list.count;
}

template <LazyPolicy::Links LazyPolicy::Extra::*kLinks>
void LazyPolicy::remove(List& list, FlowIndex flow) {
    const Links& at = extras_[flow].*kLinks;
    (at.older == kNobody ? list.oldest : (extras_[at.older].*kLinks).newer) = at.newer;
    (at.newer == kNobody ? list.newest : (extras_[at.newer].*kLinks).older) = at.older;
    --list.count;
}

// ---- invariants ---

std::string LazyPolicy::flow_violation(FlowIndex flow) const {
    const PeerFlow& counts = peers_[flow];
    const PeerIndex peer = flow == cold_flow() ? kNobody : extras_[flow].peer;
    const In in_state = peer == kNobody ? In::kCold : in(peer);
    const Out out_state = peer == kNobody ? Out::kCold : out(peer);
    const std::uint32_t held = counts.current + counts.retrieved;
    const char* broken = nullptr;
    if (out_state < Out::kWarm && counts.credit > 0) broken = "credits without a window";
    if (in_state < In::kActive && held > 0) broken = "a cold sender holds credits";
    if (in_state != In::kActive && counts.threshold != (in_state < In::kActive ? kNoWindow : kNever))
        broken = "a threshold without an active sender";
    if (in_state == In::kActive) {
        std::uint64_t sum = 0;
        for (std::uint32_t i = 0; i <= config_.credit_slots; ++i) {
            sum += lot(flow, i);
            if (lot(flow, i) < 1) broken = "I9: an empty lot";
        }
        if (sum != std::uint64_t{held} + 1 + extras_[flow].shortfall) broken = "I9: sum of the lots";
        if (counts.threshold > held) broken = "I10: the current threshold cannot be reached";
        if (counts.current == 0) broken = "I12: no credit left in circulation";
    }
    if (broken == nullptr) return {};
    std::string text = std::string(broken) + ": flow " + std::to_string(flow) + " peer " +
                       std::to_string(peer) + " credit " + std::to_string(counts.credit) + " retrieved " +
                       std::to_string(counts.retrieved) + " current " + std::to_string(counts.current) +
                       " lots";
    for (std::uint32_t i = 0; flow != cold_flow() && i <= config_.credit_slots; ++i)
        text += " " + std::to_string(lot(flow, i));
    return text;
}

std::string LazyPolicy::count_violation() const {
    std::uint32_t ins[5] = {}, outs[5] = {};
    for (PeerIndex q = 0; q < contacts_.size(); ++q) {
        ++ins[contacts_[q].in.state];
        ++outs[contacts_[q].out.state];
        const FlowIndex flow = flow_of(q);
        if (flow != cold_flow() && extras_[flow].peer != q) return "I7: a flow of two peers";
        if (in(q) >= In::kActive && out(q) >= Out::kHello && contacts_[q].in.value != contacts_[q].out.value)
            return "I7: a peer of two flows";
    }
    if (ins[code(In::kWaiting)] != waiting_.count || ins[code(In::kActive)] != active_.count ||
        ins[code(In::kReleasing)] + ins[code(In::kReturning)] != releasing_ ||
        active_.count + releasing_ > pairs_)
        return "I7: the senders do not add up";
    if (outs[code(Out::kQueued)] != queued_.count || outs[code(Out::kWarm)] != warm_.count ||
        outs[code(Out::kLeaving)] != leaving_ || outs[code(Out::kHello)] + warm_.count + leaving_ != open_ ||
        open_ > pairs_)
        return "I7: the windows do not add up";
    if (waiting_.count > 0 && active_.count + releasing_ == 0 && available_ > 0)
        return "a sender waits in spite of free slots";
    if (queued_.count > 0 && open_ < pairs_) return "a window waits in spite of free ones";
    return {};
}

std::string LazyPolicy::violation() const {
    if (std::string slots = slot_violation(); !slots.empty()) return slots;
    if (offended_) return "a control packet came that no correct peer sends";
    if (std::string counts = count_violation(); !counts.empty()) return counts;
    for (FlowIndex flow = 0; flow <= cold_flow(); ++flow)
        if (std::string broken = flow_violation(flow); !broken.empty()) return broken;
    return {};
}

// Flows are named after their peers, ages are cut off where they make no difference.
void LazyPolicy::encode(std::string& text) const {
    const auto put = [&text](std::uint32_t value) { text.push_back(static_cast<char>(value)); };
    for (PeerIndex q = 0; q < contacts_.size(); ++q) {
        put(contacts_[q].in.state << 4 | contacts_[q].out.state);
        const FlowIndex flow = flow_of(q);
        if (flow == cold_flow()) continue;
        put(peers_[flow].credit);
        put(peers_[flow].retrieved);
        put(peers_[flow].current);
        for (std::uint32_t i = 0; in(q) == In::kActive && i <= config_.credit_slots; ++i) put(lot(flow, i));
        put(std::min(turns_ - extras_[flow].turn, 2 * config_.credit_slots + 2 + pairs_));
        put(extras_[flow].seen_credit);
    }
    for (PeerIndex q = waiting_.first, i = 0; i < waiting_.count; ++i, q = contacts_[q].in.value) put(q);
    for (PeerIndex q = queued_.first, i = 0; i < queued_.count; ++i, q = contacts_[q].out.value) put(q);
    for (FlowIndex f = active_.oldest; f != kNobody; f = extras_[f].in.newer) put(extras_[f].peer);
    for (FlowIndex f = warm_.oldest; f != kNobody; f = extras_[f].out.newer) put(extras_[f].peer);
    put(available_);
    put(std::min(turns_ - last_release_, 2 * config_.credit_slots + 2 + pairs_));
    order_.encode(put);
}

constinit const PolicyFactory kLazyFactory{
    .name = "lazy",
    .make = make_one<LazyPolicy>,
    .initial_credit = [](const PolicyConfig&, PeerIndex) { return std::uint32_t{0}; },
    .minimum_data_slots = [](const PolicyConfig&) { return std::uint64_t{0}; },
    .maximum_share = [](const PolicyConfig&) { return UINT32_MAX; },
    // A BYE and a LEAVE of each sender with a window, n CREDITs and a RELEASE for each window of this
    // process, a HELLO of everybody.
    .mailbox =
        [](const PolicyConfig& config) {
            const std::uint64_t pairs = pairs_of(config);
            const std::uint64_t hellos = config.lazy_doorbell ? 0 : config.total_peers();
            return MailboxPlan{config.lazy_slots, pairs * (2 + config.credit_slots + 1) + hellos,
                               config.credit_slots};
        },
    .parameters =
        [](const PolicyConfig& config) {
            return std::to_string(config.lazy_slots) + " data slots for " +
                   std::to_string(config.lazy_peers) + " active peers each way, " +
                   std::to_string(config.credit_slots) + " credit slots, stealing " +
                   (config.lazy_stealing ? "on" : "off") + ", " + std::to_string(config.lazy_ahead) +
                   " windows ahead, piggyback " + (config.piggyback ? "on" : "off");
        },
};

}  // namespace velo::flow
