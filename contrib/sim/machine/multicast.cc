#include "machine/multicast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <optional>

#include "core/event_queue.h"
#include "core/random.h"

namespace velo::sim {
namespace {

using multicast::Attachment;
using multicast::Datagram;
using multicast::Member;
using multicast::Sequence;
using Mode = MulticastRun::Mode;

constexpr std::uint32_t kEverybody = UINT32_MAX;
constexpr std::uint32_t kHeader = 48, kAckBytes = 12;
constexpr Time kBetween = 100'000'000;  // of broadcasts one by one: acknowledgements have time to settle

class MulticastMachine {
 public:
    explicit MulticastMachine(const MulticastRun& run)
        : run_(run), costs_(run.costs), random_(run.seed), interfaces_(run.nodes) {
        processes_.resize(run.processes());
        if (run.mode == Mode::kLeaders) group_.resize(run.nodes);
        if (run.mode == Mode::kEverybody) group_.resize(run.processes());
        for (std::uint32_t m = 0; m < group_.size(); ++m) {
            group_[m] = run.mode == Mode::kLeaders ? m * run.on_node : m;
            processes_[group_[m]].in_group = m;
            processes_[group_[m]].member.emplace(config_of(m, false));
        }
        for (Process& process : processes_) process.attachment.emplace(run.attachment);
        if (run.mode == Mode::kExchange) to_send_ = run.broadcasts * (run.processes() - 1);
        broadcasts_.resize(run.broadcasts);
        for (Broadcast& broadcast : broadcasts_) broadcast.left = run.processes();
    }

    MulticastOutcome run() {
        queue_.push(0, kStart, 0, 0);
        while (!queue_.empty() && finished_ < run_.broadcasts && outcome_.fault.empty()) {
            handle(queue_.pop());
            if (queue_.taken() > kMostEvents) outcome_.fault = "it does not end";
        }
        if (outcome_.fault.empty() && finished_ < run_.broadcasts) outcome_.fault = "somebody waits for ever";
        return conclude();
    }

 private:
    enum Kind : unsigned { kStart, kHead, kArrive, kDone, kFree, kTick, kBoard, kJoined, kLate };
    static constexpr std::uint64_t kMostEvents = 4'000'000'000;

    struct Item {
        enum class What : std::uint8_t { kFrame, kTick, kBroadcast } what;
        std::uint32_t index;
    };
    // What leaves an interface.
    struct Frame {
        Datagram datagram;
        std::uint32_t from, to;  // processes
        std::uint32_t bytes;
        std::uint32_t users;  // who have not got it yet, or not looked at it
    };
    struct Interface {
        Time out_free = 0, in_free = 0;
        std::vector<std::uint32_t> attached;  // processes that have joined, beside those of the group
    };
    struct Process {
        std::uint32_t in_group = kEverybody;  // its number there
        std::optional<Member> member;
        std::optional<Attachment> attachment;  // of those who have a leader
        std::deque<Item> items;
        std::optional<Item> current;
        bool busy = false;
        Time deaf_until = 0;
        Time tick_at = kNever;
        std::uint32_t has = 0;              // broadcasts, in order
        Time entered = 0;                   // into the next one
        bool waits = false;                 // for the next one
        std::uint32_t posted = 0, got = 0;  // messages of an exchange
    };
    struct Broadcast {
        Time start = kNever, last = 0;
        double waits_us = 0, longest_us = 0;
        std::uint32_t left = 0, punctual = 0;
    };

    class Wire final : public multicast::Carrier {
     public:
        Wire(MulticastMachine& machine, std::uint32_t process) : machine_(machine), process_(process) {}
        void multicast(const Datagram& datagram) override { machine_.post(process_, kEverybody, datagram); }
        void send(std::uint32_t to, const Datagram& datagram) override {
            machine_.post(process_, machine_.group_[to], datagram);
        }
        void keep(std::uint32_t, Sequence) override {}
        void deliver(std::uint32_t, Sequence sequence) override { machine_.has(process_, sequence); }

     private:
        MulticastMachine& machine_;
        std::uint32_t process_;
    };

    multicast::Config config_of(std::uint32_t me, bool attached) const {
        multicast::Config config = run_.config;
        config.members = static_cast<std::uint32_t>(group_.size());
        config.me = me;
        config.sources = {0};
        config.attached = attached;
        return config;
    }
    std::uint32_t node_of(std::uint32_t process) const {
        return run_.cyclic ? process % run_.nodes : process / run_.on_node;
    }
    std::uint64_t now_ns() const { return cursor_ / 1000; }
    Process& root() { return processes_[0]; }

    // ---- events

    void handle(const Event& event) {
        cursor_ = event.time;
        switch (event.kind) {
            case kStart:
                start();
                break;
            case kHead:
                head(event.subject, event.train);
                break;
            case kArrive:
                arrive(event.subject, event.train);
                break;
            case kDone:
                perform(event.subject);
                break;
            case kFree:
                processes_[event.subject].busy = false;
                wake(event.subject);
                break;
            case kTick:
                tick(event.subject);
                break;
            case kBoard:
                read_board(event.subject, event.train);
                break;
            case kJoined:
                joined(event.subject);
                break;
            case kLate:
                late(event.subject);
                break;
        }
    }

    // Of the next broadcast; in a stream, of all.
    void start() {
        const std::uint32_t first = started_;
        started_ = run_.pace == MulticastRun::Pace::kStream ? run_.broadcasts : started_ + 1;
        for (std::uint32_t b = first; b < started_; ++b) broadcasts_[b].start = cursor_;
        if (run_.late_process < processes_.size() && first % run_.late_every == 0) {
            double us = run_.late_us;
            if (run_.random_lateness) us *= static_cast<double>(random_.below(1 << 20)) / (1 << 20);
            Process& victim = processes_[run_.late_process];
            victim.deaf_until = std::max(victim.deaf_until, cursor_ + from_ns(us * 1000));
        }
        if (run_.mode == Mode::kExchange)
            for (std::uint32_t p = 1; p < processes_.size(); ++p) wake(p);
        for (std::uint32_t p = 0; p < processes_.size(); ++p) enter(p);
        if (run_.interval_us > 0 && started_ < run_.broadcasts)
            queue_.push(cursor_ + from_ns(run_.interval_us * 1000), kStart, 0, 0);
        wake(0);
    }

    // A process that has all before it waits for the next broadcast.
    void enter(std::uint32_t p) {
        Process& process = processes_[p];
        if (process.waits || process.has >= started_) return;
        process.waits = true;
        process.entered = cursor_;
        if (!has_leader(p) || !process.attachment->entered(now_ns())) return;
        watch_leader(p);
    }
    bool has_leader(std::uint32_t p) const {
        return run_.mode == Mode::kLeaders && processes_[p].in_group == kEverybody;
    }
    void watch_leader(std::uint32_t p) {
        const std::uint64_t at = processes_[p].attachment->deadline();
        if (at != multicast::kNever) queue_.push(std::max(at * 1000, cursor_), kLate, p, 0);
    }
    void late(std::uint32_t p) { change(p, processes_[p].attachment->tick(now_ns())); }
    void change(std::uint32_t p, Attachment::Change change) {
        if (change == Attachment::Change::kNone) return;
        if (change == Attachment::Change::kJoin) {
            ++outcome_.joins;
            queue_.push(cursor_ + from_ns(costs_.join), kJoined, p, 0);
        } else {
            ++outcome_.leaves;
            std::erase(interfaces_[node_of(p)].attached, p);
            add_counters(*processes_[p].member);
            processes_[p].member.reset();
        }
    }
    void joined(std::uint32_t p) {
        Process& process = processes_[p];
        if (!process.attachment->attached() || process.member) return;
        process.member.emplace(config_of(static_cast<std::uint32_t>(group_.size()) + p, true));
        Wire wire(*this, p);
        process.member->skip_to(0, process.has, now_ns(), wire);
        interfaces_[node_of(p)].attached.push_back(p);
    }

    // The leader has shown a broadcast to its node.
    void read_board(std::uint32_t p, std::uint32_t broadcast) {
        Process& process = processes_[p];
        change(p, process.attachment->led(now_ns()));
        if (process.has == broadcast) has(p, broadcast);
        if (!process.member) return;
        Wire wire(*this, p);
        process.member->skip_to(0, process.has, now_ns(), wire);
    }

    void has(std::uint32_t p, std::uint32_t broadcast) {
        Process& process = processes_[p];
        if (process.has != broadcast) {
            outcome_.fault = "a broadcast comes out of order";
            return;
        }
        ++process.has;
        Broadcast& of = broadcasts_[broadcast];
        of.last = std::max(of.last, cursor_);
        outcome_.digest = (outcome_.digest ^ (cursor_ + p)) * 0x100000001b3;
        if (p != run_.late_process && p != 0) {
            const double wait = to_us(cursor_ - (process.waits ? process.entered : cursor_));
            of.waits_us += wait;
            of.longest_us = std::max(of.longest_us, wait);
            ++of.punctual;
        }
        process.waits = false;
        if (run_.mode == Mode::kLeaders && process.in_group != kEverybody)
            for (std::uint32_t i = 1; i < run_.on_node; ++i)
                queue_.push(cursor_ + from_ns(costs_.board), kBoard, p + i, broadcast);
        if (--of.left == 0 && ++finished_ == started_ && started_ < run_.broadcasts && run_.interval_us == 0)
            queue_.push(cursor_ + kBetween, kStart, 0, 0);
        enter(p);
    }

    // ---- processors

    void wake(std::uint32_t p) {
        Process& process = processes_[p];
        if (process.busy) return;
        const bool sends = run_.mode == Mode::kExchange
                               ? process.posted < to_send_
                               : p == 0 && sent_ < started_ && !refused_ && may_send();
        if (process.items.empty() && !sends) return;
        process.busy = true;
        if (process.deaf_until > cursor_) {
            queue_.push(process.deaf_until, kFree, p, 0);
            return;
        }
        if (process.items.empty()) {
            process.current = {Item::What::kBroadcast, sent_};
        } else {
            process.current = process.items.front();
            process.items.pop_front();
        }
        queue_.push(cursor_ + from_ns(cost_of(*process.current)), kDone, p, 0);
    }
    // The basic scheme's call returns when all have acknowledged.
    bool may_send() {
        if (!root().member || run_.config.scheme != multicast::Scheme::kBasic) return true;
        return root().member->freed() == root().member->next();
    }
    double cost_of(const Item& item) const {
        if (item.what == Item::What::kTick) return 0;
        if (item.what == Item::What::kBroadcast) return group_.empty() ? 0 : costs_.copy_byte * run_.bytes;
        const Frame& frame = frames_[item.index];
        if (frame.to != kEverybody && node_of(frame.from) == node_of(frame.to) && group_.empty())
            return costs_.local + costs_.copy_byte * frame.bytes;
        if (frame.datagram.kind != multicast::Kind::kData)
            return costs_.take_control + costs_.take_ack * frame.datagram.acks;
        return costs_.take + costs_.copy_byte * frame.bytes + costs_.take_ack * frame.datagram.acks;
    }

    void perform(std::uint32_t p) {
        Process& process = processes_[p];
        const Item item = *process.current;
        Wire wire(*this, p);
        if (run_.mode == Mode::kExchange) {
            exchange(p, item);
        } else if (item.what == Item::What::kBroadcast) {
            broadcast(wire);
        } else if (item.what == Item::What::kTick) {
            if (process.member) process.member->tick(now_ns(), wire);
        } else {
            const Frame& frame = frames_[item.index];
            const Datagram datagram = frame.datagram;
            const std::uint32_t from = frame.from;
            let_go(item.index);
            if (group_.empty())
                forward(p, datagram.sequence);
            else if (process.member)
                process.member->arrived(processes_[from].in_group, datagram, now_ns(), wire);
        }
        if (p == 0 && item.what != Item::What::kBroadcast) refused_ = false;
        plan_tick(p);
        queue_.push(cursor_, kFree, p, 0);
    }
    // To the next one, and the next, until each has all messages; or one of them has come.
    void exchange(std::uint32_t p, const Item& item) {
        Process& process = processes_[p];
        if (item.what == Item::What::kBroadcast) {
            Datagram datagram;
            datagram.kind = multicast::Kind::kData;
            post(p, (p + 1 + process.posted++ % (run_.processes() - 1)) % run_.processes(), datagram);
        } else {
            let_go(item.index);
            if (++process.got % (run_.processes() - 1) == 0) has(p, process.has);
        }
    }
    void broadcast(Wire& wire) {
        if (group_.empty()) {
            forward(0, sent_++);
            return;
        }
        if (!root().member->broadcast(now_ns(), wire)) {
            refused_ = true;
            return;
        }
        has(0, sent_++);
    }
    // The original: on to the children of a binomial tree, the largest subtree first.
    void forward(std::uint32_t p, std::uint32_t broadcast) {
        const std::uint32_t n = run_.processes();
        const std::uint32_t lowest = p == 0 ? std::bit_ceil(n) : p & (~p + 1);
        Datagram datagram;
        datagram.kind = multicast::Kind::kData;
        datagram.sequence = broadcast;
        for (std::uint32_t bit = lowest / 2; bit > 0; bit /= 2)
            if (p + bit < n) post(p, p + bit, datagram);
        has(p, broadcast);
    }

    void plan_tick(std::uint32_t p) {
        Process& process = processes_[p];
        if (!process.member) return;
        const std::uint64_t at = process.member->deadline();
        if (at == multicast::kNever || at * 1000 >= process.tick_at) return;
        process.tick_at = std::max<Time>(at * 1000, cursor_);
        queue_.push(process.tick_at, kTick, p, 0);
    }
    void tick(std::uint32_t p) {
        Process& process = processes_[p];
        if (cursor_ != process.tick_at) return;
        process.tick_at = kNever;
        if (process.member && process.member->deadline() <= now_ns()) {
            process.items.push_back({Item::What::kTick, 0});
            wake(p);
        } else {
            plan_tick(p);
        }
    }

    // ---- the network

    // The processor of `from` hands it to its interface, when it has done what it did before.
    void post(std::uint32_t from, std::uint32_t to, const Datagram& datagram) {
        const bool data = datagram.kind == multicast::Kind::kData;
        const std::uint32_t index = new_frame();
        frames_[index] = {datagram, from, to, data ? run_.bytes : 0, 1};
        const bool original = run_.mode == Mode::kOriginal;
        if (original && node_of(from) == node_of(to)) {
            cursor_ += from_ns(costs_.local + costs_.copy_byte * run_.bytes);
            queue_.push(cursor_, kArrive, to, index);
            return;
        }
        cursor_ += from_ns(costs_.post + (original ? costs_.copy_byte * run_.bytes : 0));
        Interface& interface = interfaces_[node_of(from)];
        const Time departs = std::max(cursor_, interface.out_free);
        interface.out_free = departs + serialised(frames_[index]);
        ++outcome_.datagrams;
        if (to != kEverybody) {
            travel(departs, from, node_of(to), index);
            return;
        }
        frames_[index].users = run_.nodes;
        for (std::uint32_t node = 0; node < run_.nodes; ++node) travel(departs, from, node, index);
    }
    void travel(Time departs, std::uint32_t from, std::uint32_t to_node, std::uint32_t frame) {
        const std::uint32_t switches = switches_between(node_of(from), to_node);
        queue_.push(departs + from_ns(costs_.at_switch * switches), kHead, to_node, frame);
    }
    Time serialised(const Frame& frame) const {
        const std::uint32_t bytes = kHeader + frame.bytes + kAckBytes * frame.datagram.acks;
        return from_ns(costs_.packet + costs_.wire_byte * bytes);
    }

    void head(std::uint32_t node, std::uint32_t index) {
        Interface& interface = interfaces_[node];
        Time at = std::max(cursor_, interface.in_free) + serialised(frames_[index]);
        if (frames_[index].to != kEverybody) {
            interface.in_free = at;
            queue_.push(at, kArrive, frames_[index].to, index);
            return;
        }
        // One after the other to all that have joined on this node.
        bool first = true;
        const auto give = [&](std::uint32_t process) {
            if (process == frames_[index].from) return;
            if (!first) at += from_ns(costs_.attached + costs_.wire_byte * frames_[index].bytes);
            first = false;
            ++frames_[index].users;
            queue_.push(at + delay(), kArrive, process, index);
            if (happens(run_.doubles)) {
                ++frames_[index].users;
                queue_.push(at + delay(), kArrive, process, index);
            }
        };
        if (run_.mode == Mode::kLeaders) {
            give(node * run_.on_node);
            for (const std::uint32_t process : interface.attached) give(process);
        } else {
            for (std::uint32_t i = 0; i < run_.on_node; ++i)
                give(run_.cyclic ? i * run_.nodes + node : node * run_.on_node + i);
        }
        interface.in_free = at;
        let_go(index);
    }
    bool happens(double share) { return share > 0 && random_.below(1'000'000) < share * 1'000'000; }
    Time delay() { return happens(run_.reordered) ? from_ns(random_.below(20'000)) : 0; }

    void arrive(std::uint32_t p, std::uint32_t index) {
        Process& process = processes_[p];
        if (frames_[index].to == kEverybody) {
            const bool overflow = process.items.size() >= run_.receive_buffer;
            outcome_.overflows += overflow;
            if (overflow || !process.member || happens(run_.loss)) {
                let_go(index);
                return;
            }
        }
        process.items.push_back({Item::What::kFrame, index});
        wake(p);
    }

    std::uint32_t new_frame() {
        if (free_frames_.empty()) {
            frames_.emplace_back();
            return static_cast<std::uint32_t>(frames_.size() - 1);
        }
        const std::uint32_t index = free_frames_.back();
        free_frames_.pop_back();
        return index;
    }
    void let_go(std::uint32_t index) {
        if (--frames_[index].users == 0) free_frames_.push_back(index);
    }

    // ---- the end

    void add_counters(const Member& member) {
        const multicast::Counters& c = member.counters();
        multicast::Counters& all = outcome_.all;
        for (const auto field :
             {&multicast::Counters::sent, &multicast::Counters::resent, &multicast::Counters::full,
              &multicast::Counters::transfers, &multicast::Counters::probes, &multicast::Counters::nacks,
              &multicast::Counters::repairs, &multicast::Counters::repairs_to_all, &multicast::Counters::acks,
              &multicast::Counters::ack_datagrams, &multicast::Counters::acks_heard,
              &multicast::Counters::delivered, &multicast::Counters::kept, &multicast::Counters::duplicates,
              &multicast::Counters::missed, &multicast::Counters::strange})
            all.*field += c.*field;
    }

    MulticastOutcome conclude() {
        for (const Process& process : processes_)
            if (process.member) add_counters(*process.member);
        if (outcome_.fault.empty() && outcome_.all.strange > 0)
            outcome_.fault = "a member finds another one strange";
        if (root().member) outcome_.root = root().member->counters();
        for (const Broadcast& broadcast : broadcasts_) {
            if (broadcast.left > 0) continue;
            outcome_.latency_us.push_back(to_us(broadcast.last - broadcast.start));
            outcome_.waits_us.push_back(broadcast.punctual > 0 ? broadcast.waits_us / broadcast.punctual : 0);
            outcome_.longest_us.push_back(broadcast.longest_us);
            outcome_.total_us = std::max(outcome_.total_us, to_us(broadcast.last));
        }
        return std::move(outcome_);
    }

    const MulticastRun& run_;
    const MulticastCosts& costs_;
    Random random_;
    EventQueue queue_;
    Time cursor_ = 0;  // when what is done at this moment is done
    std::vector<Process> processes_;
    std::vector<Interface> interfaces_;  // by node
    std::vector<std::uint32_t> group_;   // members: their processes; empty: the original
    std::vector<Frame> frames_;
    std::vector<std::uint32_t> free_frames_;
    std::vector<Broadcast> broadcasts_;
    std::uint32_t started_ = 0, sent_ = 0, finished_ = 0;
    std::uint32_t to_send_ = 0;  // by each process of an exchange
    bool refused_ = false;       // the window was full: until something has happened
    MulticastOutcome outcome_;
};

}  // namespace

std::uint32_t switches_between(std::uint32_t a, std::uint32_t b) {
    if (a == b) return 0;
    constexpr std::uint32_t kPorts = 16;
    std::uint32_t switches = 1;
    for (a /= kPorts, b /= kPorts; a != b; a /= kPorts, b /= kPorts) switches += 2;
    return switches;
}

MulticastOutcome run_multicast(const MulticastRun& run) {
    return MulticastMachine(run).run();
}

MulticastModel model_of(const MulticastRun& run) {
    const MulticastCosts& c = run.costs;
    const double copy = c.copy_byte * run.bytes;
    const double wire = c.packet + c.wire_byte * (kHeader + run.bytes);
    double switches = 0;  // of the way from the root to others, on the average
    for (std::uint32_t node = 1; node < run.nodes; ++node) switches += switches_between(0, node);
    if (run.nodes > 1) switches /= run.nodes - 1;
    const auto furthest = static_cast<double>(switches_between(0, run.nodes - 1));
    MulticastModel model;
    const double hop = copy + c.post + wire + c.at_switch * switches + c.take + copy;
    const double window = copy + c.post + wire + c.at_switch * furthest + c.take + copy;
    const multicast::Plan plan(
        [&] {
            multicast::Config config = run.config;
            config.members = run.nodes;
            return config;
        }(),
        0);
    model.hop_us = hop / 1000;
    model.original_us = model.hop_us * std::ceil(std::log2(run.nodes));
    model.window_us = window / 1000;
    model.transfer_us = (copy + hop * std::ceil(std::log2(plan.co_roots() + 1))) / 1000;
    model.to_coroot_us = std::min(model.transfer_us, model.window_us);
    return model;
}

}  // namespace velo::sim
