#include "policy_party.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "flow/batching.h"
#include "flow/lazy.h"
#include "flow/mvapich_dynamic.h"
#include "flow/policies.h"
#include "flow/static.h"
#include "wire/batch.h"

namespace velo::schedule {

using wire::PacketKind;

namespace {

template <class... Policies>
std::unique_ptr<flow::Policy> copy_of(const flow::Policy& policy) {
    std::unique_ptr<flow::Policy> copy;
    const auto try_type = [&]<class Policy>(const Policy* same) {
        if (same != nullptr && copy == nullptr) copy = std::make_unique<Policy>(*same);
    };
    (try_type(dynamic_cast<const Policies*>(&policy)), ...);
    if (copy == nullptr) throw std::logic_error(std::string(policy.name()) + " is not copied");
    return copy;
}

std::unique_ptr<flow::Policy> policy_of(const Scenario& scenario, std::uint32_t process) {
    std::string error;
    std::unique_ptr<flow::Policy> policy =
        flow::make_policy(scenario.policy, scenario.config_of(process), &error);
    if (policy == nullptr) throw std::runtime_error(scenario.describe() + ": " + error);
    return policy;
}

// Where nobody counts credits: what a mailbox takes.
std::uint32_t most_packets(flow::Policy& policy) {
    if (policy.limited()) return UINT32_MAX;
    if (const flow::Refusal* refusal = policy.extensions().refusal) return refusal->refusal_limit();
    return static_cast<std::uint32_t>(flow::mailbox_plan(policy.name(), policy.config()).data_slots);
}

}  // namespace

std::vector<std::string> names() {
    std::vector<std::string> result;
    for (std::string_view name : flow::policy_names()) result.emplace_back(name);
    return result;
}

PolicyParty::PolicyParty(const PolicyParty& other)
    : policy_(copy_of<flow::LazyPolicy, flow::DynamicPolicy, flow::StaticPolicy, flow::MvapichDynamicPolicy,
                      flow::MvapichStaticPolicy>(*other.policy_)),
      dynamic_(dynamic_cast<const flow::DynamicPolicy*>(policy_.get())),
      most_packets_(other.most_packets_),
      ledger_(other.ledger_, *policy_, *this),
      queues_(other.queues_),
      accounts_(other.accounts_),
      how_(other.how_),
      outbox_(other.outbox_),
      shares_(other.shares_),
      read_(other.read_),
      allocated_(other.allocated_),
      batches_(other.batches_),
      references_(other.references_),
      batches_sent_(other.batches_sent_),
      batched_(other.batched_),
      overfull_(other.overfull_) {
    outbox_.rebase(other.shares_.data(), shares_.data());
}

PolicyParty::PolicyParty(PolicyParty&& other) noexcept
    : policy_(std::move(other.policy_)),
      dynamic_(other.dynamic_),
      refusal_(other.refusal_),
      most_packets_(other.most_packets_),
      ledger_(other.ledger_, *policy_, *this),
      queues_(std::move(other.queues_)),
      accounts_(std::move(other.accounts_)),
      how_(other.how_),
      outbox_(std::move(other.outbox_)),
      shares_(std::move(other.shares_)),
      read_(std::move(other.read_)),
      allocated_(std::move(other.allocated_)),
      batches_(std::move(other.batches_)),
      references_(other.references_),
      batches_sent_(other.batches_sent_),
      batched_(other.batched_),
      overfull_(other.overfull_) {}

void PolicyParty::encode(std::string& text) const {
    for (flow::PeerIndex q = 0; q < queues_.size(); ++q) {
        text.push_back(static_cast<char>(ledger_.delayed_credits(q)));
        text.push_back(static_cast<char>(queues_[q].size()));
        for (std::size_t i = 0; i < queues_[q].size(); ++i)
            for (const std::uint32_t value : {std::uint32_t{queues_[q][i].waited}, queues_[q][i].packets,
                                              std::uint32_t{queues_[q][i].left > 0}})
                text.push_back(static_cast<char>(value));
        const Batch& batch = batches_[q];
        text.push_back(static_cast<char>(batch.follows));
        if (batch.room > 0)
            text.append(std::to_string(batch.place)).append("+").append(std::to_string(batch.used));
    }
    outbox_.encode(text, shares_.data());
    for (const Lent& chunk : allocated_) text.push_back(static_cast<char>(chunk.unread));
    for (const flow::OutboxShare& share : shares_) text.push_back(static_cast<char>(share.unread()));
    if (const auto* lazy = dynamic_cast<const flow::LazyPolicy*>(policy_.get())) return lazy->encode(text);
    if (dynamic_ != nullptr) return dynamic_->encode(text);
    // The others are their counts.
    for (flow::PeerIndex q = 0; q < queues_.size(); ++q)
        for (std::uint32_t value :
             {policy_->peer(q).credit, policy_->peer(q).retrieved, policy_->peer(q).current})
            text.push_back(static_cast<char>(value));
}

PolicyParty::PolicyParty(const Scenario& scenario, std::uint32_t process)
    : policy_(policy_of(scenario, process)),
      dynamic_(dynamic_cast<const flow::DynamicPolicy*>(policy_.get())),
      refusal_(policy_->extensions().refusal),
      most_packets_(most_packets(*policy_)),
      ledger_(*policy_, *this, scenario.delay_credits),
      queues_(policy_->config().total_peers()),
      how_(scenario.by_reference),
      outbox_(flow::OutboxPlan(how_.outbox_bytes)),
      shares_(queues_.size()),
      read_(queues_.size()),
      batches_(queues_.size()) {
    const flow::OutboxPlan& plan = outbox_.plan();
    for (std::size_t size = flow::OutboxPlan::kSizes; size-- > 0;)
        for (std::uint32_t index = 0; index < plan.size(size).count; ++index)
            allocated_.push_back({.place = plan.size(size).begin + index * plan.size(size).room});
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to) {
        const std::uint32_t peer = scenario.process_at(process, to);
        accounts_.push_back(ledger_.account_of(to));
        connect(to, flow::initial_credit(scenario.policy, scenario.config_of(peer),
                                         scenario.index_of(peer, process)));
    }
}

void PolicyParty::carry(flow::Account& to, PacketKind kind, std::uint32_t value) {
    out_->put(to.peer, Packet{.kind = kind, .value = value});
}

bool PolicyParty::send_queued(flow::Account& account) {
    const flow::PeerIndex to = account.peer;
    Fifo<Pending>& queue = queues_[to];
    if (retry_at_ns(to) > out_->now_ns()) return !queue.empty();
    bool found_none = false;  // for the message at the front
    while (!queue.empty()) {
        Pending& pending = queue[0];
        if (appends(to) && pending.left == 0 && append(to, pending)) {
            queue.pop();
            continue;
        }
        if (how_.broken != Broken::kPassesItBy) close(to);
        if (ledger_.credits(account) == 0) break;
        const std::uint64_t bytes = bytes_of(pending.packets + pending.left);
        Packet packet{.first = pending.first + pending.left};
        if (pending.waited && ledger_.marks_backlog()) packet.kind = PacketKind::kBackloggedData;
        const bool has_room = limited() || out_->has_room(to);
        if (has_room && !found_none && opens_batch(to, pending) && open(to, bytes, packet)) {
            packet.first = pending.first;
        } else {
            if (how_.broken == Broken::kBatchesOrWaits && opens_batch(to, pending)) break;
            flow::Outbox::Chunk chunk;
            if (!found_none && pending.packets > 1 && may_refer(to, pending.packets))
                chunk = take_chunk(to, bytes_of(pending.packets));
            found_none = chunk.room == 0;
            if (found_none && how_.broken == Broken::kWaitsForAChunk && pending.packets > 1) break;
            if (!has_room) {
                if (chunk.room > 0) outbox_.give_back(chunk);
                if (refusal_ != nullptr) refusal_->refused(to, out_->now_ns());
                break;
            }
            if (chunk.room > 0)
                store(to, chunk, std::min(pending.packets, chunk.room / how_.packet_bytes), packet);
        }
        const bool whole = packet.batch || packet.units == pending.packets;
        if (packet.refers || (whole && pending.spare)) packet.piggyback = ledger_.attach(account);
        if (packet.batch) (void)append(to, pending);
        out_->put(to, packet);
        batches_[to].follows = true;
        if (!packet.refers || how_.broken != Broken::kCostsNoCredit) ledger_.sent(account, 1);
        if (!whole) {
            pending.packets -= packet.units;
            pending.left += packet.units;
            continue;
        }
        queue.pop();
        found_none = shares_[to].missed = false;
    }
    mark_waiting(to);
    return !queue.empty();
}

// What is left in the queue has to be paid for by somebody.
void PolicyParty::mark_waiting(flow::PeerIndex to) {
    for (std::size_t i = 0; i < queues_[to].size(); ++i) queues_[to][i].waited = true;
}

void PolicyParty::send(flow::PeerIndex to, Pending packet, Outbox& out) {
    out_ = &out;
    const bool first = queues_[to].empty();
    if (first && how_.whole_first && packet.packets > 1 && may_refer(to, packet.packets))
        if (const auto chunk = take_chunk(to, bytes_of(packet.packets)); chunk.room > 0)
            outbox_.give_back(chunk);
    queues_[to].push(packet);
    if (ledger_.flush(accounts_[to]) && first) ledger_.queued(accounts_[to]);
}

void PolicyParty::retrieve(flow::PeerIndex from, const Packet& packet, Outbox& out) {
    out_ = &out;
    if (wire::is_data(packet.kind)) heard(from);
    ledger_.look();
    const bool waited = packet.kind == PacketKind::kBackloggedData;
    const bool kept = waited || packet.kind == PacketKind::kData
                          ? ledger_.data_retrieved(accounts_[from], 1, waited, packet.piggyback)
                          : ledger_.control_retrieved(accounts_[from], packet.kind, packet.value);
    offended_ |= !kept;
}

void PolicyParty::look(Outbox& out) {
    out_ = &out;
    ledger_.look();
}

bool PolicyParty::departed(flow::PeerIndex peer, Outbox& out) {
    out_ = &out;
    queues_[peer] = {};
    if (how_.broken != Broken::kLeavesItOpen) batches_[peer] = {};
    if (how_.broken != Broken::kNotForgotten) {
        outbox_.free_all(shares_[peer]);
        shares_[peer].sent = shares_[peer].read = read_[peer] = 0;
    }
    for (Lent& chunk : allocated_)
        if (chunk.to == peer) chunk = {.place = chunk.place};
    return ledger_.departed(accounts_[peer]);
}

const PolicyParty::Lent& PolicyParty::allocated_at(std::uint32_t place) const {
    return *std::lower_bound(allocated_.begin(), allocated_.end(), place,
                             [](const Lent& chunk, std::uint32_t at) { return chunk.place < at; });
}

bool PolicyParty::may_refer(flow::PeerIndex to, std::uint32_t packets) const {
    if (how_.outbox_bytes == 0) return false;
    const std::uint32_t allowed = std::min(credit(to), most_packets_);
    return allowed > 0 && packets > allowed >> how_.shift;
}

// False: the open batch of the peer does not hold it.
bool PolicyParty::append(flow::PeerIndex to, const Pending& message) {
    Batch& batch = batches_[to];
    const std::uint32_t units = message.packets + message.left;
    const std::uint64_t with = batch.used + wire::enclosed_bytes(bytes_of(units));
    if (with + sizeof(wire::Enclosed) > batch.room) {
        if (how_.broken != Broken::kAppendsTooMuch) return false;
        overfull_ = true;
    }
    batch.used = static_cast<std::uint32_t>(with);
    batch.follows = true;
    allocated_at(batch.place).batch.push({units, message.first});
    ++batched_;
    return true;
}

void PolicyParty::close(flow::PeerIndex to) {
    if (!appends(to)) return;
    allocated_at(batches_[to].place).batch.push({});
    batches_[to].room = 0;
}

void PolicyParty::rest(flow::PeerIndex to) {
    close(to);
    batches_[to].follows = false;
}

bool PolicyParty::opens_batch(flow::PeerIndex to, const Pending& message) const {
    if (!how_.batches || how_.outbox_bytes == 0) return false;
    if (message.left > 0 && how_.broken != Broken::kBatchesABegun) return false;
    const std::uint32_t packets = message.packets + message.left;
    return bytes_of(packets) <= flow::kMostBatchedBytes &&
           flow::opens_batch({.packets = packets,
                              .allowed = std::min(credit(to), most_packets_),
                              .counted = limited(),
                              .bursts = batches_[to].follows,
                              .others_wait = message.waited && queues_[to].size() > 1});
}

// With a first message of `bytes`, which is yet to be appended. False: no chunk holds it.
bool PolicyParty::open(flow::PeerIndex to, std::uint64_t bytes, Packet& packet) {
    const std::uint64_t least = wire::batch_bytes(bytes);
    const flow::Outbox::Chunk chunk = take_chunk(to, flow::kBatchChunkBytes);
    if (chunk.room < least) {
        if (chunk.room > 0) outbox_.give_back(chunk);
        return false;
    }
    packet.batch = true;
    store(to, chunk, 0, packet);
    Batch& batch = batches_[to];
    batch.place = chunk.place;
    batch.used = 0;
    batch.room = chunk.room;
    ++batches_sent_;
    return true;
}

std::uint32_t PolicyParty::unread(flow::PeerIndex to) const {
    std::uint32_t count = 0;
    for (const Lent& chunk : allocated_) count += chunk.unread && chunk.to == to;
    return count;
}

flow::Outbox::Chunk PolicyParty::take_chunk(flow::PeerIndex to, std::uint64_t bytes) {
    return outbox_.take(shares_[to], bytes, [this](flow::OutboxShare& share) {
        if (how_.broken == Broken::kFreesEarly) share.read = share.sent;
    });
}

void PolicyParty::store(flow::PeerIndex to, const flow::Outbox::Chunk& chunk, std::uint32_t units,
                        Packet& packet) {
    packet.refers = true;
    packet.place = chunk.place;
    packet.units = units;
    packet.stamp = ++references_;
    ++shares_[to].sent;
    Lent& allocated = allocated_at(chunk.place);
    allocated.unread = true;
    allocated.to = to;
    allocated.stamp = packet.stamp;
    allocated.batch = {};
}

std::string PolicyParty::read(const Packet& reference) {
    Lent& allocated = allocated_at(reference.place);
    if (!allocated.unread || allocated.stamp != reference.stamp)
        return "R3: a chunk has changed before it was read";
    allocated.unread = false;
    ++read_[allocated.to];
    if (!how_.told_late) shares_[allocated.to].read = read_[allocated.to];
    return {};
}

std::uint32_t PolicyParty::untold() const {
    std::uint32_t readers = 0;
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to) readers += shares_[to].read < read_[to];
    return readers;
}

void PolicyParty::tell(std::uint32_t reader) {
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to)
        if (shares_[to].read < read_[to] && reader-- == 0) ++shares_[to].read;
}

std::string PolicyParty::violation() const {
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to)
        if (accounts_[to].flow != ledger_.flow_of(to))
            return "the flow of peer " + std::to_string(to) + " has changed behind the caller's back";
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to)
        if (appends(to) && !queues_[to].empty()) return "R8: a message waits beside an open batch";
    if (overfull_) return "R9: a batch is longer than its chunk";
    if (offended_) return "a correct peer is said to have broken the rules";
    if (const char* broken = outbox_.violation(); *broken != '\0') return broken;
    return policy_->violation();
}

void PolicyParty::overdue(Outbox& out) {
    out_ = &out;
    if (ledger_.contact_pending()) ledger_.contact_overdue();
}

void PolicyParty::flush_all(Outbox& out) {
    out_ = &out;
    for (flow::PeerIndex to = 0; to < queues_.size(); ++to) ledger_.flush(accounts_[to]);
}

std::optional<Handshake> PolicyParty::handshake(flow::PeerIndex peer) const {
    if (dynamic_ == nullptr) return std::nullopt;
    return Handshake{dynamic_->blocked(peer), dynamic_->request_waiting(peer),
                     dynamic_->response_waiting(peer)};
}

}  // namespace velo::schedule
