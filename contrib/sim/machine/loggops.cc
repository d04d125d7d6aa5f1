#include "machine/loggops.h"

#include <algorithm>
#include <queue>
#include <stdexcept>

#include "collectives/goal/binary.h"
#include "collectives/goal/exchange.h"
#include "collectives/goal/run.h"
#include "core/random.h"

namespace velo::sim {
namespace {

using goal::Kind;
using goal::Vertex;

// What LogGOPSim's queue holds: an operation of `host`, or a message to it.
struct LogGopsEvent {
    std::uint64_t time = 0;
    std::uint64_t order = 0;  // of insertion; an event that is put off keeps it
    std::uint64_t begin = 0;  // of a message: when its send began
    std::uint64_t bytes = 0;
    std::uint32_t host = 0;
    std::uint32_t peer = 0;
    std::uint32_t tag = 0;
    Vertex vertex = 0;
    std::uint8_t cpu = 0;
    std::uint8_t nic = 0;
    Kind kind = Kind::kCalculate;
    bool is_message = false;
};
struct Later {
    bool operator()(const LogGopsEvent& a, const LogGopsEvent& b) const {
        return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
};

// No time gets there but by falling below 0.
constexpr std::uint64_t kNever = 1ULL << 63;

class LogGopsMachine {
 public:
    LogGopsMachine(const goal::Program& program, const LogGops& parameters, const LogGopsObserver& observer)
        : program_(program),
          p_(parameters),
          observer_(observer),
          cpus_(program.cpus()),
          nics_(program.nics()),
          cpu_free_(std::size_t{cpus_} * program.size()),
          receive_free_(std::size_t{nics_} * program.size()),
          send_free_(receive_free_.size()) {
        runs_.reserve(program.size());
        for (const goal::Schedule& schedule : program.schedules) runs_.emplace_back(schedule);
        Random random(p_.seed);
        const auto up_to = [&random](std::uint64_t most) {
            return most > 0 ? random.next() % (most + 1) : 0;
        };
        for (std::uint32_t host = 0; host < program.size(); ++host) {
            const std::uint64_t begin = up_to(p_.skew);
            for (std::uint32_t i = 0; i < cpus_; ++i) cpu_free_[host * cpus_ + i] = begin;
            if (p_.noise > 0 && p_.noise_period > 0) first_noise_.push_back(up_to(p_.noise_period - 1));
        }
    }

    LogGopsOutcome run() {
        for (std::uint32_t host = 0; host < runs_.size(); ++host) start(host, true);
        while (!events_.empty()) {
            const LogGopsEvent event = events_.top();
            events_.pop();
            touched_.clear();
            if (event.is_message)
                arrive(event);
            else if (event.kind == Kind::kSend)
                send(event);
            else if (event.kind == Kind::kReceive)
                receive(event);
            else
                calculate(event);
            std::ranges::sort(touched_);
            touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
            for (const std::uint32_t host : touched_) start(host, false);
        }
        LogGopsOutcome outcome;
        for (std::uint32_t host = 0; host < runs_.size(); ++host) {
            const auto first = cpu_free_.begin() + static_cast<std::ptrdiff_t>(std::size_t{host} * cpus_);
            outcome.end.push_back(*std::max_element(first, first + cpus_));
            if (!runs_[host].done()) outcome.unfinished.push_back(host);
        }
        outcome.events = order_;
        outcome.unmatched = exchange_.unmatched();
        outcome.waiting = exchange_.waiting();
        return outcome;
    }

 private:
    std::uint64_t& cpu(std::uint32_t host, std::uint8_t cpu) { return cpu_free_[host * cpus_ + cpu]; }
    std::uint64_t& sends(std::uint32_t host, std::uint8_t nic) { return send_free_[host * nics_ + nic]; }
    std::uint64_t& receives(std::uint32_t host, std::uint8_t nic) {
        return receive_free_[host * nics_ + nic];
    }

    // What interruptions add to a piece of work.
    std::uint64_t noise(std::uint32_t host, std::uint64_t begin, std::uint64_t length) const {
        if (first_noise_.empty()) return 0;
        const auto until = [&](std::uint64_t time) {
            const std::uint64_t first = first_noise_[host];
            return time <= first ? 0 : (time - first - 1) / p_.noise_period + 1;
        };
        return (until(begin + length) - until(begin)) * p_.noise;
    }

    // Of all bytes but the first. Modulo 2^64, as LogGOPSim: an empty message costs one byte less than none.
    static std::uint64_t further(std::uint64_t bytes, std::uint64_t each) { return (bytes - 1) * each; }

    // Queues what has become ready at a host.
    void start(std::uint32_t host, bool at_first) {
        goal::Run& run = runs_[host];
        std::vector<Vertex> ready = run.take();
        if (at_first) std::ranges::sort(ready);
        fresh_.clear();
        for (const Vertex v : ready) {
            const goal::Operation o = goal::plain(run.schedule().operation(v), {p_.local_ns_per_byte});
            if (o.kind == Kind::kSend && o.tag == goal::kAny)
                throw std::runtime_error(program_.place(host, v) + ": a send needs a tag");
            LogGopsEvent event;
            event.kind = o.kind;
            event.host = host;
            event.peer = o.peer;
            event.tag = o.tag;
            event.bytes = o.bytes;
            event.cpu = o.cpu;
            event.nic = o.nic;
            event.vertex = v;
            fresh_.push_back(event);
        }
        // Not stable on purpose: the order of equal ones is that of std::sort, as in LogGOPSim.
        std::sort(fresh_.begin(), fresh_.end(),
                  [](const LogGopsEvent& a, const LogGopsEvent& b) { return a.kind < b.kind; });
        for (LogGopsEvent& event : fresh_) {
            if (!at_first) {
                event.time = cpu(host, event.cpu);
                if (event.kind == Kind::kSend) event.time = std::max(event.time, sends(host, event.nic));
            }
            push(event);
        }
    }

    void push(LogGopsEvent& event) {
        event.order = order_++;
        events_.push(event);
    }
    void put_off(LogGopsEvent event, std::uint64_t time) {
        if (time >= kNever)
            throw std::runtime_error(
                "the time runs backwards: an empty message takes -O or -G, which is more than -o, -g or -L");
        event.time = time;
        events_.push(event);
    }
    void observe(const LogGopsEvent& event, std::uint64_t end) const {
        if (observer_)
            observer_({event.host, event.cpu, event.time, end, event.is_message ? event.peer : event.host,
                       event.vertex, event.is_message});
    }
    void finish(std::uint32_t host, Vertex v) {
        runs_[host].finished(v);
        touched_.push_back(host);
    }

    void calculate(const LogGopsEvent& event) {
        std::uint64_t& free = cpu(event.host, event.cpu);
        if (free > event.time) return put_off(event, free);
        if (event.bytes >= kNever - event.time)
            throw std::runtime_error(program_.place(event.host, event.vertex) +
                                     ": ends beyond the 2^64 nanoseconds that can be simulated");
        free = event.time + event.bytes + noise(event.host, event.time, event.bytes);
        observe(event, free);
        runs_[event.host].started(event.vertex);
        finish(event.host, event.vertex);
    }

    void send(const LogGopsEvent& event) {
        std::uint64_t& free = cpu(event.host, event.cpu);
        std::uint64_t& interface = sends(event.host, event.nic);
        if (std::max(free, interface) > event.time) return put_off(event, std::max(free, interface));
        runs_[event.host].started(event.vertex);
        touched_.push_back(event.host);
        free = event.time + p_.o + further(event.bytes, p_.O) + noise(event.host, event.time, p_.o);
        interface = event.time + p_.g + further(event.bytes, p_.G);
        observe(event, free);
        LogGopsEvent message = event;
        message.is_message = true;
        std::swap(message.host, message.peer);
        message.begin = event.time;
        message.time = event.time + p_.o + p_.L;
        push(message);
        if (event.bytes <= p_.S) finish(event.host, event.vertex);
    }

    void receive(const LogGopsEvent& event) {
        runs_[event.host].started(event.vertex);
        touched_.push_back(event.host);
        const auto message = exchange_.receive(event.host, event.vertex, event.peer, event.tag);
        if (!message) return;
        if (event.bytes > p_.S) answer(message->source, message->send, event);
        finish(event.host, event.vertex);
    }

    void arrive(const LogGopsEvent& event) {
        std::uint64_t& free = cpu(event.host, event.cpu);
        std::uint64_t& interface = receives(event.host, event.nic);
        if (std::max(free, interface) > event.time) return put_off(event, std::max(free, interface));
        free = event.time + p_.o + std::max(further(event.bytes, p_.O), further(event.bytes, p_.G)) +
               noise(event.host, event.time, p_.o);
        interface = event.time + p_.g + further(event.bytes, p_.G);
        observe(event, free);
        const auto waiting = exchange_.arrive(event.host, {event.peer, event.tag, event.vertex, event.bytes});
        if (!waiting) return;
        if (event.bytes > p_.S) answer(event.peer, event.vertex, event);
        finish(event.host, *waiting);
    }

    // The sender of a rendezvous goes on at the moment at which its receive is found.
    void answer(std::uint32_t sender, Vertex send, const LogGopsEvent& found) {
        std::uint64_t& free = cpu(sender, found.cpu);
        std::uint64_t& interface = sends(sender, found.nic);
        finish(sender, send);
        free = std::max(free, found.time);
        interface = std::max(interface, found.time);
    }

    const goal::Program& program_;
    LogGops p_;
    const LogGopsObserver& observer_;
    std::uint32_t cpus_, nics_;
    std::vector<std::uint64_t> cpu_free_, receive_free_, send_free_;
    std::vector<goal::Run> runs_;
    std::vector<std::uint64_t> first_noise_;  // by host; empty: there is none
    goal::Exchange exchange_;
    std::priority_queue<LogGopsEvent, std::vector<LogGopsEvent>, Later> events_;
    std::uint64_t order_ = 0;
    std::vector<std::uint32_t> touched_;  // hosts at which something may have become ready
    std::vector<LogGopsEvent> fresh_;
};

}  // namespace

LogGopsOutcome run_loggops(const goal::Program& program, const LogGops& parameters,
                           const LogGopsObserver& observer) {
    return LogGopsMachine(program, parameters, observer).run();
}

}  // namespace velo::sim
