// All states of small groups: every order of broadcasts, arrivals and time-outs, with losses and doubles
// anywhere. From every state on, everybody gets everything if only nothing more is lost.
// VELO_EXPLORE_STATES: states of each system, at most.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "multicast/world.h"
#include "schedule/frontier.h"

namespace velo::multicast {
namespace {

struct Harm {
    std::uint32_t losses, doubles,
        early;  // that may still happen; early: time-outs while something is under way
};

struct Exploration {
    std::string violation;
    std::uint64_t states = 0;
    bool exhausted = false;
    // Most of one member in one state, to see what was reached.
    std::uint64_t nacks = 0, resent = 0, probes = 0, repairs = 0, kept = 0, duplicates = 0, transfers = 0;
};

class Explorer {
 public:
    Explorer(const Config& config, std::uint32_t datagrams, Harm harm, std::uint32_t followers) {
        visit({World(config, datagrams, true, followers), harm});
    }

    Exploration run(std::uint64_t max_states) {
        while (result_.violation.empty() && !frontier_.exhausted() && frontier_.states() < max_states)
            expand(frontier_.take());
        result_.states = frontier_.states();
        result_.exhausted = frontier_.exhausted();
        return result_;
    }

 private:
    struct Node {
        World world;
        Harm harm;
    };

    template <class Event>
    void after(const Node& node, Event event, Harm harm) {
        if (!result_.violation.empty()) return;
        Node next{node.world, harm};
        event(next.world);
        visit(std::move(next));
    }

    void expand(const Node& node) {
        const World& world = node.world;
        Harm harm = node.harm;
        const bool may_be_early = harm.early > 0;
        const bool silent = world.packets().empty();
        if (!silent && may_be_early) --harm.early;
        for (std::uint32_t m = 0; m < world.members(); ++m) {
            if (world.wants_to_send(m)) {
                if (world.member(m).has_room())
                    after(
                        node, [m](World& next) { next.broadcast(m); }, node.harm);
                else if (may_be_early)
                    after(node, [m](World& next) { next.broadcast(m); },
                          {harm.losses, harm.doubles, harm.early});
            }
            if (!world.member(m).quiet() && (silent || may_be_early))
                after(
                    node, [m](World& next) { next.tick(m); }, harm);
        }
        for (std::uint32_t f = world.members(); f < world.processes(); ++f)
            if (world.led(f))
                after(
                    node, [f](World& next) { next.read_board(f); }, node.harm);
        for (std::size_t i = 0; i < world.packets().size(); ++i) {
            after(
                node, [i](World& next) { next.arrive(i); }, node.harm);
            if (node.harm.losses > 0)
                after(node, [i](World& next) { next.lose(i); },
                      {node.harm.losses - 1, node.harm.doubles, node.harm.early});
            if (node.harm.doubles > 0)
                after(node, [i](World& next) { next.arrive(i, true); },
                      {node.harm.losses, node.harm.doubles - 1, node.harm.early});
        }
    }

    void visit(Node&& node) {
        std::string state = node.world.encode();
        for (const std::uint32_t number : {node.harm.losses, node.harm.doubles, node.harm.early})
            state += static_cast<char>(number);
        if (!frontier_.is_new(std::move(state))) return;
        result_.violation = node.world.violation();
        if (result_.violation.empty() && !comes_to_its_end(node.world))
            result_.violation = "somebody waits for ever";
        note(node.world);
        frontier_.put(std::move(node));
    }

    // Without further harm, whoever is slow.
    static bool comes_to_its_end(World world) {
        for (int round = 0; round < 100 && !world.finished(); ++round) {
            for (std::uint32_t m = 0; m < world.members(); ++m)
                while (world.wants_to_send(m) && world.member(m).has_room()) world.broadcast(m);
            while (!world.packets().empty()) world.arrive(world.packets().size() - 1);
            for (std::uint32_t m = 0; m < world.members(); ++m)
                if (!world.member(m).quiet()) world.tick(m);
            for (std::uint32_t f = world.members(); f < world.processes(); ++f)
                if (world.led(f)) world.read_board(f);
            if (!world.violation().empty()) return false;
        }
        return world.finished();
    }

    void note(const World& world) {
        for (std::uint32_t m = 0; m < world.members(); ++m) {
            const Counters& c = world.member(m).counters();
            for (const auto& [most, value] : {std::pair{&result_.nacks, c.nacks},
                                              {&result_.resent, c.resent},
                                              {&result_.probes, c.probes},
                                              {&result_.repairs, c.repairs + c.repairs_to_all},
                                              {&result_.kept, c.kept},
                                              {&result_.duplicates, c.duplicates},
                                              {&result_.transfers, c.transfers}})
                *most = std::max(*most, value);
        }
    }

    schedule::Frontier<Node> frontier_;
    Exploration result_;
};

constexpr std::uint64_t kStates = 50'000;  // all of those that are small

std::uint64_t max_states() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr std::uint64_t kUsual = 20'000;
#else
    constexpr std::uint64_t kUsual = kStates;
#endif
    const char* given = std::getenv("VELO_EXPLORE_STATES");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : kUsual;
}

struct System {
    const char* name;
    Scheme scheme;
    std::uint32_t members, window, ack_every, datagrams;
    Harm harm;
    bool small;  // all states are visited
    std::uint32_t co_roots = 0;
    bool reliable_transfer = false;
    std::vector<std::uint32_t> sources = {0};
    Sequence first = 0;
    std::uint32_t followers = 0;
    std::uint32_t share = 0;
    Shares shares = Shares::kDynamic;
};

void PrintTo(const System& system, std::ostream* out) {
    *out << system.name;
}

Config config_of(const System& system) {
    Config config;
    config.scheme = system.scheme;
    config.members = system.members;
    config.window = system.window;
    config.ack_every = system.ack_every;
    config.co_roots = system.co_roots;
    config.reliable_transfer = system.reliable_transfer;
    config.sources = system.sources;
    config.first = system.first;
    config.share = system.share;
    config.shares = system.shares;
    // Small numbers, so that the states are few: what is due first is chosen by the explorer.
    config.probe_ns = 4;
    config.full_ns = 1;
    config.ack_delay_ns = 2;
    config.reorder_ns = 1;
    config.most_backoff = 1;
    return config;
}

class EverySmallGroup : public ::testing::TestWithParam<System> {};

TEST_P(EverySmallGroup, delivers_once_in_order_and_comes_to_its_end_whatever_is_lost) {
    const System& system = GetParam();
    const Exploration found =
        Explorer(config_of(system), system.datagrams, system.harm, system.followers).run(max_states());
    EXPECT_EQ(found.violation, "");
    RecordProperty("states", std::to_string(found.states));
    std::cout << found.states << (found.exhausted ? " states, all\n" : " states\n");
    if (!found.exhausted && max_states() < kStates) return;
    EXPECT_TRUE(found.exhausted || !system.small) << found.states;
    // What was explored is what the scheme is for.
    EXPECT_GT(found.duplicates, 0U);
    EXPECT_EQ(found.kept > 0, system.datagrams > 1 && system.window > 1);
    const bool on_demand = system.scheme == Scheme::kCoroot;
    for (const std::uint64_t count : {found.nacks, found.probes, found.repairs})
        EXPECT_EQ(count > 0, on_demand);
    EXPECT_EQ(found.resent > 0, !on_demand);
    EXPECT_EQ(found.transfers > 0, system.reliable_transfer);
}

const System kSystems[] = {
    {"basic_2", Scheme::kBasic, 2, 1, 1, 3, {2, 2, 2}, true},
    {"basic_3", Scheme::kBasic, 3, 1, 1, 2, {2, 1, 1}, true},
    {"basic_4", Scheme::kBasic, 4, 1, 1, 2, {1, 0, 1}, true},
    {"window_2", Scheme::kWindow, 2, 2, 1, 4, {2, 1, 1}, true},
    {"window_2_of_4", Scheme::kWindow, 2, 4, 2, 6, {2, 1, 1}, false},
    {"window_3", Scheme::kWindow, 3, 2, 1, 3, {1, 0, 1}, true, 0, false, {1}},
    {"tree_4", Scheme::kTree, 4, 1, 1, 2, {1, 0, 1}, true},
    {"tree_4_of_2", Scheme::kTree, 4, 2, 1, 2, {1, 0, 1}, false},
    {"coroot_2", Scheme::kCoroot, 2, 2, 1, 3, {2, 1, 1}, true, 1},
    {"coroot_2_of_4", Scheme::kCoroot, 2, 4, 2, 5, {2, 0, 1}, false, 1},
    {"coroot_3_from_2", Scheme::kCoroot, 3, 2, 1, 2, {2, 0, 1}, false, 1, false, {2}},
    {"coroot_3_of_1", Scheme::kCoroot, 3, 1, 1, 2, {2, 0, 1}, true, 1, false, {2}},
    {"coroot_3_without", Scheme::kCoroot, 3, 2, 1, 2, {2, 0, 1}, false},
    {"coroot_4", Scheme::kCoroot, 4, 1, 1, 1, {2, 0, 1}, true, 1},
    {"coroot_4_of_2", Scheme::kCoroot, 4, 2, 1, 2, {1, 0, 1}, false, 1},
    {"transfer_4", Scheme::kCoroot, 4, 1, 1, 1, {2, 0, 1}, true, 3, true},
    {"two_sources", Scheme::kCoroot, 2, 2, 2, 2, {1, 1, 1}, false, 1, false, {0, 1}},
    {"two_sources_of_three", Scheme::kCoroot, 3, 1, 1, 1, {1, 1, 0}, true, 1, false, {0, 1}},
    {"follower", Scheme::kCoroot, 2, 2, 1, 3, {1, 1, 0}, true, 1, false, {0}, 0, 1},
    {"dynamic_share", Scheme::kCoroot, 2, 2, 1, 3, {2, 0, 1}, true, 0, false, {0}, 0, 0, 1},
    {"dynamic_share_window", Scheme::kWindow, 2, 2, 1, 3, {1, 0, 1}, true, 0, false, {0}, 0, 0, 1},
    {"around_zero", Scheme::kCoroot, 2, 2, 1, 4, {2, 0, 1}, true, 1, false, {0}, UINT32_MAX - 1},
};
INSTANTIATE_TEST_SUITE_P(Exploration, EverySmallGroup, ::testing::ValuesIn(kSystems),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace velo::multicast
