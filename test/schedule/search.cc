#include "search.h"

#include "frontier.h"
#include "world.h"

namespace velo::schedule {
namespace {

using Model = World<ReferenceParty>;

// Lets everything arrive, in the order of the draws. Returns the harm on the way, "deadlock" if packets are
// left that can never go, or the empty string.
std::string drain(Model& world, Random& random, std::uint64_t* length) {
    const std::uint32_t n = world.processes();
    while (!world.quiet()) {
        const std::uint32_t from = random.below(n);
        const std::uint32_t to = random.below(n);
        if (from == to || world.in_channel(from, to) == 0) continue;
        world.pass(from, to);
        ++*length;
        if (std::string harm = world.harm(); !harm.empty()) return harm;
    }
    for (std::uint32_t p = 0; p < n; ++p)
        for (std::uint32_t q = 0; q < n; ++q)
            if (p != q && (world.backlog(p, q) > 0 || world.party(p).control_waiting(world.index(p, q))))
                return "deadlock";
    return {};
}

// One walk, with a bias of its own for who sends, so that both idle and busy processes occur.
std::string walk(const Scenario& scenario, Literal literal, std::uint64_t seed, std::uint64_t events,
                 std::uint64_t* length) {
    Random random(seed);
    Model world(scenario, literal);
    const std::uint32_t n = scenario.processes;
    const std::uint32_t hot = random.below(n);
    const std::uint32_t hot_share = random.below(8);
    const std::uint32_t sends = random.between(1, 6);
    const std::uint64_t phase = random.between(5, 40);
    while (*length < events) {
        if (*length % phase == phase - 1 && random.chance(1, 2))
            if (std::string harm = drain(world, random, length); !harm.empty()) return harm;
        std::uint32_t from = random.below(n);
        const std::uint32_t to = random.below(n);
        if (from == to) continue;
        if (random.chance(sends, 8)) {
            if (random.chance(hot_share, 8)) from = hot;
            if (from == to || world.backlog(from, to) >= 4) continue;
            world.send(from, to, 1, true);
        } else {
            if (world.in_channel(from, to) == 0) continue;
            world.pass(from, to);
        }
        ++*length;
        if (std::string harm = world.harm(); !harm.empty()) return harm;
    }
    return drain(world, random, length);
}

}  // namespace

Finding random_walks(const Scenario& scenario, Literal literal, const std::string& wanted,
                     std::uint64_t walks, std::uint64_t events) {
    Finding best;
    for (std::uint64_t seed = 1; seed <= walks; ++seed) {
        std::uint64_t length = 0;
        const std::string harm = walk(scenario, literal, seed, events, &length);
        best.visited += length;
        const bool counts = !harm.empty() && (wanted.empty() || harm == wanted);
        if (counts && (best.harm.empty() || length < best.length)) {
            best.harm = harm;
            best.length = length;
            best.seed = seed;
        }
    }
    return best;
}

Finding breadth_first(const Scenario& scenario, Literal literal, const Pairs& senders,
                      std::uint64_t max_states) {
    struct Node {
        Model world;
        std::uint64_t length;
    };
    Finding finding;
    Frontier<Node> frontier;
    Model start(scenario, literal);
    frontier.is_new(start.encode());
    frontier.put({std::move(start), 0});

    const auto visit = [&](Model&& next, std::uint64_t length) {
        if (!frontier.is_new(next.encode())) return false;
        // The checked rules answer for every invariant, the literal ones for harm alone.
        finding.harm = literal == Literal::kNone ? next.check() : next.harm();
        if (finding.harm.empty() && next.quiet() && !next.stranded().empty()) finding.harm = "deadlock";
        finding.length = length;
        frontier.put({std::move(next), length});
        return !finding.harm.empty();
    };
    bool found = false;
    while (!found && !frontier.exhausted() && frontier.states() < max_states) {
        const Node node = frontier.take();
        for (auto [from, to] : senders) {
            if (found || node.world.backlog(from, to) > 0) continue;
            Model next = node.world;
            next.send(from, to, 1, true);
            found = visit(std::move(next), node.length + 1);
        }
        for (std::uint32_t from = 0; from < scenario.processes && !found; ++from)
            for (std::uint32_t to = 0; to < scenario.processes && !found; ++to) {
                if (from == to || node.world.in_channel(from, to) == 0) continue;
                Model next = node.world;
                next.pass(from, to);
                found = visit(std::move(next), node.length + 1);
            }
    }
    finding.visited = frontier.states();
    finding.exhausted = frontier.exhausted();
    return finding;
}

}  // namespace velo::schedule
