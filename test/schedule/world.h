// N processes, a FIFO channel for each ordered pair, and a mailbox in arrival order for each receiver. An
// event is a send, a delivery (channel to mailbox) or a retrieve (mailbox to process); beside them there is
// what is read in a batch, and that its sender rests. `check` asserts the global invariants of
// design/flow-control.md, and `stranded` what must hold once everything has been retrieved.
//
// A Party is a process: PolicyParty (the production policies) or ReferenceParty (the independent model).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fifo.h"
#include "flow/policies.h"
#include "packet.h"
#include "scenario.h"

namespace velo::schedule {

struct Emission {
    std::uint32_t from;
    std::uint32_t to;
    wire::PacketKind kind;
    std::uint32_t value;
    std::uint32_t piggyback;
    bool operator==(const Emission&) const = default;
};

inline std::string to_string(const Emission& e) {
    static constexpr const char* kNames[] = {"?",     "DATA", "CREDIT",  "REQ",   "RESP",
                                             "HELLO", "BYE",  "RELEASE", "LEAVE", "DATA backlogged"};
    return std::to_string(e.from) + "->" + std::to_string(e.to) + " " +
           kNames[static_cast<std::size_t>(e.kind)] + "(" +
           std::to_string(wire::is_data(e.kind) ? e.piggyback : e.value) + ")";
}

template <class Party>
class World {
 public:
    template <class... Options>
    explicit World(const Scenario& scenario, const Options&... options)
        : scenario_(std::make_shared<const Scenario>(scenario)),
          links_(scenario.processes * scenario.processes),
          ended_(scenario.processes),
          boxes_(scenario.processes) {
        std::vector<std::uint32_t> peers(processes() * processes());
        for (std::uint32_t p = 0; p < processes(); ++p) {
            parties_.emplace_back(scenario, p, options...);
            const flow::MailboxPlan plan = flow::mailbox_plan(scenario.policy, scenario.config_of(p));
            boxes_[p].data_slots = plan.data_slots;
            boxes_[p].control_slots = plan.control_slots;
            boxes_[p].credit_packets = plan.credit_packets;
            if (!scenario.one_queue) boxes_[p].sender_limit = parties_[p].refusal_limit();
            for (std::uint32_t q = 0; q < processes(); ++q) {
                if (q == p) continue;
                link(p, q).index = scenario.index_of(p, q);
                peers[p * processes() + link(p, q).index] = q;
            }
        }
        peers_ = std::make_shared<const std::vector<std::uint32_t>>(std::move(peers));
    }

    std::uint32_t processes() const { return scenario_->processes; }
    const Scenario& scenario() const { return *scenario_; }
    const Party& party(std::uint32_t p) const { return parties_[p]; }
    flow::PeerIndex index(std::uint32_t p, std::uint32_t peer) const { return link(p, peer).index; }
    std::size_t in_channel(std::uint32_t from, std::uint32_t to) const {
        return link(from, to).channel.size();
    }
    wire::PacketKind kind_in_channel(std::uint32_t from, std::uint32_t to, std::size_t position) const {
        return link(from, to).channel[position].kind;
    }
    // A HELLO that does not travel through the mailbox is due from `from` at `to`.
    bool doorbell(std::uint32_t from, std::uint32_t to) const { return link(from, to).doorbell; }
    std::size_t in_mailbox(std::uint32_t p) const { return boxes_[p].arrived.size(); }
    std::size_t backlog(std::uint32_t p, std::uint32_t to) const { return parties_[p].backlog(index(p, to)); }
    std::uint64_t data_packets(std::uint32_t from, std::uint32_t to) const { return link(from, to).received; }
    std::uint64_t packets() const { return packets_; }
    bool limited() const { return parties_[0].limited(); }
    std::uint64_t now_ns() const { return now_ns_; }

    // ---- events
    // -----------------------------------------------------------------------------------------------

    // A message of `count` packets, the last of which may have room for a piggybacked count.
    void send(std::uint32_t from, std::uint32_t to, std::uint32_t count, bool spare) {
        begin_event();
        if (by_reference() && scenario_->by_reference.takes_credits) take_credits(from, to);
        Post out(*this, from);
        std::uint64_t& offered = link(from, to).offered;
        const std::uint64_t first = std::exchange(offered, offered + count);
        if (by_reference())
            return parties_[from].send(index(from, to),
                                       Pending{.spare = spare, .packets = count, .first = first}, out);
        for (std::uint32_t i = 1; i <= count; ++i)
            parties_[from].send(index(from, to), Pending{spare && i == count}, out);
    }
    void deliver(std::uint32_t from, std::uint32_t to) {
        begin_event();
        boxes_[to].arrived.push({from, link(from, to).channel.pop()});
    }
    // The process takes the oldest packet out of its mailbox. Returns true if that was DATA, and its sender.
    bool retrieve(std::uint32_t p, std::uint32_t* from) {
        begin_event();
        const Arrival arrival = boxes_[p].arrived.pop();
        *from = arrival.from;
        consume(arrival.from, p, arrival.packet);
        return wire::is_data(arrival.packet.kind);
    }
    // The doorbell is heard: now, before, or after packets of the same pair.
    void hear(std::uint32_t from, std::uint32_t to) {
        begin_event();
        link(from, to).doorbell = false;
        count_contact(from, to, wire::PacketKind::kHello, -1);
        Post out(*this, to);
        parties_[to].retrieve(index(to, from), Packet{.kind = wire::PacketKind::kHello}, out);
    }
    // A fabric that does not keep the order of a pair, for tests that must fail: the second packet in the
    // channel comes first.
    void pass_second(std::uint32_t from, std::uint32_t to) {
        begin_event();
        Fifo<Packet>& channel = link(from, to).channel;
        std::swap(channel[0], channel[1]);
        consume(from, to, channel.pop());
    }
    // Delivery and retrieve in one: with empty mailboxes any order of arrival is an order of these.
    void pass(std::uint32_t from, std::uint32_t to) {
        begin_event();
        consume(from, to, link(from, to).channel.pop());
    }
    // The process looks at its queues again: a mailbox that was full may have room.
    void poke(std::uint32_t p) {
        if (ended_[p]) return;
        begin_event();
        Post out(*this, p);
        parties_[p].flush_all(out);
    }
    void overdue(std::uint32_t p) {
        begin_event();
        Post out(*this, p);
        parties_[p].overdue(out);
    }
    bool contact_pending(std::uint32_t p) const { return parties_[p].contact_pending(); }
    // The process looks at an empty mailbox.
    void look(std::uint32_t p) {
        begin_event();
        Post out(*this, p);
        parties_[p].look(out);
    }
    // It owes a CREDIT that waits for that.
    bool delays(std::uint32_t p) const {
        for (flow::PeerIndex q = 0; q + 1 < processes(); ++q)
            if (parties_[p].delayed_credits(q) > 0) return true;
        return false;
    }
    // Readers of the process's outbox of which it has not been told all that they have read.
    std::uint32_t untold(std::uint32_t p) const {
        if constexpr (requires(const Party& party) { party.untold(); }) return parties_[p].untold();
        return 0;
    }
    void tell(std::uint32_t p, std::uint32_t reader) {
        begin_event();
        parties_[p].tell(reader);
    }
    // How much `to` could read of the batch of `from` that it follows.
    std::size_t enclosed(std::uint32_t from, std::uint32_t to) const {
        if constexpr (kBatches)
            if (link(from, to).follows) return parties_[from].batch_at(link(from, to).followed.place).size();
        return 0;
    }
    // Reads the first of it. True: that was a message.
    bool read_enclosed(std::uint32_t from, std::uint32_t to) {
        begin_event();
        return take_enclosed(from, to);
    }
    bool appends(std::uint32_t from, std::uint32_t to) const {
        if constexpr (kBatches) return !ended_[from] && parties_[from].appends(index(from, to));
        return false;
    }
    void rest(std::uint32_t from, std::uint32_t to) {
        begin_event();
        if constexpr (kBatches) parties_[from].rest(index(from, to));
    }
    // The process ends where it stands. What it has sent is still on its way; nobody will take what was sent
    // to it.
    void end(std::uint32_t p) {
        begin_event();
        ended_[p] = true;
        for (std::uint32_t q = 0; q < processes(); ++q) {
            if (q == p) continue;
            link(q, p) = Link{.index = link(q, p).index};
            link(p, q).buried = false;
        }
        boxes_[p].clear();
    }
    bool ended(std::uint32_t p) const { return ended_[p]; }
    // Whether `q` has taken all that the ended `p` has sent, and has yet to clear up after it.
    bool may_bury(std::uint32_t q, std::uint32_t p) const {
        return ended_[p] && !ended_[q] && !link(p, q).buried &&
               (hurries_ || (link(p, q).outstanding == 0 && enclosed(p, q) == 0));
    }
    // All do that before they have taken all, for tests that must fail: what is under way comes from the
    // place of the next process, then.
    void hurry() { hurries_ = true; }
    // True if the policy of `q` could.
    bool bury(std::uint32_t q, std::uint32_t p) {
        begin_event();
        if (std::exchange(link(p, q).doorbell, false)) count_contact(p, q, wire::PacketKind::kHello, -1);
        Post out(*this, q);
        link(p, q).buried = parties_[q].departed(index(q, p), out);
        if (link(p, q).buried) link(p, q).follows = false;
        return link(p, q).buried;
    }
    // All that live have cleared up.
    bool may_replace(std::uint32_t p) const {
        for (std::uint32_t q = 0; q < processes(); ++q)
            if (q != p && !ended_[q] && !link(p, q).buried) return false;
        return ended_[p];
    }
    // A new process in the place of the ended one. It connects to those that live, and they to it.
    void replace(std::uint32_t p) {
        begin_event();
        ended_[p] = false;
        std::destroy_at(&parties_[p]);
        std::construct_at(&parties_[p], *scenario_, p);
        for (std::uint32_t q = 0; q < processes(); ++q) {
            if (q == p) continue;
            for (auto [from, to] : {std::pair{p, q}, std::pair{q, p}})
                if (!hurries_ || from == q) link(from, to) = Link{.index = link(from, to).index};
            link(p, q).buried = false;
            if (ended_[q]) {
                // Met by nobody here, so that there is nothing to clear up.
                link(q, p).buried = true;
                link(p, q).buried = false;
                continue;
            }
            parties_[q].connect(index(q, p), flow::initial_credit(scenario_->policy, scenario_->config_of(p),
                                                                  scenario_->index_of(p, q)));
        }
    }
    // Time passes until no timer of any process is running, and each looks at its queues again.
    void sleep() {
        for (std::uint32_t p = 0; p < processes(); ++p)
            for (std::uint32_t q = 0; q < processes(); ++q)
                if (p != q) now_ns_ = std::max(now_ns_, parties_[p].retry_at_ns(index(p, q)));
        for (std::uint32_t p = 0; p < processes(); ++p) poke(p);
    }
    // What the last event sent, in order.
    const std::vector<Emission>& emissions() const { return emissions_; }

    // ---- checks
    // -----------------------------------------------------------------------------------------------

    // The first violated invariant of I1-I14, or the empty string.
    std::string check() const {
        if (!fault_.empty()) return fault_;
        for (std::uint32_t p = 0; p < processes(); ++p) {
            if (ended_[p]) continue;
            const Box& box = boxes_[p];
            if (box.outstanding > box.slots()) return at(p) + "the mailbox overflows";
            for (std::uint32_t q = 0; q < processes(); ++q)
                if (q != p && link(q, p).outstanding > box.sender_limit)
                    return at(q, p) + "more packets than buffers";
            if (!limited()) continue;
            if (box.data_outstanding > box.data_slots) return at(p) + "I4: the data region overflows";
            if (box.outstanding - box.data_outstanding > box.control_slots)
                return at(p) + "I5: the control region overflows";
            if (std::string broken = parties_[p].violation(); !broken.empty()) return at(p) + broken;
            for (std::uint32_t q = 0; q < processes(); ++q) {
                if (q == p || ended_[q]) continue;
                if (std::string broken = check_pair(p, q); !broken.empty()) return at(p, q) + broken;
            }
        }
        return {};
    }
    // Harm alone, for rules that are known to break the invariants: empty, "over-commit" or "overflow".
    std::string harm() const {
        for (std::uint32_t p = 0; p < processes(); ++p) {
            if (parties_[p].available() < 0 || boxes_[p].data_outstanding > boxes_[p].data_slots)
                return "over-commit";
            for (std::uint32_t q = 0; q < processes(); ++q)
                if (link(q, p).credit_packets > scenario_->credit_slots) return "overflow";
        }
        return {};
    }
    // A batch that is open and has been read is nothing to wait for: its sender may be computing for ever.
    bool quiet() const {
        for (const Link& l : links_)
            if (l.outstanding > 0 || l.doorbell) return false;
        for (std::uint32_t p = 0; p < processes(); ++p) {
            if (delays(p) || untold(p) > 0) return false;
            for (std::uint32_t q = 0; q < processes(); ++q)
                if (q != p && !ended_[q] && enclosed(p, q) > 0) return false;
        }
        return true;
    }
    // The largest number of slots of this process's mailbox that were in use at one time.
    std::uint64_t high_water(std::uint32_t p) const { return boxes_[p].high_water; }
    // I15. In a quiet world: what is left over, or the empty string.
    std::string stranded() const {
        for (std::uint32_t p = 0; p < processes(); ++p)
            for (std::uint32_t q = 0; q < processes(); ++q) {
                if (q == p || ended_[p]) continue;
                if (ended_[q]) {
                    if (link(q, p).buried && allocated(p, q) > 0)
                        return at(p, q) + "R6: allocated to a process that has ended";
                    continue;
                }
                if (backlog(p, q) > 0) return at(p, q) + "I15: packets wait for ever";
                if (link(p, q).units != link(p, q).offered) return at(p, q) + "R5: parts are missing";
                if (parties_[p].control_waiting(index(p, q)))
                    return at(p, q) + "I15: a REQ or RESP waits for ever";
                if constexpr (kBatches)
                    if (parties_[p].unread(index(p, q)) > (appends(p, q) ? 1U : 0U))
                        return at(p, q) + "R6: allocated and unread";
                if (link(p, q).received != link(p, q).sent) return at(p, q) + "I15: packets are missing";
                if (auto shake = parties_[p].handshake(index(p, q)); shake && shake->blocked)
                    return at(p, q) + "I15: blocked for ever";
            }
        return {};
    }
    // The state as text, without what does not influence the future. Mailboxes must be empty.
    std::string encode() const {
        std::string text = fault_;
        for (const Party& party : parties_) party.encode(text);
        for (const bool ended : ended_) text.push_back(static_cast<char>(ended));
        for (const Link& l : links_) {
            text.push_back(static_cast<char>(l.buried));
            text.push_back(static_cast<char>(l.channel.size()));
            text.push_back(static_cast<char>(l.offered - l.units));
            for (std::size_t i = 0; i < l.channel.size(); ++i) {
                text.push_back(static_cast<char>(l.channel[i].kind));
                text.push_back(static_cast<char>(l.channel[i].value));
                text.push_back(static_cast<char>(l.channel[i].piggyback));
                if (by_reference()) text.push_back(static_cast<char>(l.channel[i].first - l.units));
                if (!l.channel[i].refers) continue;
                if (l.channel[i].batch) encode_batch(text, l, l.channel[i]);
                text.push_back(static_cast<char>(l.channel[i].units));
                text.append(std::to_string(l.channel[i].place)).push_back('@');
            }
            text.push_back(static_cast<char>(l.doorbell));
            if (l.follows) encode_batch(text.append("f"), l, l.followed);
        }
        return text;
    }

 private:
    struct Link {
        flow::PeerIndex index = 0;  // of the receiver, at the sender
        Fifo<Packet> channel{};
        // Sent and not yet retrieved, in the channel or in the mailbox:
        std::uint32_t outstanding = 0;
        std::uint32_t data_class = 0;      // DATA, REQ, RESP
        std::uint32_t credit_packets = 0;  // CREDIT
        std::uint32_t credits = 0;         // in CREDIT and piggybacked
        std::uint32_t returned = 0;        // in RESP and BYE
        std::uint32_t requests = 0;        // REQ
        std::uint32_t responses = 0;       // RESP
        bool doorbell = false;             // a HELLO outside of the mailbox
        bool follows = false;              // the receiver follows a batch, which `followed` tells of
        Packet followed{};
        bool buried = false;            // the receiver has cleared up after the sender, which has ended
        std::uint8_t contacts[9] = {};  // HELLO, BYE, RELEASE and LEAVE, by kind
        std::uint64_t sent = 0;         // DATA packets
        std::uint64_t received = 0;
        std::uint64_t offered = 0;  // packets that the messages would take
        std::uint64_t units = 0;    // of those, what has been received in DATA or read by reference
    };
    struct Arrival {
        std::uint32_t from;
        Packet packet;
    };
    struct Box {
        Fifo<Arrival> arrived;
        std::uint64_t data_slots = 0;
        std::uint64_t control_slots = 0;
        std::uint32_t credit_packets = 0;  // of one sender
        std::uint32_t sender_limit = UINT32_MAX;
        std::uint32_t outstanding = 0;
        std::uint32_t data_outstanding = 0;
        std::uint32_t high_water = 0;

        std::uint64_t slots() const { return data_slots + control_slots; }
        void clear() {
            arrived = {};
            outstanding = data_outstanding = 0;
        }
    };
    class Post final : public Outbox {
     public:
        Post(World& world, std::uint32_t from) : world_(world), from_(from) {}
        void put(flow::PeerIndex to, const Packet& packet) override {
            world_.post(from_, world_.process_at(from_, to), packet);
        }
        bool has_room(flow::PeerIndex to) const override {
            const std::uint32_t process = world_.process_at(from_, to);
            const Box& box = world_.boxes_[process];
            return box.outstanding < box.slots() &&
                   world_.link(from_, process).outstanding < box.sender_limit;
        }
        std::uint64_t now_ns() const override { return world_.now_ns_; }

     private:
        World& world_;
        std::uint32_t from_;
    };

    void begin_event() {
        emissions_.clear();
        now_ns_ += kEventNs;
    }

    static constexpr bool kBatches = requires(const Party& party) { party.batch_at(0U); };

    // As Engine::take_credits, where a message would find none.
    void take_credits(std::uint32_t p, std::uint32_t to) {
        Fifo<Arrival>& arrived = boxes_[p].arrived;
        while (parties_[p].credit(index(p, to)) == 0 && !arrived.empty() &&
               arrived.front().packet.kind == wire::PacketKind::kCredit) {
            const Arrival arrival = arrived.pop();
            consume(arrival.from, p, arrival.packet);
        }
    }
    bool take_enclosed(std::uint32_t from, std::uint32_t to) {
        if constexpr (kBatches) {
            Link& l = link(from, to);
            const Enclosed what = parties_[from].batch_at(l.followed.place).front();
            parties_[from].take_enclosed(l.followed.place);
            if (what.units > 0) {
                place(from, to, what.first, what.units);
                parties_[to].heard(index(to, from));
                return true;
            }
            l.follows = false;
            read(from, to, l.followed);
        }
        return false;
    }
    // The receiver takes parts of the messages of the pair.
    void place(std::uint32_t from, std::uint32_t to, std::uint64_t first, std::uint32_t units) {
        Link& l = link(from, to);
        if (by_reference() && first != l.units) fault_ = at(from, to) + "R5: a part is not in its place";
        l.units += units;
    }
    void encode_batch(std::string& text, const Link& l, const Packet& reference) const {
        if constexpr (kBatches) {
            const Party& sender = parties_[static_cast<std::size_t>(&l - links_.data()) / processes()];
            const Fifo<Enclosed>& batch = sender.batch_at(reference.place);
            for (std::size_t i = 0; i < batch.size(); ++i) {
                text.push_back(static_cast<char>(batch[i].units));
                if (batch[i].units > 0) text.push_back(static_cast<char>(batch[i].first - l.units));
            }
            text.append(std::to_string(reference.place)).push_back('@');
        }
    }

    // Messages are sent whole, and each part of them has its place.
    bool by_reference() const { return scenario_->by_reference.outbox_bytes > 0; }
    Link& link(std::uint32_t from, std::uint32_t to) { return links_[from * processes() + to]; }
    const Link& link(std::uint32_t from, std::uint32_t to) const { return links_[from * processes() + to]; }
    std::uint32_t process_at(std::uint32_t p, flow::PeerIndex index) const {
        return (*peers_)[p * processes() + index];
    }
    static std::string at(std::uint32_t p) { return "process " + std::to_string(p) + ": "; }
    static std::string at(std::uint32_t p, std::uint32_t q) {
        return "process " + std::to_string(p) + " to " + std::to_string(q) + ": ";
    }

    void post(std::uint32_t from, std::uint32_t to, Packet packet) {
        if (ended_[to]) return;
        Link& l = link(from, to);
        Box& box = boxes_[to];
        if (packet.kind == wire::PacketKind::kHello && scenario_->parameters.lazy_doorbell) {
            l.doorbell = true;
            count_contact(from, to, packet.kind, 1);
            emissions_.push_back({from, to, packet.kind, 0, 0});
            return;
        }
        ++l.outstanding;
        ++box.outstanding;
        box.high_water = std::max(box.high_water, box.outstanding);
        ++packets_;
        if (packet.takes_data_slot()) {
            ++l.data_class;
            ++box.data_outstanding;
        }
        l.credits += packet.piggyback;
        if (packet.value > flow::kMaxQuota || packet.piggyback > flow::kMaxQuota)
            fault_ = at(from, to) + "a count does not fit into 16 bits";
        switch (packet.kind) {
            case wire::PacketKind::kData:
            case wire::PacketKind::kBackloggedData:
                packet.sequence = l.sent++;
                break;
            case wire::PacketKind::kCredit:
                ++l.credit_packets;
                l.credits += packet.value;
                if (packet.value == 0) fault_ = at(from, to) + "an empty CREDIT";
                break;
            case wire::PacketKind::kRequest:
                ++l.requests;
                break;
            case wire::PacketKind::kResponse:
                ++l.responses;
                l.returned += packet.value;
                break;
            case wire::PacketKind::kBye:
                l.returned += packet.value;
                count_contact(from, to, packet.kind, 1);
                break;
            default:
                count_contact(from, to, packet.kind, 1);
        }
        l.channel.push(packet);
        emissions_.push_back({from, to, packet.kind, packet.value, packet.piggyback});
    }

    void consume(std::uint32_t from, std::uint32_t to, const Packet& packet) {
        Link& l = link(from, to);
        --l.outstanding;
        --boxes_[to].outstanding;
        if (packet.takes_data_slot()) {
            --l.data_class;
            --boxes_[to].data_outstanding;
        }
        l.credits -= packet.piggyback;
        switch (packet.kind) {
            case wire::PacketKind::kData:
            case wire::PacketKind::kBackloggedData:
                if (packet.sequence != l.received++) fault_ = at(from, to) + "DATA out of order";
                while (enclosed(from, to) > 0) take_enclosed(from, to);
                if (l.follows) fault_ = at(from, to) + "R8: a packet comes before the end of a batch";
                place(from, to, packet.first, packet.units);
                if (packet.batch) {
                    l.follows = true;
                    l.followed = packet;
                } else if (packet.refers) {
                    read(from, to, packet);
                }
                break;
            case wire::PacketKind::kCredit:
                --l.credit_packets;
                l.credits -= packet.value;
                break;
            case wire::PacketKind::kRequest:
                --l.requests;
                break;
            case wire::PacketKind::kResponse:
                --l.responses;
                l.returned -= packet.value;
                break;
            case wire::PacketKind::kBye:
                l.returned -= packet.value;
                count_contact(from, to, packet.kind, -1);
                break;
            default:
                count_contact(from, to, packet.kind, -1);
        }
        Post out(*this, to);
        parties_[to].retrieve(index(to, from), packet, out);
    }

    void read(std::uint32_t from, std::uint32_t to, const Packet& reference) {
        if constexpr (requires(Party & party) { party.read(reference); })
            if (std::string broken = parties_[from].read(reference); !broken.empty())
                fault_ = at(from, to) + broken;
    }
    std::uint64_t allocated(std::uint32_t p, std::uint32_t to) const {
        if constexpr (requires(const Party& party) { party.allocated_to(0U); })
            return parties_[p].allocated_to(index(p, to));
        return 0;
    }

    // At most one HELLO, BYE, RELEASE and LEAVE of each kind is under way in a pair.
    void count_contact(std::uint32_t from, std::uint32_t to, wire::PacketKind kind, int change) {
        std::uint8_t& count = link(from, to).contacts[static_cast<std::size_t>(kind)];
        count = static_cast<std::uint8_t>(count + change);
        if (count > 1) fault_ = at(from, to) + "two packets of one kind that may be under way once";
    }

    // `s` in the sender role, `r` in the receiver role.
    std::string check_pair(std::uint32_t s, std::uint32_t r) const {
        const Party& sender = parties_[s];
        const Party& receiver = parties_[r];
        const Link& there = link(s, r);
        const Link& back = link(r, s);
        const std::uint32_t credit = sender.credit(there.index);
        const std::uint32_t current = receiver.current(back.index);
        const std::uint32_t delayed = receiver.delayed_credits(back.index);
        const std::uint32_t found = credit + there.data_class + back.credits + there.returned + delayed;
        if (current != found)
            return "I3: the receiver counts " + std::to_string(current) + " credits, there are " +
                   std::to_string(found);
        if (there.credit_packets > boxes_[r].credit_packets) return "I5: the credit region overflows";
        if (!sender.on_demand()) {
            if (current < 1) return "I12: no credit left in circulation";
            if (credit == 0 && there.outstanding + back.outstanding + delayed == 0)
                return "I14: no credit, and none on its way";
        }
        if (credit > 0 && sender.backlog(there.index) > 0) return "packets wait in spite of credits";
        if (credit > 0 && sender.control_waiting(there.index))
            return "a REQ or RESP waits in spite of credits";
        const auto asker = receiver.handshake(back.index);
        const auto asked = sender.handshake(there.index);
        if (asker && asked) {
            const std::uint32_t stages =
                asker->request_waiting + back.requests + asked->response_waiting + there.responses;
            if (stages != (asker->blocked ? 1U : 0U))
                return "I8: blocked " + std::to_string(asker->blocked) + ", " + std::to_string(stages) +
                       " stages";
        }
        return {};
    }

    // Shared between copies, which the exploration of states makes by the thousand.
    std::shared_ptr<const Scenario> scenario_;
    std::shared_ptr<const std::vector<std::uint32_t>> peers_;  // process of each peer index, from p * N on
    std::vector<Party> parties_;
    std::vector<Link> links_;  // from * N + to
    std::vector<bool> ended_;
    std::vector<Box> boxes_;
    std::vector<Emission> emissions_;
    // An event takes this long; what counts is its ratio to the timers of the scenarios.
    static constexpr std::uint64_t kEventNs = 100;
    std::uint64_t now_ns_ = 0;
    std::uint64_t packets_ = 0;
    bool hurries_ = false;
    std::string fault_;
};

}  // namespace velo::schedule
