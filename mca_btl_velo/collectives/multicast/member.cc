#include "collectives/multicast/member.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace velo::multicast {
namespace {

// Basic is a window of one.
Config completed(Config config) {
    if (config.scheme != Scheme::kBasic) return config;
    config.window = 1;
    config.ack_every = 1;
    return config;
}

}  // namespace

std::string Member::objection(const Config& config) {
    if (config.members < 2) return "a group needs two members";
    if (config.me >= config.members && !config.attached) return "this is no member of the group";
    if (!std::has_single_bit(config.window) || config.window > 1U << 30)
        return "the window is a power of two, 2^30 at most";
    if (config.ack_every == 0) return "acknowledgements are for every datagram at least, not for every 0th";
    if (config.most_backoff == 0) return "a wait cannot get 0 times as long";
    if (config.co_roots >= config.members && config.co_roots != kSquareRoot)
        return "there are more co-roots than members beside the root";
    if (config.sources.empty()) return "a group without a source";
    for (std::size_t i = 0; i < config.sources.size(); ++i)
        if (config.sources[i] >= config.members ||
            std::find(config.sources.begin(), config.sources.begin() + static_cast<std::ptrdiff_t>(i),
                      config.sources[i]) != config.sources.begin() + static_cast<std::ptrdiff_t>(i))
            return "a source is no member, or there twice";
    return {};
}

Member::Stream::Stream(const Config& config, std::uint32_t source)
    : plan(config, source),
      collector(plan.collector_of(config.me)),
      own(source == config.me),
      sender(config),
      receiver(config),
      set(config.attached ? std::vector<std::uint32_t>() : plan.set_of(config.me), config),
      source_low(config.first),
      acked(config.first) {
    if (!config.attached) relays = plan.relays_of(config.me);
}

Member::Member(Config config)
    : config_(completed(std::move(config))),
      ack_every_(std::min(config_.ack_every, std::max(1U, Share(config_).least() / 2))),
      shift_(config_.skewed ? config_.me % ack_every_ : 0) {
    streams_.reserve(config_.sources.size());
    owing_.reserve(config_.sources.size());
    for (const std::uint32_t source : config_.sources) {
        if (source == config_.me) own_ = streams_.size();
        streams_.emplace_back(config_, source);
    }
}

// ---- what leaves

Datagram Member::make(Kind kind, std::uint32_t stream, Sequence sequence) const {
    const Stream& of = streams_[stream];
    Datagram datagram;
    datagram.kind = kind;
    datagram.stream = stream;
    datagram.sequence = sequence;
    datagram.low = of.own ? of.sender.low() : of.source_low;
    return datagram;
}

// Entries of owing_ whose collector is `to`, or any.
std::size_t Member::take_acks(std::uint32_t to, Ack* room, std::size_t most) {
    std::size_t taken = 0;
    for (std::size_t i = 0; i < owing_.size() && taken < most;) {
        Stream& stream = streams_[owing_[i]];
        if (to != kAll && stream.collector != to) {
            ++i;
            continue;
        }
        stream.acked = low(stream);
        stream.owes = false;
        stream.owed.disarm();
        room[taken++] = {stream.collector, owing_[i], stream.acked, slowest(stream)};
        owing_[i] = owing_.back();
        owing_.pop_back();
    }
    counters_.acks += taken;
    return taken;
}

std::size_t Member::ride(std::uint32_t to, Ack* room, std::size_t most) {
    const std::size_t taken = take_acks(to, room, most);
    counters_.acks_piggybacked += taken;
    return taken;
}

void Member::multicast(Datagram datagram, Carrier& out) {
    datagram.acks = static_cast<std::uint8_t>(ride(kAll, datagram.ack.data(), datagram.ack.size()));
    out.multicast(datagram);
}

void Member::send(std::uint32_t to, Datagram datagram, Carrier& out) {
    datagram.acks = static_cast<std::uint8_t>(ride(to, datagram.ack.data(), datagram.ack.size()));
    out.send(to, datagram);
}

// Acknowledgements that are due leave, and those to the same collector with them.
void Member::pay(std::uint64_t now_ns, Carrier& out) {
    for (std::size_t i = 0; i < owing_.size();) {
        const Stream& stream = streams_[owing_[i]];
        if (!stream.owed.due(now_ns)) {
            ++i;
            continue;
        }
        const std::uint32_t to = stream.collector;
        Datagram datagram;
        datagram.acks = static_cast<std::uint8_t>(take_acks(to, datagram.ack.data(), datagram.ack.size()));
        ++counters_.ack_datagrams;
        counters_.acks_joined += datagram.acks - 1U;
        out.send(to, datagram);
        i = 0;
    }
}

void Member::owe(Stream& stream, std::uint64_t at_ns) {
    if (!stream.owes) owing_.push_back(static_cast<std::uint32_t>(&stream - streams_.data()));
    stream.owes = true;
    stream.owed.hasten(at_ns);
}

// Each M-th datagram, each member at another one; after an acknowledgement elsewhere, as of one that had a
// ride, not within half of that.
Sequence Member::due_after(Sequence acked) const {
    const Sequence next = ack_every_ - (acked + shift_) % ack_every_;
    return acked + (next < ack_every_ / 2 && acked != config_.first ? next + ack_every_ : next);
}

// This member, or somebody of its set, has got on.
void Member::progress(Stream& stream, std::uint64_t now_ns) {
    const Sequence all_before = low(stream);
    if (stream.own) {
        if (all_before == stream.sender.low()) return;
        stream.sender.free_before(all_before);
        stream.asked_ns = now_ns;
        if (stream.sender.under_way() == 0)
            stream.patience.disarm();
        else
            stream.patience.arm(now_ns, config_.probe_ns);
        return;
    }
    if (config_.attached || distance(stream.acked, all_before) <= 0) return;
    const bool at_its_datagram = distance(due_after(stream.acked), all_before) >= 0;
    owe(stream, at_its_datagram ? now_ns : now_ns + config_.ack_delay_ns);
}

// ---- the source

std::optional<Sequence> Member::broadcast(std::uint64_t now_ns, Carrier& out, std::uint32_t datagrams) {
    const auto index = static_cast<std::uint32_t>(own_);
    Stream& stream = streams_[own_];
    if (!stream.sender.has_room(datagrams)) {
        ++counters_.full;
        lacks_room(now_ns);
        return std::nullopt;
    }
    if (!stream.patience.armed()) {
        stream.patience.arm(now_ns, config_.probe_ns);
        stream.asked_ns = now_ns;
    }
    const Sequence first = stream.sender.next();
    for (std::uint32_t i = 0; i < datagrams; ++i) {
        const Sequence sequence = stream.sender.send();
        stream.set.holds(sequence);
        ++counters_.sent;
        for (const std::uint32_t relay : stream.relays) {
            ++counters_.transfers;
            send(relay, make(Kind::kData, index, sequence), out);
        }
        multicast(make(Kind::kData, index, sequence), out);
    }
    return first;
}

void Member::lacks_room(std::uint64_t now_ns) {
    Stream& stream = streams_[own_];
    stream.patience.hasten(std::max(now_ns, stream.asked_ns + config_.full_ns));
}

// Nobody has got on for long.
void Member::time_is_over(std::uint32_t index, std::uint64_t now_ns, Carrier& out) {
    Stream& stream = streams_[index];
    stream.patience.arm_again(now_ns, config_.probe_ns, config_.most_backoff);
    stream.asked_ns = now_ns;
    if (!config_.by_timeout()) return probe_set(index, stream.sender.next(), out);
    Datagram oldest = make(Kind::kData, index, stream.sender.low());
    oldest.again = true;
    stream.sender.lost(oldest.sequence);
    ++counters_.resent;
    multicast(oldest, out);
}

// Whoever of the set lacks something before `end` is to say what.
void Member::probe_set(std::uint32_t index, Sequence end, Carrier& out) {
    streams_[index].set.for_each_behind(end, [&](std::uint32_t member) {
        ++counters_.probes;
        send(member, make(Kind::kProbe, index, end), out);
    });
}

// ---- what arrives

void Member::arrived(std::uint32_t from, const Datagram& datagram, std::uint64_t now_ns, Carrier& out) {
    if (from >= config_.members || from == config_.me || datagram.acks > datagram.ack.size() ||
        datagram.stream >= streams_.size()) {
        ++counters_.strange;
        return;
    }
    if (config_.attached) {
        if (datagram.kind == Kind::kData) hear_data(from, datagram, now_ns, out);
        return;
    }
    for (std::size_t i = 0; i < datagram.acks; ++i) hear_ack(from, datagram.ack[i], now_ns);
    switch (datagram.kind) {
        case Kind::kData:
            hear_data(from, datagram, now_ns, out);
            break;
        case Kind::kNack:
            hear_nack(from, datagram, out);
            break;
        case Kind::kProbe:
            hear_probe(from, datagram, now_ns, out);
            break;
        case Kind::kAck:
            break;
        default:
            ++counters_.strange;
    }
    pay(now_ns, out);
}

void Member::hear_data(std::uint32_t from, const Datagram& datagram, std::uint64_t now_ns, Carrier& out) {
    const std::uint32_t index = datagram.stream;
    Stream& stream = streams_[index];
    const Sequence sequence = datagram.sequence;
    const std::int32_t ahead = distance(datagram.low, sequence);
    // The source frees only what this member has acknowledged.
    const bool freed_too_early = distance(stream.receiver.expected(), datagram.low) > 0;
    if (!stream.plan.repairs(from) || ahead < 0 || static_cast<std::uint32_t>(ahead) >= config_.window ||
        (freed_too_early && !stream.own && !config_.attached)) {
        ++counters_.strange;
        return;
    }
    if (stream.own) return stream.sender.lost(sequence);  // a co-root repairs it for its set
    if (distance(stream.source_low, datagram.low) > 0) stream.source_low = datagram.low;
    if (stream.receiver.has(sequence)) {
        ++counters_.duplicates;
        // The acknowledgement may have been lost.
        if (datagram.again && !config_.attached) owe(stream, now_ns);
        return;
    }
    if (!stream.receiver.in_window(sequence)) {
        ++counters_.missed;  // attached, and far behind the leader
        return;
    }
    stream.located = true;
    stream.receiver.take(sequence);
    stream.set.holds(sequence);
    out.keep(index, sequence);
    for (const std::uint32_t relay : stream.relays) {
        ++counters_.transfers;
        send(relay, make(Kind::kData, index, sequence), out);
    }
    pass_on(index, now_ns, out);
}

// Whose turn it is.
void Member::pass_on(std::uint32_t index, std::uint64_t now_ns, Carrier& out) {
    Stream& stream = streams_[index];
    const Sequence before = stream.receiver.expected();
    while (stream.receiver.next_is_here()) {
        ++counters_.delivered;
        out.deliver(index, stream.receiver.pass_on());
    }
    const bool got_on = stream.receiver.expected() != before;
    counters_.kept += !got_on;
    watch_gap(stream, now_ns, got_on);
    if (got_on) progress(stream, now_ns);
}

void Member::skip_to(std::uint32_t index, Sequence next, std::uint64_t now_ns, Carrier& out) {
    Stream& stream = streams_[index];
    if (!std::exchange(stream.located, true)) {
        stream.receiver.start_at(next);  // anywhere on the circle
    } else {
        if (distance(stream.receiver.expected(), next) <= 0) return;
        stream.receiver.skip_to(next);
    }
    pass_on(index, now_ns, out);
}

// A gap that closes by itself was reordering. While one is open the wait never gets shorter: many who ask for
// much, again and again, would ask for more than can come.
void Member::watch_gap(Stream& stream, std::uint64_t now_ns, bool progress) {
    if (config_.by_timeout() || config_.attached) return;
    if (!stream.receiver.has_gap())
        stream.gap.disarm();
    else if (progress || !stream.gap.armed())
        stream.gap.rearm(now_ns, config_.reorder_ns);
}

void Member::ask_for_missing(std::uint32_t index, std::uint64_t now_ns, Carrier& out) {
    Stream& stream = streams_[index];
    stream.gap.arm_again(now_ns, config_.reorder_ns, config_.most_backoff);
    Datagram nack = make(Kind::kNack, index, stream.receiver.expected());
    nack.missing = stream.receiver.missing();
    ++counters_.nacks;
    send(stream.collector, nack, out);
}

void Member::hear_nack(std::uint32_t from, const Datagram& datagram, Carrier& out) {
    const std::uint32_t index = datagram.stream;
    Stream& stream = streams_[index];
    // Of what the set has not acknowledged nothing can be missing beyond the window.
    if (config_.by_timeout() || !stream.set.collects(from) ||
        distance(low(stream) + config_.window, datagram.sequence) >= 0) {
        ++counters_.strange;
        return;
    }
    for (unsigned i = 0; i < Datagram::kMissing; ++i) {
        const Sequence sequence = datagram.sequence + i;
        if ((datagram.missing >> i & 1) == 0 || distance(low(stream), sequence) < 0) continue;
        // A co-root that lacks it too asks for itself; it will be asked again.
        if (!(stream.own ? stream.sender.holds(sequence) : stream.receiver.has(sequence))) continue;
        if (stream.own) stream.sender.lost(sequence);
        const Datagram repair = make(Kind::kData, index, sequence);
        if (stream.set.asked(from, sequence)) {
            ++counters_.repairs_to_all;
            multicast(repair, out);
        } else {
            ++counters_.repairs;
            send(from, repair, out);
        }
    }
}

void Member::hear_probe(std::uint32_t from, const Datagram& datagram, std::uint64_t now_ns, Carrier& out) {
    const std::uint32_t index = datagram.stream;
    Stream& stream = streams_[index];
    const Sequence end = datagram.sequence;
    if (config_.by_timeout() || stream.own || from != stream.collector ||
        distance(stream.receiver.expected() + config_.window, end) > 0) {
        ++counters_.strange;
        return;
    }
    stream.receiver.learn(end);
    probe_set(index, end, out);
    owe(stream, now_ns);  // with the NACK, or alone
    if (stream.receiver.has_gap()) ask_for_missing(index, now_ns, out);
}

void Member::acknowledged(std::uint32_t from, const Ack& ack, std::uint64_t now_ns, Carrier& out) {
    hear_ack(from, ack, now_ns);
    pay(now_ns, out);
}

void Member::hear_ack(std::uint32_t from, const Ack& ack, std::uint64_t now_ns) {
    if (ack.to != config_.me) return;
    if (ack.stream >= streams_.size()) {
        ++counters_.strange;
        return;
    }
    Stream& stream = streams_[ack.stream];
    // Nobody has what has not been sent; of what the set has not acknowledged a window has been sent at most.
    const Sequence most =
        stream.own ? stream.sender.next() : stream.set.low(stream.receiver.expected()) + config_.window;
    switch (
        stream.set.acknowledge(from, ack.next, most, ack.slowest < config_.members ? ack.slowest : from)) {
        case Collector::Heard::kImpossible:
            ++counters_.strange;
            return;
        case Collector::Heard::kNothingNew:
            break;
        case Collector::Heard::kProgress:
            progress(stream, now_ns);
    }
    ++counters_.acks_heard;
}

// ---- time

std::uint64_t Member::deadline() const {
    std::uint64_t earliest = kNever;
    for (const Stream& stream : streams_)
        for (const Timer* timer : {&stream.patience, &stream.gap, &stream.owed})
            earliest = std::min(earliest, timer->due_ns());
    return earliest;
}

void Member::tick(std::uint64_t now_ns, Carrier& out) {
    for (std::uint32_t i = 0; i < streams_.size(); ++i) {
        if (streams_[i].patience.due(now_ns)) time_is_over(i, now_ns, out);
        if (streams_[i].gap.due(now_ns)) ask_for_missing(i, now_ns, out);
    }
    pay(now_ns, out);
}

// ---- for reports and tests

Sequence Member::expected(std::uint32_t stream) const {
    return streams_[stream].own ? streams_[stream].sender.next() : streams_[stream].receiver.expected();
}

std::string Member::state(std::uint64_t now_ns) const {
    std::vector<std::uint32_t> numbers;
    for (const Stream& stream : streams_) {
        stream.sender.append_state(numbers);
        numbers.insert(numbers.end(),
                       {stream.source_low, stream.acked, static_cast<std::uint32_t>(stream.owes),
                        static_cast<std::uint32_t>(stream.located)});
        stream.receiver.append_state(numbers);
        stream.set.append_state(numbers);
        const std::uint64_t since = std::min(now_ns - stream.asked_ns, config_.full_ns);
        for (const std::uint64_t time :
             {stream.patience.state(now_ns), stream.gap.state(now_ns), stream.owed.state(now_ns), since})
            numbers.insert(numbers.end(),
                           {static_cast<std::uint32_t>(time), static_cast<std::uint32_t>(time >> 32)});
    }
    numbers.insert(numbers.end(), owing_.begin(), owing_.end());
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0]};
}

}  // namespace velo::multicast
