// Members of a group and all that is under way between them. A datagram on its way can arrive at any moment,
// after any other, twice, or never.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/multicast/member.h"

namespace velo::multicast {

class World {
 public:
    struct Packet {
        std::uint32_t from, to;
        Datagram datagram;
        std::uint64_t payload;  // of data; else 0

        friend bool operator==(const Packet&, const Packet&) = default;
    };

    // Each source broadcasts `datagrams`. `merge`: equal datagrams that are under way together are one.
    // `followers`: attached processes, whose leader is the last member.
    World(const Config& config, std::uint32_t datagrams, bool merge = false, std::uint32_t followers = 0)
        : members_(config.members), merge_(merge) {
        nodes_.reserve(config.members + followers);
        for (std::uint32_t m = 0; m < config.members + followers; ++m) {
            Config own = config;
            own.me = m;
            own.attached = m >= config.members;
            nodes_.emplace_back(own, datagrams);
        }
    }

    std::uint32_t members() const { return members_; }
    std::uint32_t processes() const { return static_cast<std::uint32_t>(nodes_.size()); }
    const Member& member(std::uint32_t m) const { return nodes_[m].member; }
    const std::vector<Packet>& packets() const { return packets_; }
    std::uint64_t deadline(std::uint32_t m) const { return nodes_[m].member.deadline(); }
    std::uint64_t now(std::uint32_t m) const { return nodes_[m].now; }
    bool wants_to_send(std::uint32_t m) const { return nodes_[m].stream != kNone && nodes_[m].left > 0; }

    // Clocks differ: where nothing else is said only that of the member goes on, to what it waits for.
    void set_clock(std::uint32_t m, std::uint64_t now_ns) { nodes_[m].now = std::max(nodes_[m].now, now_ns); }
    void tick(std::uint32_t m) {
        Node& node = nodes_[m];
        set_clock(m, node.member.deadline());
        Wire wire(*this, m, 0);
        node.member.tick(node.now, wire);
    }
    bool broadcast(std::uint32_t m) {
        Node& node = nodes_[m];
        if (node.member.has_room()) {
            const Sequence sequence = node.member.next();
            overwrite(m, node.stream, sequence, payload_of(node.stream, sequence));
        }
        Wire wire(*this, m, 0);
        if (!node.member.broadcast(node.now, wire)) return false;
        --node.left;
        return true;
    }
    void arrive(std::size_t index, bool stays = false) {
        const Packet packet = packets_[index];
        if (!stays) lose(index);
        Wire wire(*this, packet.to, packet.payload);
        Node& node = nodes_[packet.to];
        node.member.arrived(packet.from, packet.datagram, node.now, wire);
    }
    // The leader of a follower has something for it.
    bool led(std::uint32_t follower) const {
        return distance(nodes_[follower].member.expected(0), nodes_[members_ - 1].member.expected(0)) > 0;
    }
    void read_board(std::uint32_t follower) {
        Node& node = nodes_[follower];
        const Sequence next = nodes_[members_ - 1].member.expected(0);
        if (distance(node.delivered[0], next) > 0) node.delivered[0] = next;
        Wire wire(*this, follower, 0);
        node.member.skip_to(0, next, node.now, wire);
    }
    void lose(std::size_t index) {
        packets_[index] = packets_.back();
        packets_.pop_back();
    }

    // What must hold always: empty, or the first that does not.
    std::string violation() const {
        if (!violation_.empty()) return violation_;
        for (const Node& node : nodes_) {
            if (node.member.counters().strange > 0) return who(node) + " finds a correct member strange";
            if (node.stream == kNone) continue;
            const Sequence freed = node.member.freed();
            if (node.member.next() - freed > node.member.config().window)
                return who(node) + " has more under way than its window";
            for (std::uint32_t m = 0; m < members_; ++m)
                if (distance(nodes_[m].member.expected(node.stream), freed) > 0)
                    return who(node) + " has freed what " + who(nodes_[m]) + " lacks";
        }
        return {};
    }
    // Everybody has everything and knows that, and nobody waits.
    bool finished() const {
        if (!packets_.empty()) return false;
        for (const Node& node : nodes_) {
            if (!node.member.quiet()) return false;
            if (node.stream == kNone) continue;
            if (node.left > 0 || node.member.freed() != node.member.next()) return false;
            for (const Node& other : nodes_)
                if (other.member.expected(node.stream) != node.member.next()) return false;
        }
        return true;
    }
    std::string encode() const {
        std::string text;
        for (const Node& node : nodes_) {
            text += node.member.state(node.now);
            text += static_cast<char>(node.left);
            for (const std::vector<std::uint64_t>& ring : node.rings)
                text.append(reinterpret_cast<const char*>(ring.data()), ring.size() * sizeof ring[0]);
        }
        std::vector<std::string> each;
        for (const Packet& p : packets_) each.push_back(encode(p));
        std::ranges::sort(each);
        for (const std::string& packet : each) text += packet;
        return text;
    }

 private:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Node {
        Node(const Config& config, std::uint32_t datagrams) : member(config), left(datagrams) {
            const std::size_t streams = config.sources.size();
            const auto own = std::ranges::find(config.sources, config.me);
            stream = own == config.sources.end() ? kNone
                                                 : static_cast<std::uint32_t>(own - config.sources.begin());
            rings.assign(streams, std::vector<std::uint64_t>(member.config().window));
            delivered.assign(streams, config.first);
        }

        Member member;
        std::uint64_t now = 0;
        std::uint32_t stream;
        std::uint32_t left;                             // that its application will broadcast
        std::vector<std::vector<std::uint64_t>> rings;  // what lies in the slots
        std::vector<Sequence> delivered;                // the next one
    };

    class Wire final : public Carrier {
     public:
        Wire(World& world, std::uint32_t from, std::uint64_t payload)
            : world_(world), from_(from), payload_(payload) {}

        void multicast(const Datagram& datagram) override {
            for (std::uint32_t to = 0; to < world_.processes(); ++to)
                if (to != from_) send(to, datagram);
        }
        void send(std::uint32_t to, const Datagram& datagram) override {
            std::uint64_t payload = 0;
            if (datagram.kind == Kind::kData)
                payload = world_.slot(from_, datagram.stream, datagram.sequence);
            const Packet packet{from_, to, datagram, payload};
            std::vector<Packet>& all = world_.packets_;
            if (!world_.merge_ || std::ranges::find(all, packet) == all.end()) all.push_back(packet);
        }
        void keep(std::uint32_t stream, Sequence sequence) override {
            world_.overwrite(from_, stream, sequence, payload_);
        }
        void deliver(std::uint32_t stream, Sequence sequence) override {
            Sequence& next = world_.nodes_[from_].delivered[stream];
            if (next++ != sequence) world_.violation_ = "a datagram is handed on twice or out of order";
            if (world_.slot(from_, stream, sequence) != payload_of(stream, sequence))
                world_.violation_ = "a datagram with the data of another one is handed on";
        }

     private:
        World& world_;
        std::uint32_t from_;
        std::uint64_t payload_;
    };

    static std::uint64_t payload_of(std::uint32_t stream, Sequence sequence) {
        return (std::uint64_t{stream} << 32 | sequence) + 1;
    }
    std::uint64_t& slot(std::uint32_t m, std::uint32_t stream, Sequence sequence) {
        std::vector<std::uint64_t>& ring = nodes_[m].rings[stream];
        return ring[sequence & (ring.size() - 1)];
    }
    // Nobody who may ask this member lacks what has been there.
    void overwrite(std::uint32_t m, std::uint32_t stream, Sequence sequence, std::uint64_t payload) {
        std::uint64_t& there = slot(m, stream, sequence);
        const auto before = static_cast<Sequence>(there - 1);
        if (there != 0)
            for (const std::uint32_t other : plan_of(stream).set_of(m))
                if (distance(nodes_[other].member.expected(stream), before) >= 0)
                    violation_ = "a slot is written again before all have acknowledged it";
        there = payload;
    }
    Plan plan_of(std::uint32_t stream) const {
        const Config& config = nodes_[0].member.config();
        return {config, config.sources[stream]};
    }
    std::string who(const Node& node) const { return "member " + std::to_string(node.member.config().me); }

    static std::string encode(const Packet& p) {
        std::string text;
        const auto add = [&](std::uint64_t number) {
            text.append(reinterpret_cast<const char*>(&number), sizeof number);
        };
        const Datagram& d = p.datagram;
        add(std::uint64_t{p.from} << 32 | p.to);
        add(static_cast<std::uint64_t>(d.kind) << 16 | std::uint64_t{d.again} << 8 | d.acks);
        add(std::uint64_t{d.stream} << 32 | d.sequence);
        add(d.low);
        add(d.missing);
        for (std::size_t i = 0; i < d.acks; ++i) {
            add(std::uint64_t{d.ack[i].to} << 32 | d.ack[i].stream);
            add(d.ack[i].next);
        }
        add(p.payload);
        return text;
    }

    std::uint32_t members_;
    bool merge_;
    std::vector<Node> nodes_;  // of the members, then of the followers
    std::vector<Packet> packets_;
    std::string violation_;
};

}  // namespace velo::multicast
