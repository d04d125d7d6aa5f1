// Breadth first over the states of a world of real policy objects: every order of sends and arrivals.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "frontier.h"
#include "policy_party.h"
#include "scenario.h"
#include "world.h"

namespace velo::schedule {

struct Exploration {
    std::string violation;     // with the scenario; empty if none was found
    std::uint64_t length = 0;  // events up to it: there is no shorter way
    std::uint64_t states = 0;  // that differ
    bool exhausted = false;    // all that can be reached were visited
    std::uint64_t hellos = 0;  // most of one process in one state, to see what was reached
    std::uint64_t releases = 0;
    std::uint64_t steals = 0;
    std::uint64_t leaves = 0;
    std::uint64_t delayed = 0;       // states in which somebody delays a CREDIT
    std::uint64_t references = 0;    // most of one process in one state, likewise
    std::uint64_t full = 0;          // messages for which an outbox had no chunk, likewise
    std::uint64_t batched = 0;       // messages that went in batches, likewise
    std::uint64_t open = 0;          // states in which somebody has an open batch;
    std::uint64_t open_asked = 0;    // and somebody is asked to return credits,
    std::uint64_t open_delayed = 0;  // or delays a CREDIT,
    std::uint64_t open_ended = 0;    // or has ended
    std::uint64_t ended = 0;         // states in which somebody has ended
    std::uint64_t successors = 0;    // events with which one took the place of an ended one
};

class Explorer {
 public:
    using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
    using Model = World<PolicyParty>;

    // Only `senders` send DATA, each while nothing of it waits. Before that, one packet for each pair
    // of `prelude`, one after the other. `in_order`: no kind of packet overtakes another one of its pair.
    // `patient`: nobody clears up after an ended process while packets of it are under way.
    Explorer(const Scenario& scenario, Pairs senders, const Pairs& prelude = {}, bool in_order = true,
             bool patient = true)
        : scenario_(scenario), senders_(std::move(senders)), in_order_(in_order) {
        Model world(scenario);
        if (!patient) world.hurry();
        for (auto [from, to] : prelude) {
            world.send(from, to, 1, true);
            settle(world);
        }
        visit(std::move(world), 0);
    }

    // What is sent, in packets; otherwise 1.
    void send_messages(std::vector<std::uint32_t> packets) { messages_ = std::move(packets); }
    // Each sends while no more than so many of its messages wait.
    void may_wait(std::size_t messages) { waiting_ = messages; }
    // One of these may end at any moment.
    void may_end(std::vector<std::uint32_t> mortals) { mortals_ = std::move(mortals); }
    // And another one may take its place as soon as all have cleared up after it.
    void have_successors() { successors_ = true; }

    Exploration run(std::uint64_t max_states) {
        while (result_.violation.empty() && !frontier_.exhausted() && frontier_.states() < max_states)
            expand(frontier_.take());
        result_.states = frontier_.states();
        result_.exhausted = frontier_.exhausted();
        return result_;
    }

 private:
    struct Node {
        Model world;
        std::uint64_t length;
    };

    template <class Event>
    void after(const Node& node, Event event) {
        if (!result_.violation.empty()) return;
        Model next = node.world;
        event(next);
        visit(std::move(next), node.length + 1);
    }

    void settle(Model& world) {
        while (!world.quiet())
            for (std::uint32_t i = 0; i < scenario_.processes * scenario_.processes; ++i) {
                const std::uint32_t from = i / scenario_.processes;
                const std::uint32_t to = i % scenario_.processes;
                if (world.delays(to)) world.look(to);
                if (from == to) continue;
                if (world.enclosed(from, to) > 0) world.read_enclosed(from, to);
                if (world.in_channel(from, to) > 0) world.pass(from, to);
                if (world.doorbell(from, to)) world.hear(from, to);
            }
    }

    void expand(const Node& node) {
        for (auto [from, to] : senders_)
            if (node.world.backlog(from, to) <= waiting_ && !node.world.ended(from) && !node.world.ended(to))
                for (const std::uint32_t packets : messages_)
                    after(node, [from = from, to = to, packets](Model& world) { world.send(from, to, packets, true); });
        const std::uint32_t n = scenario_.processes;
        bool all_live = true;
        for (std::uint32_t p = 0; p < n; ++p) all_live &= !node.world.ended(p);
        if (all_live)
            for (const std::uint32_t p : mortals_) after(node, [p](Model& world) { world.end(p); });
        for (const std::uint32_t p : mortals_)
            if (successors_ && node.world.may_replace(p)) {
                after(node, [p](Model& world) { world.replace(p); });
                ++result_.successors;
            }
        for (std::uint32_t p = 0; p < n; ++p) {
            for (std::uint32_t reader = 0; reader < node.world.untold(p); ++reader)
                after(node, [p, reader](Model& world) { world.tell(p, reader); });
            if (node.world.ended(p)) continue;
            if (node.world.contact_pending(p)) after(node, [p](Model& world) { world.overdue(p); });
            if (node.world.delays(p)) after(node, [p](Model& world) { world.look(p); });
        }
        for (std::uint32_t from = 0; from < n; ++from)
            for (std::uint32_t to = 0; to < n; ++to) {
                if (from == to) continue;
                if (node.world.may_bury(to, from))
                    after(node, [from, to](Model& world) { world.bury(to, from); });
                const std::size_t packets = node.world.in_channel(from, to);
                if (packets > 0) after(node, [from, to](Model& world) { world.pass(from, to); });
                if (node.world.enclosed(from, to) > 0 && !node.world.ended(to))
                    after(node, [from, to](Model& world) { world.read_enclosed(from, to); });
                if (node.world.appends(from, to))
                    after(node, [from, to](Model& world) { world.rest(from, to); });
                if (!in_order_ && packets > 1 &&
                    node.world.kind_in_channel(from, to, 0) != node.world.kind_in_channel(from, to, 1))
                    after(node, [from, to](Model& world) { world.pass_second(from, to); });
                if (node.world.doorbell(from, to))
                    after(node, [from, to](Model& world) { world.hear(from, to); });
            }
    }

    void visit(Model&& world, std::uint64_t length) {
        if (!frontier_.is_new(world.encode())) return;
        std::string broken = world.check();
        // Nothing is under way, so that nothing will happen unless somebody sends.
        if (broken.empty() && world.quiet() && !may_bury(world)) broken = world.stranded();
        if (!broken.empty()) result_.violation = scenario_.describe() + ": " + broken;
        result_.length = length;
        bool delayed = false, ended = false, open = false, asked = false;
        for (std::uint32_t p = 0; p < scenario_.processes; ++p) {
            note(world.party(p).policy().counters());
            delayed |= world.delays(p);
            result_.references = std::max(result_.references, world.party(p).references());
            result_.batched = std::max(result_.batched, world.party(p).batched());
            for (std::uint32_t q = 0; q < scenario_.processes; ++q) {
                if (q == p) continue;
                open |= world.appends(p, q);
                const auto shake = world.party(p).handshake(world.index(p, q));
                asked |= shake && shake->blocked;
            }
            result_.full = std::max(result_.full, world.party(p).outbox().counters().full);
            ended |= world.ended(p);
        }
        result_.open += open;
        result_.open_asked += open && asked;
        result_.open_delayed += open && delayed;
        result_.open_ended += open && ended;
        result_.ended += ended;
        result_.delayed += delayed;
        frontier_.put({std::move(world), length});
    }

    // Somebody can clear up after one that has ended.
    bool may_bury(const Model& world) const {
        for (std::uint32_t p = 0; p < scenario_.processes; ++p)
            for (std::uint32_t q = 0; q < scenario_.processes; ++q)
                if (p != q && world.may_bury(q, p) && Model(world).bury(q, p)) return true;
        return false;
    }

    void note(const flow::Counters& counters) {
        result_.hellos = std::max(result_.hellos, counters.hellos);
        result_.releases = std::max(result_.releases, counters.releases);
        result_.steals = std::max(result_.steals, counters.steals);
        result_.leaves = std::max(result_.leaves, counters.leaves);
    }

    Scenario scenario_;
    Pairs senders_;
    bool in_order_;
    std::vector<std::uint32_t> messages_{1}, mortals_;
    bool successors_ = false;
    std::size_t waiting_ = 0;
    Frontier<Node> frontier_;
    Exploration result_;
};

}  // namespace velo::schedule
