#include "collectives/udp/channel.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "platform/failure.h"
#include "platform/monotonic.h"

namespace velo::fabric::udp {
namespace {

using multicast::Datagram;
using multicast::Kind;
using multicast::Sequence;

constexpr std::uint64_t kMillisecondNs = 1'000'000;
constexpr std::uint64_t kFirstCalls = 10 * kMillisecondNs, kDeaf = 100 * kMillisecondNs,
                        kMostBetweenCalls = 1000 * kMillisecondNs;
// Calls of poll() for a look at what goes to all while something is waited for that may as well come by
// messages; at all sockets while anything is expected, and while nothing is. A look costs as much as many
// calls of progress. Where the last one came by multicast, each call looks.
constexpr unsigned kEvery = 8, kOften = 32, kSeldom = 64;
// For room, while nobody gets on: so long, and so many looks, as this process may have had no processor.
constexpr std::uint64_t kPatience = 2 * kMillisecondNs;
constexpr unsigned kPatienceLooks = 128;
constexpr std::uint32_t kWithoutCoRoots = 16;  // members, at most
constexpr std::size_t kEntryBytes = 128;       // what is kept takes so much beside its data

// What a datagram takes of a receive buffer, by the kernel's account; so long as a datagram may be.
std::uint32_t buffered_bytes(const ChannelConfig& config) {
    return 2 * config.mtu;
}

multicast::Config group_of(const ChannelConfig& config, std::uint32_t receive_bytes) {
    multicast::Config group;
    group.members = static_cast<std::uint32_t>(config.members.size());
    group.me = config.me;
    group.sources.resize(config.members.size());
    std::iota(group.sources.begin(), group.sources.end(), 0U);
    group.scheme = config.scheme;
    // So few acknowledge to the source sooner than by way of a co-root, and nobody else keeps its data.
    if (group.members <= kWithoutCoRoots) group.co_roots = 0;
    if (config.co_roots) group.co_roots = std::min(*config.co_roots, group.members - 1);
    group.window = config.window;
    group.shares = config.shares;
    group.share = std::max(receive_bytes / buffered_bytes(config) / std::max(group.members - 1, 1U), 1U);
    group.ack_every = std::max(config.ack_every == 0 ? config.window / 4 : config.ack_every, 1U);
    group.ack_delay_ns = kMillisecondNs;
    group.attached = config.attached;
    if (const std::string wrong = multicast::Member::objection(group); !wrong.empty())
        throw Failure(VELO_ERR_PARAMETER, wrong);
    return group;
}

std::uint32_t payload_of(std::uint32_t mtu) {
    constexpr std::uint32_t kAround = Socket::kProtocolBytes + kMostHeaderBytes, kLeast = 256;
    if (mtu < kAround + kLeast) throw Failure(VELO_ERR_PARAMETER, "datagrams are too short for multicast");
    return std::min<std::uint32_t>(mtu - kAround, kMostPayloadBytes) / 16 * 16;
}

}  // namespace

Channel::Channel(const ChannelConfig& config)
    : config_(config),
      sealer_(config.key),
      payload_(payload_of(config.mtu)),
      socket_(config.members.at(config.me), place_of(config.key), config.attached, config.receive_bytes),
      member_(group_of(config, socket_.receive_bytes())),
      rings_(config.members.size()) {
    for (const in_addr_t address : config.members) peers_.push_back({address});
    for (std::uint32_t source = 0; source < config.members.size(); ++source)
        repairs_.push_back(multicast::Plan(member_.config(), source).repairs(config.me));
}

std::uint32_t Channel::datagrams_of(std::size_t bytes) const {
    return static_cast<std::uint32_t>((bytes + payload_ - 1) / payload_);
}

// There is none for what is to be sent.
void Channel::look_at_room() {
    if (!is_full_ || member_.freed() != freed_) {
        is_full_ = true;
        freed_ = member_.freed();
        full_since_ns_ = now_ns_;
        full_since_look_ = looks_;
        told_stall_ = false;
    }
}

bool Channel::fills_up(std::size_t bytes) {
    const std::uint32_t datagrams = datagrams_of(bytes);
    if (state_ != State::kGood || datagrams > window() || member_.has_room(datagrams)) return false;
    now_ns_ = platform::monotonic_ns();
    look_at_room();
    if (now_ns_ - full_since_ns_ >= kPatience && looks_ - full_since_look_ >= kPatienceLooks) return false;
    member_.lacks_room(now_ns_);
    due_ns_ = member_.deadline();
    wants_room_ = true;
    return true;
}

bool Channel::send(const Name& name, const void* data, std::size_t bytes) {
    now_ns_ = platform::monotonic_ns();
    if (state_ == State::kUntried) {
        state_ = State::kCalling;
        began_calling_ns_ = call_ns_ = now_ns_;
        call_every_ns_ = kFirstCalls;
    }
    const std::uint32_t datagrams = datagrams_of(bytes);
    const bool possible = state_ == State::kGood && datagrams > 0 && datagrams <= window();
    if (!possible || !member_.has_room(datagrams)) {
        if (possible) complain();
        ++counters_.multicasts_refused;
        return false;
    }
    const std::span all(static_cast<const std::byte*>(data), bytes);
    for (Sequence i = 0; i < datagrams; ++i) {
        const std::size_t at = std::size_t{i} * payload_;
        const Content content{name.run, name.group, static_cast<std::uint32_t>(bytes),
                              static_cast<std::uint32_t>(at)};
        put(config_.me, member_.next() + i, content,
            all.subspan(at, std::min<std::size_t>(payload_, bytes - at)));
    }
    (void)member_.broadcast(now_ns_, *this, datagrams);
    ++counters_.multicasts_sent;
    is_full_ = false;
    socket_.flush();
    due_ns_ = member_.deadline();
    return true;
}

// ---- what is wanted

void Channel::want(const Name& name, void* into, std::size_t bytes, void* who) {
    if (config_.attached) {
        pass({std::max(name.run, std::uint64_t{1}) - 1, name.group});
        std::uint64_t& newest = newest_[name.group];
        newest = std::max(newest, name.run);
    }
    const auto [at, is_new] = entries_.try_emplace(name);
    Entry& entry = at->second;
    entry.into = static_cast<std::byte*>(into);
    entry.capacity = bytes;
    entry.who = who;
    ++wanted_;
    look_now_ = true;
    if (is_new) return;
    stored_ -= entry.total + kEntryBytes;
    if (entry.total == bytes) std::memcpy(into, entry.own.get(), bytes);
    entry.own.reset();
    if (entry.filled == entry.total) finish(at);
}

void Channel::forget(const Name& name, const void* who) {
    if (const auto found = entries_.find(name); found != entries_.end() && found->second.who == who) {
        forget(found);
        came_here_ = false;
    }
    std::erase_if(arrived_, [who](const Arrived& arrived) { return arrived.who == who; });
}

void Channel::pass(const Name& name) {
    std::uint64_t& newest = newest_[name.group];
    newest = std::max(newest, name.run);
    std::erase_if(entries_, [&](const Entries::value_type& at) {
        const bool over =
            at.first.group == name.group && at.first.run <= name.run && at.second.who == nullptr;
        if (over) stored_ -= at.second.total + kEntryBytes;
        return over;
    });
}

void Channel::forget_group(std::uint64_t group) {
    newest_.erase(group);
    for (auto at = entries_.begin(); at != entries_.end();) {
        const auto next = std::next(at);
        if (at->first.group == group && at->second.who == nullptr) forget(at);
        at = next;
    }
}

void Channel::forget(Entries::iterator at) {
    if (at->second.who != nullptr)
        --wanted_;
    else
        stored_ -= at->second.total + kEntryBytes;
    entries_.erase(at);
}

void Channel::finish(Entries::iterator at) {
    arrived_.push_back({at->second.who, at->second.total == at->second.capacity});
    forget(at);
    came_here_ = true;
    ++counters_.multicasts_taken;
}

// Of a broadcast; its datagrams come in any order, each once.
void Channel::take(const Content& content, std::span<const std::byte> payload) {
    const auto [at, is_new] = entries_.try_emplace({content.run, content.group});
    Entry& entry = at->second;
    if (is_new) {
        entry.own = std::make_unique_for_overwrite<std::byte[]>(content.total);
        stored_ += content.total + kEntryBytes;
        counters_.multicast_kept_bytes = std::max(counters_.multicast_kept_bytes, stored_);
    }
    entry.total = content.total;
    std::byte* const into = entry.who != nullptr ? entry.into : entry.own.get();
    if (entry.who == nullptr || entry.total == entry.capacity)
        std::memcpy(into + content.offset, payload.data(), payload.size());
    entry.filled += static_cast<std::uint32_t>(payload.size());
    if (entry.who != nullptr && entry.filled == entry.total) finish(at);
}

// What is for nobody who waits is dropped, as if it had been lost, when all room is taken.
bool Channel::is_welcome(const Content& content, std::span<const std::byte> payload) {
    if (payload.empty() || content.total > std::uint64_t{payload_} * window() ||
        std::uint64_t{content.offset} + payload.size() > content.total) {
        ++counters_.multicast_strangers;
        return false;
    }
    const auto found = entries_.find({content.run, content.group});
    if (found != entries_.end()) {
        const Entry& entry = found->second;
        const bool agrees = entry.total == 0 || entry.total == content.total;
        counters_.multicast_strangers += !agrees;
        return agrees;
    }
    // What its leader has handed on comes here as well.
    if (config_.attached) {
        const auto newest = newest_.find(content.group);
        if (newest == newest_.end() || content.run <= newest->second) return false;
    }
    if (stored_ + content.total + kEntryBytes <= config_.stored_bytes) return true;
    ++counters_.multicast_dropped;
    return false;
}

// ---- multicast::Carrier

Channel::Slot& Channel::slot(std::uint32_t stream, Sequence sequence) {
    Ring& ring = rings_[stream];
    if (ring.slots.empty()) {
        ring.data = std::make_unique_for_overwrite<std::byte[]>(std::size_t{window()} * payload_);
        ring.slots.resize(window());
        for (std::size_t i = 0; i < ring.slots.size(); ++i)
            ring.slots[i].data = ring.data.get() + i * payload_;
    }
    return ring.slots[sequence & (window() - 1)];
}

void Channel::put(std::uint32_t stream, Sequence sequence, const Content& content,
                  std::span<const std::byte> payload) {
    Slot& to = slot(stream, sequence);
    to.content = content;
    to.bytes = static_cast<std::uint32_t>(payload.size());
    std::memcpy(to.data, payload.data(), payload.size());
}

void Channel::post(in_addr_t to, const Datagram& datagram) {
    Letter letter;
    letter.from = config_.me;
    letter.datagram = datagram;
    if (datagram.kind == Kind::kData) {
        const Slot& data = slot(datagram.stream, datagram.sequence);
        letter.content = data.content;
        letter.payload = {data.data, data.bytes};
    }
    socket_.send(to, sealer_, letter);
}

void Channel::multicast(const Datagram& datagram) {
    post(socket_.group(), datagram);
}

void Channel::send(std::uint32_t to, const Datagram& datagram) {
    post(peers_[to].address, datagram);
}

void Channel::keep(std::uint32_t stream, Sequence sequence) {
    if (repairs_[stream]) put(stream, sequence, arriving_->content, arriving_->payload);
    take(arriving_->content, arriving_->payload);
}

// ---- what arrives

void Channel::poll() {
    ++looks_;
    const bool waits = wanted_ > 0 && (look_now_ || came_here_ || looks_ % kEvery == 0),
               works = wants_room_ || looks_ % (is_calm() ? kSeldom : kOften) == 0;
    if (!waits && !works) return;
    look_now_ = wants_room_ = false;
    now_ns_ = platform::monotonic_ns();
    const auto take = [this](std::span<const std::byte> bytes) { hear(bytes); };
    // First, so that nobody is asked for again what lies there already.
    bool heard = socket_.receive_from_all(take) > 0;
    if (works) heard |= socket_.receive_own(take) > 0;
    if (now_ns_ >= due_ns_) member_.tick(now_ns_, *this);
    if (heard || now_ns_ >= due_ns_) due_ns_ = member_.deadline();
    if (state_ == State::kCalling) call();
    socket_.flush();
}

bool Channel::is_calm() const {
    return wanted_ == 0 && state_ != State::kCalling && due_ns_ == multicast::kNever;
}

void Channel::hear(std::span<const std::byte> bytes) {
    const std::optional<Letter> letter = opened(sealer_, bytes);
    if (!letter || letter->from >= peers_.size()) {
        ++counters_.multicast_strangers;
        return;
    }
    if (letter->from == config_.me) return;
    const Datagram& datagram = letter->datagram;
    if (config_.attached) {
        // Its leader answers for it: what the source has freed does not come any more.
        if (letter->call != Call::kNone || datagram.kind != Kind::kData || datagram.stream >= peers_.size())
            return;
        member_.skip_to(datagram.stream, datagram.low, now_ns_, *this);
    }
    if (letter->call != Call::kNone) return hear_call(*letter);
    if (datagram.kind == Kind::kData && !is_welcome(letter->content, letter->payload)) return;
    arriving_ = &*letter;
    member_.arrived(letter->from, datagram, now_ns_, *this);
    arriving_ = nullptr;
}

// ---- whether all hear this process

void Channel::say(Call call, in_addr_t to, bool heard) {
    Letter letter;
    letter.call = call;
    letter.heard = heard;
    letter.from = config_.me;
    socket_.send(to, sealer_, letter);
}

void Channel::call() {
    if (now_ns_ < call_ns_) return;
    say(Call::kHello, socket_.group());
    for (const Peer& peer : peers_)
        if (!peer.hears && &peer != &peers_[config_.me]) say(Call::kAsk, peer.address);
    if (now_ns_ - began_calling_ns_ > 10 * call_every_ns_)
        call_every_ns_ = std::min(2 * call_every_ns_, kMostBetweenCalls);
    call_ns_ = now_ns_ + call_every_ns_;
    if (told_silence_ || !is_long(now_ns_ - began_calling_ns_)) return;
    told_silence_ = true;
    for (std::uint32_t i = 0; i < peers_.size(); ++i)
        if (!peers_[i].hears && i != config_.me)
            return log(1, "multicast: " + name_of(i) +
                              " has not answered yet; until it does broadcasts use schedules");
}

void Channel::hear_call(const Letter& letter) {
    Peer& peer = peers_[letter.from];
    switch (letter.call) {
        case Call::kHello:
            peer.heard = true;
            [[fallthrough]];
        case Call::kAsk:
            return say(state_ == State::kBad ? Call::kNoUse : Call::kAnswer, peer.address, peer.heard);
        case Call::kNoUse:
            state_ = State::kBad;
            return;
        default:
            break;
    }
    if (state_ != State::kCalling || peer.hears) return;
    if (letter.heard) {
        peer.hears = true;
        if (++answers_ + 1 == peers_.size()) state_ = State::kGood;
    } else if (peer.deaf_ns == 0) {
        peer.deaf_ns = now_ns_;
    } else if (now_ns_ - peer.deaf_ns >= kDeaf) {
        state_ = State::kBad;
        log(0, "multicast does not reach " + name_of(letter.from) + ": broadcasts use schedules");
        for (std::uint32_t i = 0; i < peers_.size(); ++i)
            if (i != config_.me) say(Call::kNoUse, peers_[i].address);
    }
}

// ---- words

velo_multicast_state Channel::observe() const {
    velo_multicast_state state = counters_;
    const multicast::Counters& member = member_.counters();
    state.multicast_datagrams = member.sent;
    state.multicast_acks = member.acks_heard;
    state.multicast_requests = member.nacks;
    state.multicast_repairs = member.resent + member.repairs + member.repairs_to_all;
    state.multicast_duplicates = member.duplicates;
    state.multicast_strangers += member.strange;
    state.multicast_share = member_.share();
    state.multicast_system_calls = socket_.system_calls();
    return state;
}

// The window is full. While it is, who has not acknowledged for long is named, once for each time.
void Channel::complain() {
    look_at_room();
    if (!told_stall_ && is_long(now_ns_ - full_since_ns_)) {
        told_stall_ = true;
        log(0,
            "multicast: " + name_of(member_.slowest()) + " has made no progress for " +
                std::to_string((now_ns_ - full_since_ns_) / 1'000'000'000) +
                " s; meanwhile broadcasts use schedules. That process may be computing without calling MPI, "
                "or be stopped. btl_velo_stall_warning sets the seconds until this warning, 0 for none");
    }
}

std::string Channel::name_of(std::uint32_t member) const {
    std::array<char, INET_ADDRSTRLEN> text{};
    const in_addr address{peers_[member].address};
    (void)inet_ntop(AF_INET, &address, text.data(), text.size());
    return std::string(text.data()) + " (rank " + std::to_string(config_.ranks[member]) + ")";
}

void Channel::log(int level, const std::string& text) const {
    if (config_.log != nullptr) config_.log(config_.context, level, text.c_str());
}

bool Channel::owes(std::uint64_t group, std::uint64_t run) {
    for (Sequence s = member_.freed(); s != member_.next(); ++s) {
        const Content& content = slot(config_.me, s).content;
        if (content.group == group && content.run <= run) return true;
    }
    return false;
}

}  // namespace velo::fabric::udp
