// Every function of the C interface by itself, in the states in which it asks for memory: its first
// allocation fails, then its second, until it succeeds; that one alone, and all from it on. Each time
// somebody is told, no lock stays held, and when all is closed nothing is left.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "faults.h"
#include "world.h"

namespace velo::test {
namespace {

// What a call came to.
enum class Outcome {
    kDone,
    kTold,     // a status, false or nothing where there should be something, or `fatal`
    kHarmless  // what it leaves out where memory is short, nobody misses
};

struct Case {
    const char* function;
    const char* state;
    void (*prepare)(World&);
    Outcome (*call)(World&);
};

Outcome of(World& world, velo_status status) {
    return status < VELO_OK || world.told ? Outcome::kTold : Outcome::kDone;
}
Outcome harmless() {
    return faults.failed > 0 ? Outcome::kHarmless : Outcome::kDone;
}
Outcome of(bool fine) {
    return fine ? Outcome::kDone : Outcome::kTold;
}

constexpr auto nothing = [](World&) {};
constexpr auto open_engines = [](World& w) { w.open(); };
constexpr auto connected = [](World& w) { w.connect(); };
constexpr auto by_mailbox = [](World& w) {
    w.single_copy = "copy";
    w.connect();
};
constexpr auto with_outbox = [](World& w) {
    w.by_reference = "auto";
    w.connect();
};
constexpr auto deposited = [](World& w) {
    with_outbox(w);
    w.begin_deposit();
};
constexpr auto messengers = [](World& w) { w.open_messengers(); };
constexpr auto held_back = [](World& w) { w.hold_back(); };

constexpr auto groups = [](World& w) { w.open_groups(); };
constexpr auto drawing = [](World& w) { w.draw(); };
constexpr velo_goal_place kHere{0, 0};

// What is wrong with a graph is told when it is compiled.
Outcome of(World& world, velo_goal_vertex vertex) {
    faults.counting = false;
    const velo_status status = world.compile();
    EXPECT_TRUE(vertex != VELO_GOAL_NO_VERTEX || status != VELO_OK);
    return of(world, status);
}

// Without a way to the other one the run is over at once.
Outcome start(World& w) {
    const velo_status status = w.run(w.us, w.schedule, &w.started);
    if (of(w, status) == Outcome::kTold || !velo_goal_run_is_over(w.started)) return of(w, status);
    return of(w, velo_goal_run_end(w.started).status);
}

// Once in so many polls.
constexpr auto look_around = [](World& w) {
    for (int i = 0; i < 3000; ++i) velo_progress(w.us.engine);
    return of(!w.told);
};

// In these states the function asks for memory
const Case kWithMemory[] = {
    {"velo_parameter_help", "", nothing,
     [](World& w) {
         velo_parameter_help(velo_parameter_at(0), w.error.data(), w.error.size());
         return of(std::strstr(w.error.data(), "Permitted") != nullptr);
     }},
    {"velo_parameter_objection", "", nothing,
     [](World& w) {
         velo_parameter_objection(velo_parameter_at(0), "bananas", w.error.data(), w.error.size());
         return of(std::strstr(w.error.data(), "must be") != nullptr);
     }},
    {"velo_shared_processors", "", nothing,
     [](World&) {
         const char* const localities[] = {"HT0-1", "HT2"};
         return velo_shared_processors(localities, 2) == 3 ? Outcome::kDone : harmless();
     }},
    {"velo_routes_text", "", nothing,
     [](World&) {
         char text[4096];
         return of(velo_routes_text("auto", nullptr, text, sizeof text) > 0 &&
                   std::strchr(text, '\n') != nullptr);
     }},
    {"velo_engine_open", "", nothing,
     [](World& w) {
         const velo_config config = w.config_of(0);
         return of(w, velo_engine_open(&config, &w.us.engine, w.error.data(), w.error.size()));
     }},
    {"velo_engine_open", "with a trace, under lazy",
     [](World& w) {
         w.traced = true;
         w.flow_control = "lazy";
     },
     [](World& w) {
         const velo_config config = w.config_of(0);
         return of(w, velo_engine_open(&config, &w.us.engine, w.error.data(), w.error.size()));
     }},
    {"velo_engine_open", "with a value that is not permitted", [](World& w) { w.report = "bananas"; },
     [](World& w) {
         const velo_config config = w.config_of(0);
         const velo_status status = velo_engine_open(&config, &w.us.engine, w.error.data(), w.error.size());
         EXPECT_EQ(w.us.engine, nullptr);
         return faults.failed > 0 ? of(w, status) : of(status == VELO_ERR_PARAMETER);
     }},
    {"velo_engine_close", "with a report and a trace",
     [](World& w) {
         w.report = "json";
         w.traced = true;
         w.connect();
         World::check(w.send(w.us, 5000));
         w.settle();
         velo_engine_close(std::exchange(w.them.engine, nullptr));
     },
     [](World& w) {
         w.us.other = nullptr;
         velo_engine_close(std::exchange(w.us.engine, nullptr));
         return harmless();
     }},
    {"velo_peer_expect", "", open_engines, [](World& w) { return of(w, w.expect_other(0, &w.place)); }},
    {"velo_peer_expect", "an address that is none", open_engines,
     [](World& w) {
         const char address[8] = "nothing";
         EXPECT_LT(
             velo_peer_expect(w.us.engine, address, sizeof address, &w.place, w.error.data(), w.error.size()),
             VELO_OK);
         return faults.failed > 0 ? Outcome::kTold : Outcome::kDone;
     }},
    {"velo_peer_expect_remote", "without a network", open_engines,
     [](World& w) {
         const void* address = velo_engine_address(w.them.engine, &w.bytes);
         EXPECT_LT(
             velo_peer_expect_remote(w.us.engine, address, w.bytes, &w.place, w.error.data(), w.error.size()),
             VELO_OK);
         return faults.failed > 0 ? Outcome::kTold : Outcome::kDone;
     }},
    {"velo_peer_at", "under lazy",
     [](World& w) {
         w.flow_control = "lazy";
         w.open();
         World::check(w.expect_other(0, &w.place));
     },
     [](World& w) {
         w.us.other = velo_peer_at(w.us.engine, w.place);
         return of(w.us.other != nullptr && !w.told);
     }},
    {"velo_peer_connect", "", open_engines,
     [](World& w) {
         const void* address = velo_engine_address(w.them.engine, &w.bytes);
         return of(w, velo_peer_connect(w.us.engine, address, w.bytes, &w.us.other, w.error.data(),
                                        w.error.size()));
     }},
    {"velo_send_start", "the first one, under lazy",
     [](World& w) {
         w.flow_control = "lazy";
         w.connect();
     },
     [](World& w) { return of(w, w.send(w.us, 900)); }},
    {"velo_get", "the first one", connected, [](World& w) { return of(w, w.get(kHuge)); }},
    {"velo_get", "by mailbox", by_mailbox, [](World& w) { return of(w, w.get(kHuge)); }},
    {"velo_deposit_begin", "without memory for its rings", with_outbox,
     [](World& w) {
         faults.no_room = true;
         w.begin_deposit();
         faults.no_room = false;
         EXPECT_EQ(VELO_DEPOSIT_NUMBER(w.deposit), 0U);
         return harmless();
     }},
    {"velo_get_deposited", "the first one, of what is not there", connected,
     [](World& w) {
         return of(w, velo_get_deposited(w.us.engine, w.us.other, 1, w.us.in.data(),
                                         World::remote(w.them.out), kHuge, World::done, nullptr));
     }},
    {"velo_put", "the first one", connected, [](World& w) { return of(w, w.put(kHuge)); }},
    {"velo_put", "by mailbox", by_mailbox, [](World& w) { return of(w, w.put(kHuge)); }},
    {"velo_atomic_start", "", connected, [](World& w) { return of(w, w.add(w.us, w.them)); }},
    {"velo_progress", "a message of several packets",
     [](World& w) {
         w.connect();
         World::check(w.send(w.them, kLarge));
     },
     [](World& w) {
         w.progress(w.us);
         return of(!w.told);
     }},
    {"velo_progress", "the first packet of a process, under lazy",
     [](World& w) {
         w.flow_control = "lazy";
         w.open();
         std::uint32_t place = 0;
         World::check(w.expect_other(0, &place));
         World::check(w.expect_other(1, &place));
         w.them.other = velo_peer_at(w.them.engine, place);
         World::check(w.send(w.them, 900));
         w.progress(w.them);
     },
     [](World& w) {
         w.progress(w.us);
         return of(!w.told);
     }},
    {"velo_progress", "an atomic and a get by mailbox of another",
     [](World& w) {
         by_mailbox(w);
         World::check(w.add(w.them, w.us));
         World::check(velo_get(w.them.engine, w.them.other, w.them.in.data(), World::remote(w.us.out), kHuge,
                               World::done, nullptr));
         w.progress(w.them);
     },
     [](World& w) {
         w.progress(w.us);
         return of(!w.told);
     }},
    {"velo_progress", "unexpected messages",
     [](World& w) {
         w.open_messengers();
         World::check(w.start(w.them, 1, 100));
         World::check(w.start(w.them, 2, kLarge));
         w.progress(w.them);
     },
     [](World& w) {
         w.progress(w.us);
         return of(!w.told);
     }},
    {"velo_progress", "a question for messages that are held back",
     [](World& w) {
         w.open_messengers();
         for (std::int32_t tag = 10; tag < 20; ++tag) World::check(w.start(w.us, tag, kLarge));
         w.settle();
         velo_message_receive& receive = w.them.receives[0];
         receive.buffer = w.them.in.data();
         receive.capacity = w.them.in.size();
         receive.done = [](velo_message_receive*, velo_status) {};
         World::check(velo_message_receive_start(w.them.messenger, 0, VELO_ANY_SOURCE, 18, &receive));
         w.progress(w.them);
     },
     [](World& w) {
         w.progress(w.us);
         return of(!w.told);
     }},
    {"velo_messenger_open", "", connected, [](World& w) { return of(w, w.open_messenger(w.us)); }},
    {"velo_messenger_connect", "",
     [](World& w) {
         w.connect();
         for (std::size_t i = 0; i < 2; ++i) World::check(w.open_messenger(w.at(i)));
     },
     [](World& w) { return of(w, w.connect_messenger(0)); }},
    {"velo_message_start", "by rendezvous", messengers,
     [](World& w) { return of(w, w.start(w.us, 1, kLarge)); }},
    {"velo_message_start", "to itself", messengers,
     [](World& w) { return of(w, w.start(w.us, 1, kLarge, true)); }},
    {"velo_message_start", "held back",
     [](World& w) {
         w.open_messengers();
         for (std::int32_t tag = 10; tag < 15; ++tag) World::check(w.start(w.us, tag, kLarge));
         w.settle();
     },
     [](World& w) { return of(w, w.start(w.us, 15, kLarge)); }},
    {"velo_message_receive_start", "after its message", held_back,
     [](World& w) { return of(w, w.receive(10)); }},
    {"velo_message_receive_start", "after its message, in parts", held_back,
     [](World& w) { return of(w, w.receive(10, true)); }},
    {"velo_message_receive_start", "asks",
     [](World& w) {
         w.hold_back();
         w.use_up_credits();  // the question has to wait
     },
     [](World& w) { return of(w, w.receive(18)); }},
    {"velo_message_cancel", "the next one asks",
     [](World& w) {
         w.hold_back();
         World::check(w.receive(99));
         World::check(w.receive(99));
         w.settle();
         w.use_up_credits();
     },
     [](World& w) {
         const bool cancelled = velo_message_cancel(w.us.messenger, w.us.receives.data());
         return of(cancelled && !w.told);
     }},
    {"velo_message_probe", "asks", held_back,
     [](World& w) {
         (void)velo_message_probe(w.us.messenger, {0, VELO_ANY_SOURCE, 19}, &w.key, &w.bytes);
         return of(!w.told);
     }},
    {"velo_message_take", "asks", held_back,
     [](World& w) {
         w.message = w.take(17);
         return of(!w.told);
     }},
    {"velo_message_receive_taken", "",
     [](World& w) {
         w.hold_back();
         w.message = w.take(10);
     },
     [](World& w) { return of(w, velo_message_receive_taken(w.us.messenger, w.message, &w.prepared())); }},
    {"velo_message_forget", "", held_back,
     [](World& w) {
         velo_message_forget(w.us.messenger, 0);
         return of(!w.told);
     }},
    {"velo_goal_graph_new", "", nothing, [](World& w) { return of(w, velo_goal_graph_new(0, 2, &w.graph)); }},
    {"velo_goal_send", "", drawing, [](World& w) { return of(w, velo_goal_send(w.graph, kHere, 8, 1, 0)); }},
    {"velo_goal_receive", "", drawing,
     [](World& w) { return of(w, velo_goal_receive(w.graph, kHere, 8, 1, 0)); }},
    {"velo_goal_send_pieces", "", drawing,
     [](World& w) {
         const velo_goal_piece pieces[] = {{kHere, 8}, {{16, 0}, 8}};
         return of(w, velo_goal_send_pieces(w.graph, pieces, 2, 1, 0));
     }},
    {"velo_goal_receive_pieces", "", drawing,
     [](World& w) {
         const velo_goal_piece pieces[] = {{kHere, 8}, {{16, 0}, 8}};
         return of(w, velo_goal_receive_pieces(w.graph, pieces, 2, 1, 0));
     }},
    {"velo_goal_combine", "", drawing,
     [](World& w) {
         const velo_goal_piece a{kHere, 8}, b{{8, 0}, 8};
         const velo_goal_combination combination{VELO_GOAL_ADD, VELO_GOAL_UINT, 64, 1, &a, &b, &a, 1, 1, 1};
         return of(w, velo_goal_combine(w.graph, &combination));
     }},
    {"velo_goal_call", "", drawing, [](World& w) { return of(w, velo_goal_call(w.graph, 1)); }},
    {"velo_goal_calculate", "", drawing, [](World& w) { return of(w, velo_goal_calculate(w.graph, 1, 0)); }},
    {"velo_goal_requires", "",
     [](World& w) {
         w.draw();
         for (std::uint32_t i = 0; i < 2; ++i) velo_goal_call(w.graph, i);
     },
     [](World& w) {
         velo_goal_requires(w.graph, 1, 0);
         return of(w, velo_goal_vertex{0});
     }},
    {"velo_goal_requires_start", "",
     [](World& w) {
         w.draw();
         for (std::uint32_t i = 0; i < 2; ++i) velo_goal_call(w.graph, i);
     },
     [](World& w) {
         velo_goal_requires_start(w.graph, 1, 0);
         return of(w, velo_goal_vertex{0});
     }},
    {"velo_goal_compile", "",
     [](World& w) {
         w.draw();
         velo_goal_requires(w.graph, velo_goal_send(w.graph, kHere, 8, 1, 0), velo_goal_call(w.graph, 0));
     },
     [](World& w) { return of(w, w.compile()); }},
    {"velo_goal_compile", "a circle",
     [](World& w) {
         w.draw();
         const velo_goal_vertex a = velo_goal_call(w.graph, 0), b = velo_goal_call(w.graph, 1);
         velo_goal_requires(w.graph, a, b);
         velo_goal_requires(w.graph, b, a);
     },
     [](World& w) {
         EXPECT_LT(w.compile(), VELO_OK);
         EXPECT_EQ(w.schedule, nullptr);
         return faults.failed > 0 ? Outcome::kTold : Outcome::kDone;
     }},
    {"velo_performer_open", "", nothing,
     [](World& w) {
         const velo_status status = w.open_performer(0);
         EXPECT_EQ(status == VELO_OK, w.us.performer != nullptr);
         return of(w, status);
     }},
    {"velo_performer_connect", "",
     [](World& w) {
         for (std::size_t i = 0; i < 2; ++i) World::check(w.open_performer(i));
     },
     [](World& w) { return of(w, w.connect_performer(w.us, w.them)); }},
    {"velo_goal_group_open", "",
     [](World& w) {
         for (std::size_t i = 0; i < 2; ++i) World::check(w.open_performer(i));
     },
     [](World& w) { return of(w, w.open_group(0)); }},
    {"velo_goal_group_schedule", "a new one", groups,
     [](World& w) {
         velo_goal_schedule* made = nullptr;
         const velo_status status = w.request(w.us, &made);
         EXPECT_EQ(status == VELO_OK, made != nullptr);
         return of(w, status);
     }},
    {"velo_goal_group_schedule", "an operation that is none", groups,
     [](World& w) {
         velo_goal_schedule* made = nullptr;
         EXPECT_LT(w.request(w.us, &made, "an operation whose name is long"), VELO_OK);
         return faults.failed > 0 ? Outcome::kTold : Outcome::kDone;
     }},
    {"velo_goal_run_start", "the first one",
     [](World& w) {
         w.open_groups();
         w.draw();
         velo_goal_scratch(w.graph, 64);
         velo_goal_send(w.graph, {0, VELO_GOAL_SCRATCH}, 8, 1, 0);
         velo_goal_receive(w.graph, {0, VELO_GOAL_NOWHERE}, kLarge, 1, 1);
         World::check(w.compile());
     },
     start},
    {"velo_goal_run_start", "of which a message is in pieces",
     [](World& w) {
         w.open_groups();
         w.draw();
         const velo_goal_piece pieces[] = {{kHere, 8}, {{16, 0}, kLarge}};
         velo_goal_send_pieces(w.graph, pieces, 2, 1, 0);
         World::check(w.compile());
     },
     start},
    {"velo_goal_group_keep", "", groups,
     [](World& w) {
         const velo_status status = w.request(w.us, &w.schedule, "allreduce", velo_goal_group_keep);
         EXPECT_EQ(status == VELO_OK, w.schedule != nullptr);
         return of(w, status);
     }},
    {"velo_goal_new_name", "", groups,
     [](World& w) {
         std::uint64_t name = 0;
         return of(w, velo_goal_new_name(w.us.performer, 1, 7, &name));
     }},
    {"velo_performer_multicast", "", groups,
     [](World& w) {
         const std::uint32_t addresses[] = {htonl(INADDR_LOOPBACK), htonl(INADDR_LOOPBACK)}, ranks[] = {0, 1};
         velo_multicast_config config{};
         config.count = 2;
         config.addresses = addresses;
         config.ranks = ranks;
         config.mtu = 1500;
         return of(w, velo_performer_multicast(w.us.performer, &config, w.error.data(), w.error.size()));
     }},
    {"velo_multicast_interface", "", nothing,
     [](World&) {
         std::uint32_t address = 0, mtu = 0;
         (void)velo_multicast_interface("lo", &address, &mtu);
         return harmless();
     }},
    {"velo_performer_multicast", "with nobody else", groups,
     [](World& w) {
         velo_multicast_config config{};
         config.count = 1;
         EXPECT_LT(velo_performer_multicast(w.us.performer, &config, w.error.data(), w.error.size()),
                   VELO_OK);
         return faults.failed > 0 ? Outcome::kTold : Outcome::kDone;
     }},
    {"velo_goal_run_skip", "", groups,
     [](World& w) {
         for (int i = 0; i < 5000; ++i) velo_goal_run_skip(w.us.group);
         return of(!w.told);
     }},
    {"velo_goal_progress", "a run that fails, for which another one waits", [](World& w) { w.run_to_fail(); },
     [](World& w) {
         velo_goal_progress(w.us.performer);
         // Its own end is told in any case.
         EXPECT_TRUE(w.told || velo_goal_run_is_over(w.started));
         return w.told ? Outcome::kTold : harmless();
     }},
    {"velo_goal_progress", "another one's run has failed",
     [](World& w) {
         w.run_to_fail();
         velo_goal_progress(w.us.performer);
         std::swap(w.us.performer, w.them.performer);
         std::swap(w.us.group, w.them.group);
     },
     [](World& w) {
         velo_goal_progress(w.us.performer);
         return of(!w.told);
     }},
    {"velo_performer_close", "with a run",
     [](World& w) {
         w.run_to_fail();
         velo_goal_group_close(std::exchange(w.us.group, nullptr));
     },
     [](World& w) {
         velo_performer_close(std::exchange(w.us.performer, nullptr));
         return harmless();
     }},
};

// and in these it asks for none.
const Case kWithoutMemory[] = {
    {"velo_engine_abandon", "with a trace",
     [](World& w) {
         w.traced = true;
         w.connect();
     },
     [](World& w) {
         velo_engine_abandon(w.us.engine);
         return harmless();
     }},
    {"velo_extend_progress", "", open_engines,
     [](World& w) {
         velo_extend_progress(w.us.engine, 3);
         return of(velo_progress(w.us.engine) == 0);
     }},
    {"velo_engine_trace_board", "", open_engines,
     [](World& w) {
         const velo_board_event event{};
         velo_engine_trace_board(w.us.engine, &event);  // there is no trace
         return harmless();
     }},
    {"velo_send_now", "", connected,
     [](World& w) { return of(w, velo_send_now(w.us.other, 7, w.us.out.data(), 14, w.us.out.data(), 900)); }},
    {"velo_send_now", "under rnr, with a trace",
     [](World& w) {
         w.flow_control = "rnr";
         w.traced = true;
         w.connect();
     },
     [](World& w) { return of(w, velo_send_now(w.us.other, 7, w.us.out.data(), 14, w.us.out.data(), 300)); }},
    {"velo_send_start", "without credits",
     [](World& w) {
         w.connect();
         w.use_up_credits();
     },
     [](World& w) { return of(w, w.send(w.us, 900)); }},
    {"velo_progress", "that looks whether a peer has vanished", connected, look_around},
    {"velo_progress", "that looks whether a peer has vanished that it never connected to",
     [](World& w) {
         w.flow_control = "lazy";
         w.open();
         World::check(w.expect_other(0, &w.place));
         w.us.other = velo_peer_at(w.us.engine, w.place);
     },
     look_around},
    {"velo_send_now", "to a peer that turns out to be far", connected,
     [](World& w) {
         for (int looks = 0; looks < 1000 && !w.far; ++looks) {
             faults.counting = false;
             w.settle();
             unmap_pages_of(w.backing());
             faults.counting = true;
             World::check(velo_send_now(w.us.other, 7, w.us.out.data(), 100, nullptr, 0));
         }
         return of(w.far);
     }},
    {"velo_deposit_begin", "", with_outbox,
     [](World& w) {
         w.begin_deposit();
         return of(w.deposit != 0);
     }},
    {"velo_deposit_store", "", deposited,
     [](World& w) {
         velo_deposit_store(w.us.other, w.deposit);
         return of(true);
     }},
    {"velo_deposit_end", "", deposited,
     [](World& w) {
         velo_deposit_end(w.us.other, w.deposit);
         const std::uint64_t before = w.deposit;
         w.begin_deposit();
         EXPECT_NE(VELO_DEPOSIT_NUMBER(before), 0U);
         return of(w.deposit != before);
     }},
    {"velo_atomic_here", "", nothing,
     [](World& w) {
         std::uint64_t old = 0;
         return of(w, velo_atomic_here(VELO_ATOMIC_ADD, 8, reinterpret_cast<std::uint64_t>(&w.us.word), 1, 0,
                                       &old));
     }},
    {"velo_counter_of_peers", "", connected,
     [](World& w) {
         std::uint64_t sum = 0, value = 0;
         for (unsigned i = 0; velo_counter_at(i) != nullptr; ++i) {
             velo_counter_of_peers(w.us.engine, i, &value, 1);
             sum += value;
         }
         return of(sum > 0);
     }},
    {"velo_dump", "", connected,
     [](World& w) {
         velo_dump(w.us.engine, nullptr, 0);
         return harmless();
     }},
    {"velo_messenger_close", "with messages",
     [](World& w) {
         w.hold_back();
         World::check(w.receive(99));
     },
     [](World& w) {
         velo_messenger_close(std::exchange(w.us.messenger, nullptr));
         return harmless();
     }},
    {"velo_message_start", "eager", messengers, [](World& w) { return of(w, w.start(w.us, 1, 100)); }},
    {"velo_message_now", "with several threads, where it never can", messengers,
     [](World& w) {
         return of(!velo_message_now(w.us.messenger, w.us.other, 0, 0, 1, w.us.out.data(), 100) && !w.told);
     }},
    {"velo_message_receive_start", "before its message", messengers,
     [](World& w) { return of(w, w.receive(1)); }},
    {"velo_message_take", "one that has come", held_back,
     [](World& w) {
         w.message = w.take(10);
         return of(w.message != nullptr && !w.told);
     }},
    {"velo_performer_abandon", "", groups,
     [](World& w) {
         velo_performer_abandon(w.us.performer);
         return harmless();
     }},
    {"velo_goal_group_schedule", "one that is at hand",
     [](World& w) {
         w.open_groups();
         velo_goal_schedule* made = nullptr;
         World::check(w.request(w.us, &made));
     },
     [](World& w) {
         velo_goal_schedule* made = nullptr;
         return of(w, w.request(w.us, &made));
     }},
    {"velo_goal_run_end", "", [](World& w) { w.run_to_the_end(); },
     [](World& w) { return of(w, velo_goal_run_end(w.started).status); }},
    {"velo_goal_progress", "nothing to do", groups,
     [](World& w) {
         velo_goal_progress(w.us.performer);
         return of(!w.told);
     }},
};

// These look something up, or give back what there is.
const char* const kNeverWithMemory[] = {"velo_address_is_here",
                                        "velo_counter_at",
                                        "velo_counter_peers",
                                        "velo_counter_value",
                                        "velo_death_text",
                                        "velo_default_coll_config",
                                        "velo_default_config",
                                        "velo_default_messenger_config",
                                        "velo_default_performer_config",
                                        "velo_engine_address",
                                        "velo_engine_description",
                                        "velo_engine_hand_messages_to",
                                        "velo_engine_is_short",
                                        "velo_engine_network_eager_limit",
                                        "velo_goal_algorithm_at",
                                        "velo_goal_graph_free",
                                        "velo_goal_group_close",
                                        "velo_goal_group_lane",
                                        "velo_goal_group_name",
                                        "velo_goal_is_legal",
                                        "velo_goal_reason",
                                        "velo_goal_run_is_over",
                                        "velo_goal_schedule_free",
                                        "velo_goal_scratch",
                                        "velo_message_is_remote",
                                        "velo_message_source",
                                        "velo_messenger_address",
                                        "velo_messenger_observe",
                                        "velo_messenger_watch",
                                        "velo_multicast_new_key",
                                        "velo_parameter_at",
                                        "velo_parameter_instead_of",
                                        "velo_parameter_like",
                                        "velo_parameter_permits",
                                        "velo_peer_has_died",
                                        "velo_peer_nobody",
                                        "velo_peer_queued_bytes",
                                        "velo_performer_address",
                                        "velo_performer_counter",
                                        "velo_performer_counter_at",
                                        "velo_performer_observe",
                                        "velo_performer_pair_idle_with",
                                        "velo_performer_reset_idle",
                                        "velo_policy_name"};

std::set<std::string> declared() {
    std::set<std::string> names;
    const std::regex declaration(R"((?:^|\n)(?!typedef|struct|static)[a-z][\w* ]*?\b(velo_\w+)\()");
    for (const char* header : {"velo.h", "velo_messages.h", "velo_goal.h"}) {
        std::ostringstream text;
        text << std::ifstream(std::string(VELO_SOURCE_DIRECTORY "/mca_btl_velo/api/") + header).rdbuf();
        const std::string all = text.str();
        for (std::sregex_iterator it(all.begin(), all.end(), declaration), end; it != end; ++it)
            names.insert((*it)[1]);
    }
    return names;
}

// A lock that is still held stops the thread that wants it.
void expect_locks_to_be_free(World& world) {
    const auto used = std::async(std::launch::async, [&] { world.use_locks(); });
    if (used.wait_for(std::chrono::seconds(20)) == std::future_status::ready) return;
    std::fputs("a lock is still held\n", stdout);  // stderr is captured
    std::fflush(stdout);
    std::abort();
}

// Runs a case once; true if an allocation failed.
bool failed_at(const Case& which, std::uint64_t allocation, const std::string& backing,
               const std::string& trace, bool all_later_fail = false) {
    auto world = std::make_unique<World>(backing, trace);
    which.prepare(*world);
    EXPECT_FALSE(world->told);
    faults = {};
    faults.allocations_left = allocation;
    faults.all_later_fail = all_later_fail;
    Outcome outcome = Outcome::kDone;
    faults.counting = true;
    try {
        outcome = which.call(*world);
        faults.counting = false;
    } catch (const std::exception& thrown) {
        faults.counting = false;
        ADD_FAILURE() << "went through the C interface: " << thrown.what();
    }
    const bool failed = faults.failed > 0;
    EXPECT_EQ(outcome != Outcome::kDone, failed)
        << (failed ? "nobody is told" : "it did not do what it should");
    expect_locks_to_be_free(*world);
    return failed;
}

TEST(FunctionsTest, each_tells_of_an_allocation_that_fails_and_leaves_nothing) {
    const TemporaryDirectory backing, trace;
    for (const Case& which : kWithMemory) {
        SCOPED_TRACE(std::string(which.function) + " " + which.state);
        const Silence silence;
        failed_at(which, UINT64_MAX, backing.path(),
                  trace.path());  // what is made once in a process is there
        EXPECT_GT(faults.asked_for, 0U);
        const std::size_t files = entries_of("/proc/self/fd");
        for (const bool all_later_fail : {false, true}) {
            bool failed = true;
            for (std::uint64_t allocation = 0; failed && !HasFailure(); ++allocation) {
                SCOPED_TRACE("allocation " + std::to_string(allocation));
                const std::int64_t blocks = live_blocks;
                failed = failed_at(which, allocation, backing.path(), trace.path(), all_later_fail);
                EXPECT_EQ(live_blocks, blocks);
                EXPECT_EQ(entries_of(backing.path()), 0U);
                EXPECT_EQ(mapped_of(backing.path()), 0U);
                EXPECT_EQ(entries_of("/proc/self/fd"), files);
            }
        }
    }
}

TEST(FunctionsTest, what_needs_no_memory_asks_for_none) {
    const TemporaryDirectory backing, trace;
    for (const Case& which : kWithoutMemory) {
        SCOPED_TRACE(std::string(which.function) + " " + which.state);
        failed_at(which, UINT64_MAX, backing.path(), trace.path());
        EXPECT_EQ(faults.asked_for, 0U);
    }
}

TEST(FunctionsTest, every_function_of_the_interface_is_among_them) {
    std::set<std::string> tried, names = declared();
    for (const Case& which : kWithMemory) tried.insert(which.function);
    for (const Case& which : kWithoutMemory) tried.insert(which.function);
    tried.insert(std::begin(kNeverWithMemory), std::end(kNeverWithMemory));
    EXPECT_GT(names.size(), 40U);
    EXPECT_EQ(tried, names);
}

}  // namespace
}  // namespace velo::test
