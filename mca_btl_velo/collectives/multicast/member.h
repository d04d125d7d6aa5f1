// A member of a group that multicasts: all streams of one process. Pure: what arrives, what is to be sent and
// the time go in, datagrams come out through a carrier. No clock, no socket, no random numbers, no allocation
// after construction: plugin, tests and simulator run this very object.
//
// Whatever is lost, doubled or overtaken, be it data or what is said about it, each member hands each
// datagram of each stream on once, in order, and no slot of a ring is written again before all who may ask
// for it have acknowledged it (design/multicast.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/multicast/carrier.h"
#include "collectives/multicast/collector.h"
#include "collectives/multicast/plan.h"
#include "collectives/multicast/receiver.h"
#include "collectives/multicast/sender.h"
#include "collectives/multicast/timer.h"

namespace velo::multicast {

struct Counters {
    std::uint64_t sent = 0;       // datagrams of the own stream, each once
    std::uint64_t resent = 0;     // to all, because time was over
    std::uint64_t full = 0;       // broadcasts that found no room
    std::uint64_t transfers = 0;  // data to co-roots, point to point
    std::uint64_t probes = 0;
    std::uint64_t nacks = 0;
    std::uint64_t repairs = 0;           // to one who asked
    std::uint64_t repairs_to_all = 0;    // because many asked
    std::uint64_t acks = 0;              // each of one stream
    std::uint64_t ack_datagrams = 0;     // that bring nothing else
    std::uint64_t acks_joined = 0;       // of `acks`: in a datagram that leaves for another one
    std::uint64_t acks_piggybacked = 0;  // of `acks`: with data, a NACK or a probe
    std::uint64_t acks_heard = 0;
    std::uint64_t delivered = 0;
    std::uint64_t kept = 0;  // ahead of their turn
    std::uint64_t duplicates = 0;
    std::uint64_t missed = 0;   // attached: too early or too late to be taken
    std::uint64_t strange = 0;  // what no correct member sends: changes nothing
};

class Member {
 public:
    // The first thing that is wrong with a configuration, or the empty string.
    static std::string objection(const Config& config);
    // `config` is one to which there is no objection.
    explicit Member(Config config);

    const Config& config() const { return config_; }
    const Counters& counters() const { return counters_; }

    // ---- source role: of a member that has a stream of its own

    // The number of the next datagram of the own stream. The slots of so many are free while there is room
    // for them.
    Sequence next() const { return streams_[own_].sender.next(); }
    bool has_room(std::uint32_t datagrams = 1) const { return streams_[own_].sender.has_room(datagrams); }
    // That may be under way now.
    std::uint32_t share() const { return streams_[own_].sender.share(); }
    // All have what is before it: buffers that datagrams were sent from may be written again.
    Sequence freed() const { return streams_[own_].sender.low(); }
    // Of the own stream: who has got on least, as far as those who collect for others have said.
    std::uint32_t slowest() const { return slowest(streams_[own_]); }
    // Sends what lies in the slots from next() on, and says the first. None: they have no room, which counts
    // as a time-out some time after.
    std::optional<Sequence> broadcast(std::uint64_t now_ns, Carrier& out, std::uint32_t datagrams = 1);
    // More is to be sent than there is room for, which counts as a time-out likewise.
    void lacks_room(std::uint64_t now_ns);

    // ---- all

    // Of whatever arrives: nothing that `from` says is believed without a check.
    void arrived(std::uint32_t from, const Datagram& datagram, std::uint64_t now_ns, Carrier& out);
    // When time is over at the earliest; kNever: nothing waits.
    std::uint64_t deadline() const;
    void tick(std::uint64_t now_ns, Carrier& out);
    // Something else leaves for `to`: puts acknowledgements for it into `room`, and says how many. They count
    // as sent.
    std::size_t ride(std::uint32_t to, Ack* room, std::size_t most);
    // One that came that way.
    void acknowledged(std::uint32_t from, const Ack& ack, std::uint64_t now_ns, Carrier& out);
    // Attached: the leader has handed on everything before `next`.
    void skip_to(std::uint32_t stream, Sequence next, std::uint64_t now_ns, Carrier& out);

    // How far this member is in a stream.
    Sequence expected(std::uint32_t stream) const;
    // Nothing of a stream waits for anything.
    bool quiet() const { return deadline() == kNever; }
    // All that the future depends on, times from `now_ns` on: of equal states the futures are equal.
    std::string state(std::uint64_t now_ns) const;

 private:
    static constexpr std::uint32_t kAll = UINT32_MAX;
    static constexpr std::size_t kNone = SIZE_MAX;

    struct Stream {
        Stream(const Config& config, std::uint32_t source);

        Plan plan;
        std::uint32_t collector;  // whom this member acknowledges to
        bool own;
        Sender sender;      // of the own stream
        Receiver receiver;  // of the others
        Collector set;      // those who acknowledge to this member
        std::vector<std::uint32_t> relays;
        Sequence source_low;         // the latest that was heard: what repairs say of the source
        Sequence acked;              // what was acknowledged last
        bool located = false;        // attached: where the stream is, has been heard
        bool owes = false;           // is in owing_
        Timer owed;                  // the acknowledgement is due
        Timer gap;                   // what is missing is asked for
        Timer patience;              // the source asks, or sends again
        std::uint64_t asked_ns = 0;  // when it did, or when it last got on
    };

    Datagram make(Kind kind, std::uint32_t stream, Sequence sequence) const;
    void multicast(Datagram datagram, Carrier& out);
    void send(std::uint32_t to, Datagram datagram, Carrier& out);
    std::size_t take_acks(std::uint32_t to, Ack* room, std::size_t most);

    void hear_data(std::uint32_t from, const Datagram& datagram, std::uint64_t now_ns, Carrier& out);
    void hear_nack(std::uint32_t from, const Datagram& datagram, Carrier& out);
    void hear_probe(std::uint32_t from, const Datagram& datagram, std::uint64_t now_ns, Carrier& out);
    void hear_ack(std::uint32_t from, const Ack& ack, std::uint64_t now_ns);

    void pass_on(std::uint32_t stream, std::uint64_t now_ns, Carrier& out);
    void watch_gap(Stream& stream, std::uint64_t now_ns, bool progress);
    void ask_for_missing(std::uint32_t stream, std::uint64_t now_ns, Carrier& out);
    void time_is_over(std::uint32_t stream, std::uint64_t now_ns, Carrier& out);
    void probe_set(std::uint32_t stream, Sequence end, Carrier& out);
    // All of the set, and this member itself, have what is before it.
    static Sequence low(const Stream& stream) { return stream.set.low(position(stream)); }
    static Sequence position(const Stream& stream) {
        return stream.own ? stream.sender.next() : stream.receiver.expected();
    }
    std::uint32_t slowest(const Stream& stream) const {
        return low(stream) == position(stream) ? config_.me : stream.set.slowest();
    }
    void progress(Stream& stream, std::uint64_t now_ns);
    Sequence due_after(Sequence acked) const;
    void owe(Stream& stream, std::uint64_t at_ns);
    void pay(std::uint64_t now_ns, Carrier& out);

    Config config_;
    std::uint32_t ack_every_, shift_;
    std::vector<Stream> streams_;
    std::size_t own_ = kNone;
    std::vector<std::uint32_t> owing_;  // streams whose acknowledgement is owed
    Counters counters_;
};

}  // namespace velo::multicast
