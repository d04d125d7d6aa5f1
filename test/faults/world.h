// Two processes in one, in the state that a case wants; the calls of the first one are watched.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "api/velo.h"
#include "api/velo_goal.h"
#include "api/velo_messages.h"
#include "leftovers.h"

namespace velo::test {

inline constexpr std::size_t kLarge = 9000, kDeposited = 16384, kHuge = std::size_t{1} << 20;
inline constexpr std::uint64_t kNames[] = {100, 101};

struct Process {
    velo_engine* engine = nullptr;
    velo_messenger* messenger = nullptr;
    velo_peer* other = nullptr;
    std::array<velo_send, 40> sends{};
    std::array<velo_message_send, 40> message_sends{};
    std::array<velo_message_receive, 40> receives{};
    velo_performer* performer = nullptr;
    velo_goal_group* group = nullptr;
    std::size_t sends_used = 0, message_sends_used = 0, receives_used = 0;
    std::array<char, kHuge> out{}, in{};
    std::uint64_t word = 0;
};

class World {
 public:
    World(std::string backing, std::string trace) : backing_(std::move(backing)), trace_(std::move(trace)) {}
    World(const World&) = delete;
    ~World() {
        close_messengers();
        velo_goal_graph_free(graph);
        velo_goal_schedule_free(schedule);
        for (Process* process : {&us, &them}) {
            velo_goal_group_close(process->group);
            velo_performer_close(process->performer);
        }
        // The first one reports, when the other has closed.
        velo_engine_close(them.engine);
        velo_engine_close(us.engine);
    }

    velo_config config_of(std::size_t index) {
        velo_config config = velo_default_config();
        config.flow_control = flow_control;
        config.slots_per_peer = 64;
        config.by_reference = by_reference;
        config.piggyback = config.delay_credits = config.packet_trains = true;
        config.rnr_timer_ns = 1;
        config.preposted_buffers = 6;
        config.lazy_slots = 64;
        config.lazy_peers = 2;
        config.single_copy_mechanism = single_copy;
        config.backing_directory = backing_.c_str();
        config.spare_peers = 1;
        config.routes = "staged 67108864";
        config.max_message_bytes = 64 * 1024;
        config.report = report;
        config.trace = traced ? trace_.c_str() : "";
        config.process_name = kNames[index];
        config.node_peers = &kNames[1 - index];
        config.node_peer_count = 1;
        config.threads = true;  // the locks are real
        config.context = this;
        config.message = [](void*, std::uint8_t, void*, std::size_t) {};
        config.fatal = [](void* context, velo_status, const char*) {
            static_cast<World*>(context)->told = true;
        };
        config.log = [](void* context, int, const char* text) {
            static_cast<World*>(context)->far |= std::strstr(text, "is far") != nullptr;
        };
        return config;
    }
    void open() {
        for (std::size_t i = 0; i < 2; ++i) {
            const velo_config config = config_of(i);
            check(velo_engine_open(&config, &at(i).engine, error.data(), error.size()));
        }
    }
    velo_status expect_other(std::size_t i, std::uint32_t* place) {
        std::size_t bytes = 0;
        const void* address = velo_engine_address(at(1 - i).engine, &bytes);
        return velo_peer_expect(at(i).engine, address, bytes, place, error.data(), error.size());
    }
    void connect() {
        open();
        for (std::size_t i = 0; i < 2; ++i) {
            std::uint32_t place = 0;
            check(expect_other(i, &place));
            at(i).other = velo_peer_at(at(i).engine, place);
        }
    }
    velo_status open_messenger(Process& process) {
        // Of rendezvous four are under way at most; the rest is held back.
        constexpr velo_messenger_config kConfig{8192, 4096, 0, 2, false};
        return velo_messenger_open(process.engine, &kConfig, &process.messenger, error.data(), error.size());
    }
    velo_status connect_messenger(std::size_t i) {
        std::size_t bytes = 0;
        const void* address = velo_messenger_address(at(1 - i).messenger, &bytes);
        return velo_messenger_connect(at(i).messenger, at(i).other, address, bytes);
    }
    void open_messengers() {
        connect();
        for (std::size_t i = 0; i < 2; ++i) check(open_messenger(at(i)));
        for (std::size_t i = 0; i < 2; ++i) check(connect_messenger(i));
    }
    void close_messengers() {
        for (Process* process : {&us, &them})
            velo_messenger_close(std::exchange(process->messenger, nullptr));
    }
    // Of the messages for the first process some wait there, and some are held back at the second one.
    void hold_back() {
        open_messengers();
        for (std::int32_t tag = 10; tag < 20; ++tag) check(start(them, tag, kLarge));
        settle();
    }

    // Schedules: each process has one for what follows.
    velo_status open_performer(std::size_t i) {
        velo_performer_config config = velo_default_performer_config();
        config.engine = config_of(i);
        config.messages = {1024, 4096, 0, 2, false};
        return velo_performer_open(&config, &at(i).performer, error.data(), error.size());
    }
    velo_status connect_performer(Process& from, Process& to) {
        std::size_t bytes = 0;
        const void* address = velo_performer_address(to.performer, &bytes);
        return velo_performer_connect(from.performer, address, bytes, &from.other, error.data(),
                                      error.size());
    }
    velo_status open_group(std::uint32_t i) {
        const auto reach = [](void* world, std::uint32_t rank) {
            auto& self = *static_cast<World*>(world);
            const velo_status status = self.connect_performer(self.at(1 - rank), self.at(rank));
            return status == VELO_OK ? self.at(1 - rank).other : nullptr;
        };
        return velo_goal_group_open(at(i).performer, 3, i, 2, reach, this, &at(i).group);
    }
    void open_groups() {
        for (std::uint32_t i = 0; i < 2; ++i) check(open_performer(i));
        for (std::uint32_t i = 0; i < 2; ++i) check(open_group(i));
    }
    void draw() { check(velo_goal_graph_new(0, 2, &graph)); }
    velo_status compile() { return velo_goal_compile(graph, &schedule, error.data(), error.size()); }
    velo_status request(Process& process, velo_goal_schedule** made, const char* operation = "allreduce",
                        decltype(velo_goal_group_schedule)* way = velo_goal_group_schedule) {
        velo_goal_request asked{};
        asked.operation = operation;
        asked.bytes = kLarge;
        asked.op = VELO_GOAL_MAX;
        asked.type = VELO_GOAL_UINT;
        asked.width = 8;
        return way(process.group, &asked, made);
    }
    velo_status run(Process& process, velo_goal_schedule* what, velo_goal_run** started) {
        void* const arguments[] = {process.out.data(), process.in.data()};
        velo_goal_start start{};
        start.arguments = arguments;
        start.argument_count = 2;
        start.call = [](void*, std::uint32_t) { return VELO_ERR_UNSUPPORTED; };
        return velo_goal_run_start(process.group, what, &start, started);
    }
    // A call that fails before the other one gets anything.
    void run_to_fail() {
        open_groups();
        draw();
        velo_goal_requires(graph, velo_goal_send(graph, {0, 0}, 8, 1, 0), velo_goal_call(graph, 0));
        check(compile());
        check(run(us, schedule, &started));
    }
    void settle_performers() {
        for (int i = 0; i < 60; ++i) {
            velo_goal_progress(us.performer);
            velo_goal_progress(them.performer);
        }
    }
    void run_to_the_end() {
        open_groups();
        for (std::uint32_t i = 0; i < 2; ++i) {
            velo_goal_schedule* made = nullptr;
            velo_goal_run* begun = nullptr;
            check(request(at(i), &made));
            check(run(at(i), made, &begun));
            if (i == 0) started = begun;
        }
        settle_performers();
        EXPECT_TRUE(velo_goal_run_is_over(started));
    }

    velo_status send(Process& from, std::size_t bytes) {
        velo_send& send = from.sends[from.sends_used++];
        send.part[0] = from.out.data();
        send.bytes[0] = 14;
        send.part[1] = from.out.data() + 14;
        send.bytes[1] = bytes;
        send.tag = 7;
        send.done = [](velo_send*, velo_status) {};
        return velo_send_start(from.engine, from.other, &send);
    }
    void use_up_credits() {
        while (us.sends_used < 30) check(send(us, 900));
    }
    velo_status get(std::size_t bytes) {
        return velo_get(us.engine, us.other, us.in.data(), remote(them.out), bytes, done, nullptr);
    }
    velo_status put(std::size_t bytes) {
        return velo_put(us.engine, us.other, us.out.data(), remote(them.in), bytes, done, nullptr);
    }
    void begin_deposit() { deposit = velo_deposit_begin(us.other, us.out.data(), kDeposited); }
    const std::string& backing() const { return backing_; }
    velo_status add(Process& from, Process& to) {
        return velo_atomic_start(from.engine, from.other, VELO_ATOMIC_ADD, 8,
                                 reinterpret_cast<std::uint64_t>(&to.word), 1, 0, done, nullptr);
    }
    velo_status start(Process& from, std::int32_t tag, std::size_t bytes, bool to_itself = false) {
        velo_message_send& send = from.message_sends[from.message_sends_used++];
        send.done = [](velo_message_send*, velo_status) {};
        return velo_message_start(from.messenger, to_itself ? nullptr : from.other, 0, 0, tag,
                                  from.out.data(), bytes, VELO_SEND_STANDARD, &send);
    }
    velo_message_receive& prepared(bool unpack = false) {
        velo_message_receive& receive = us.receives[us.receives_used++];
        receive.buffer = us.in.data();
        receive.capacity = us.in.size();
        if (unpack) receive.unpack = [](velo_message_receive*, const void*, std::size_t) {};
        receive.done = [](velo_message_receive*, velo_status) {};
        return receive;
    }
    velo_status receive(std::int32_t tag, bool unpack = false) {
        return velo_message_receive_start(us.messenger, 0, VELO_ANY_SOURCE, tag, &prepared(unpack));
    }
    velo_message* take(std::int32_t tag) {
        return velo_message_take(us.messenger, {0, VELO_ANY_SOURCE, tag}, &key, &bytes);
    }
    void progress(Process& process) {
        for (int i = 0; i < 20 && !told; ++i) velo_progress(process.engine);
    }
    void settle() {
        for (int i = 0; i < 40; ++i) {
            velo_progress(us.engine);
            velo_progress(them.engine);
        }
    }
    // What takes the engine's locks, and the messenger's.
    void use_locks() {
        if (us.performer != nullptr) {
            velo_performer_state state;
            velo_performer_observe(us.performer, &state);
            velo_goal_progress(us.performer);
            if (us.group != nullptr) velo_goal_run_skip(us.group);
        }
        if (us.engine == nullptr) return;
        velo_dump(us.engine, nullptr, 0);
        velo_progress(us.engine);
        velo_engine_abandon(us.engine);
        velo_key found;
        std::size_t bytes_found = 0;
        if (us.messenger != nullptr)
            (void)velo_message_probe(us.messenger, {0, VELO_ANY_SOURCE, 98}, &found, &bytes_found);
        if (us.other != nullptr) (void)velo_send_now(us.other, 7, us.out.data(), 14, nullptr, 0);
    }

    static void done(void*, velo_status, std::uint64_t) {}
    template <typename Memory>
    static std::uint64_t remote(const Memory& memory) {
        return reinterpret_cast<std::uint64_t>(memory.data());
    }
    Process& at(std::size_t index) { return index == 0 ? us : them; }
    static void check(velo_status status) { EXPECT_GE(status, VELO_OK); }

    // The case's choice, before anything is open.
    const char* flow_control = "dynamic";
    const char* single_copy = "auto";
    const char* by_reference = "never";  // long messages ask for memory, to be put together
    const char* report = "none";
    bool traced = false;

    Process us, them;
    std::uint32_t place = 0;
    velo_message* message = nullptr;
    velo_goal_graph* graph = nullptr;
    velo_goal_schedule *schedule = nullptr, *made = nullptr;
    velo_goal_run* started = nullptr;
    velo_key key{};
    std::size_t bytes = 0;
    std::array<char, 1024> error{};
    std::uint64_t deposit = 0;
    bool told = false;
    bool far = false;  // it is in the log

 private:
    const std::string backing_, trace_;
};

}  // namespace velo::test
