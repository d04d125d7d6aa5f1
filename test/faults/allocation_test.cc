// Every allocation of a life of two processes fails once, and all from it on in a second pass: each call of
// the C interface returns, somebody is told, and nothing is left.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "api/velo.h"
#include "api/velo_messages.h"
#include "faults.h"
#include "leftovers.h"

namespace velo::test {
namespace {

struct Variant {
    const char* name;
    const char* flow_control;
    const char* single_copy;
    bool all_later_fail;
};

// Two ranks in one process. What they own lives as long as the scenario, so that nothing here allocates while
// allocations are counted.
class Scenario {
 public:
    Scenario(const Variant& variant, std::string backing, std::string trace)
        : variant_(variant), backing_(std::move(backing)), trace_(std::move(trace)) {}
    ~Scenario() {
        for (std::size_t i = ranks_.size(); i-- > 0;) {  // the first one reports, when the others have closed
            optional([&] { velo_messenger_close(ranks_[i].messenger); });
            optional([&] { velo_engine_close(ranks_[i].engine); });
        }
    }
    Scenario(const Scenario&) = delete;

    void run() {
        for (const auto step : {&Scenario::open, &Scenario::connect, &Scenario::send, &Scenario::transfer,
                                &Scenario::open_messengers, &Scenario::exchange, &Scenario::hold_back,
                                &Scenario::look_at_what_is_held, &Scenario::watch}) {
            (this->*step)();
            if (told_) return;
        }
        finished_ = true;
    }

    bool told() const { return told_; }
    // A failure that nobody has to be told of.
    bool harmless() const { return harmless_; }
    bool finished() const { return finished_; }

 private:
    static constexpr std::size_t kLarge = 40'000, kHuge = std::size_t{1} << 20;
    static constexpr std::uint64_t kNames[] = {100, 101};

    struct Rank {
        velo_engine* engine = nullptr;
        velo_messenger* messenger = nullptr;
        velo_peer* peer = nullptr;
        std::array<velo_send, 40> sends{};
        std::array<velo_message_send, 40> message_sends{};
        std::array<velo_message_receive, 40> receives{};
        std::size_t receives_used = 0, sends_used = 0;
        std::array<char, kHuge> out{}, in{};
        std::uint64_t word = 0;
    };

    template <typename Call>
    auto call(Call function) {
        struct Counting {
            Counting() { faults.counting = true; }
            ~Counting() { faults.counting = false; }
        } counting;
        return function();
    }
    template <typename Call>
    void optional(Call function) {
        const std::uint64_t before = faults.failed;
        call(function);
        harmless_ |= faults.failed != before;
    }
    void expect(velo_status status) { told_ |= status < VELO_OK; }
    void settle() {
        for (int idle = 0; idle < 3 && !told_;) {
            int events = 0;
            for (Rank& rank : ranks_) events += call([&] { return velo_progress(rank.engine); });
            idle = events == 0 ? idle + 1 : 0;
        }
    }

    void open() {
        for (unsigned index = 0; call([&] { return velo_policy_name(index); }) != nullptr; ++index) {
        }
        for (unsigned index = 0; index < 2; ++index) {
            const velo_parameter* parameter = velo_parameter_at(index);
            char text[1024] = "";
            optional([&] { velo_parameter_help(parameter, text, sizeof text); });
            optional([&] { velo_parameter_objection(parameter, "nothing that is permitted", text, sizeof text); });
            told_ |= *text == '\0';
        }
        for (std::size_t i = 0; i < 2; ++i) {
            velo_config config = velo_default_config();
            config.flow_control = variant_.flow_control;
            config.slots_per_peer = 64;
            config.credit_slots = 2;
            config.piggyback = config.delay_credits = config.packet_trains = true;
            config.preposted_buffers = 6;
            config.initial_buffers = 2;
            config.growth_buffers = 1;
            config.credit_message_threshold = 5;
            config.rnr_timer_ns = 1;
            config.lazy_slots = 64;
            config.lazy_peers = 2;
            config.single_copy_mechanism = variant_.single_copy;
            config.backing_directory = backing_.c_str();
            config.spare_peers = 1;
            config.max_message_bytes = 64 * 1024;
            config.stall_warning = 10;
            config.trace = trace_.c_str();
            config.trace_limit_bytes = 400;  // the complaint about it is a line of the log
            config.report = "json";
            config.process_name = kNames[i];
            config.node_peers = &kNames[1 - i];
            config.node_peer_count = 1;
            config.context = this;
            config.message = [](void*, std::uint8_t, void*, std::size_t) {};
            config.fatal = [](void* context, velo_status, const char*) {
                static_cast<Scenario*>(context)->told_ = true;
            };
            config.log = [](void*, int, const char*) {};
            char error[512] = "";
            expect(call([&] { return velo_engine_open(&config, &ranks_[i].engine, error, sizeof error); }));
            if (told_) return;
        }
    }

    void connect() {
        for (std::size_t i = 0; i < 2 && !told_; ++i) {
            std::size_t bytes = 0;
            const void* address = velo_engine_address(ranks_[1 - i].engine, &bytes);
            EXPECT_TRUE(call([&] { return velo_address_is_here(address, bytes); }));
            char error[512] = "";
            std::uint32_t place = 0;
            Rank& rank = ranks_[i];
            expect(call(
                [&] { return velo_peer_expect(rank.engine, address, bytes, &place, error, sizeof error); }));
            if (told_) return;
            rank.peer = call([&] { return velo_peer_at(rank.engine, place); });
            if (told_) return;
            velo_peer* same = nullptr;
            expect(call(
                [&] { return velo_peer_connect(rank.engine, address, bytes, &same, error, sizeof error); }));
            EXPECT_TRUE(told_ || same == rank.peer);
        }
    }

    // More than there are credits for.
    void fill(Rank& rank) {
        for (velo_send& send : rank.sends) {
            send.part[0] = rank.out.data();
            send.bytes[0] = 14;
            send.part[1] = rank.out.data() + 14;
            send.bytes[1] = (&send - rank.sends.data()) * 150U;
            send.tag = 7;
            send.done = [](velo_send*, velo_status) {};
            if (told_) return;
            expect(call([&] { return velo_send_start(rank.engine, rank.peer, &send); }));
        }
    }

    void send() {
        for (Rank& rank : ranks_) fill(rank);
        settle();
        for (Rank& rank : ranks_) {
            if (told_) return;
            expect(
                call([&] { return velo_send_now(rank.peer, 7, rank.out.data(), 14, rank.out.data(), 500); }));
        }
        settle();
    }

    void transfer() {
        constexpr auto kDone = [](void*, velo_status, std::uint64_t) {};
        Rank& rank = ranks_[0];
        for (const std::size_t bytes : {std::size_t{100}, kLarge, kHuge}) {
            for (int again = 0; again < 3; ++again) {
                const auto there = reinterpret_cast<std::uint64_t>(ranks_[1].out.data());
                if (told_) return;
                expect(call([&] {
                    return velo_get(rank.engine, rank.peer, rank.in.data(), there, bytes, kDone, nullptr);
                }));
                if (told_) return;
                expect(call([&] {
                    return velo_put(rank.engine, rank.peer, rank.out.data(), there, bytes, kDone, nullptr);
                }));
                settle();
            }
        }
        if (told_) return;
        expect(call([&] {
            return velo_atomic_start(rank.engine, rank.peer, VELO_ATOMIC_ADD, 8,
                                     reinterpret_cast<std::uint64_t>(&ranks_[1].word), 1, 0, kDone, nullptr);
        }));
        settle();
    }

    void open_messengers() {
        // Four rendezvous under way at most; the rest is held back.
        constexpr velo_messenger_config kConfig{8192, 4096, 0, 2, false};
        for (Rank& rank : ranks_) {
            char error[512] = "";
            if (told_) return;
            expect(call([&] {
                return velo_messenger_open(rank.engine, &kConfig, &rank.messenger, error, sizeof error);
            }));
        }
        for (std::size_t i = 0; i < 2 && !told_; ++i) {
            std::size_t bytes = 0;
            const void* address = velo_messenger_address(ranks_[1 - i].messenger, &bytes);
            expect(call(
                [&] { return velo_messenger_connect(ranks_[i].messenger, ranks_[i].peer, address, bytes); }));
        }
    }

    void start(Rank& from, velo_peer* to, std::int32_t tag, std::size_t bytes,
               velo_send_mode mode = VELO_SEND_STANDARD) {
        velo_message_send& send = from.message_sends[from.sends_used++];
        send.done = [](velo_message_send*, velo_status) {};
        if (told_) return;
        expect(call([&] {
            return velo_message_start(from.messenger, to, 0, 0, tag, from.out.data(), bytes, mode, &send);
        }));
    }
    velo_message_receive& prepared(Rank& at, bool unpack = false) {
        velo_message_receive& receive = at.receives[at.receives_used++];
        receive.buffer = at.in.data();
        receive.capacity = at.in.size();
        if (unpack) receive.unpack = [](velo_message_receive*, const void*, std::size_t) {};
        receive.done = [](velo_message_receive*, velo_status) {};
        return receive;
    }
    void receive(Rank& at, std::int32_t tag, bool unpack = false) {
        velo_message_receive& receive = prepared(at, unpack);
        if (told_) return;
        expect(call(
            [&] { return velo_message_receive_start(at.messenger, 0, VELO_ANY_SOURCE, tag, &receive); }));
    }

    void exchange() {
        Rank &sender = ranks_[0], &receiver = ranks_[1];
        for (const bool first : {true, false}) {
            for (std::int32_t tag = 0; first && tag < 4; ++tag) receive(receiver, tag, tag == 3);
            start(sender, sender.peer, 0, 100);
            start(sender, sender.peer, 1, 100, VELO_SEND_SYNCHRONOUS);
            start(sender, sender.peer, 2, 9000);
            start(sender, sender.peer, 3, kLarge);
            settle();
            for (std::int32_t tag = 0; !first && tag < 4; ++tag) receive(receiver, tag, tag == 3);
            settle();
        }
        start(receiver, nullptr, 5, 100);
        start(receiver, nullptr, 5, 9000);
        receive(receiver, 5);
        receive(receiver, 5);
    }

    void hold_back() {
        Rank &sender = ranks_[0], &receiver = ranks_[1];
        for (std::int32_t tag = 10; tag < 20; ++tag) start(sender, sender.peer, tag, 9000);
        settle();
        receive(receiver, 18);
        settle();
        velo_message_receive& unmatched = prepared(receiver);
        if (told_) return;
        expect(call([&] { return velo_message_receive_start(receiver.messenger, 0, 0, 99, &unmatched); }));
        velo_message_receive& next = prepared(receiver);
        if (told_) return;
        expect(call([&] { return velo_message_receive_start(receiver.messenger, 0, 0, 99, &next); }));
        settle();
        fill(receiver);  // the next receive's question has to wait
        if (told_) return;
        const bool cancelled = call([&] { return velo_message_cancel(receiver.messenger, &unmatched); });
        EXPECT_TRUE(told_ || cancelled);
    }

    void look_at_what_is_held() {
        Rank& receiver = ranks_[1];
        velo_key key{};
        std::size_t bytes = 0;
        const velo_key held{0, VELO_ANY_SOURCE, 19};
        for (int i = 0; i < 2; ++i) {
            if (told_) return;
            (void)call([&] { return velo_message_probe(receiver.messenger, held, &key, &bytes); });
            settle();
        }
        const velo_key here{0, VELO_ANY_SOURCE, 10};
        if (told_) return;
        const velo_key unasked{0, VELO_ANY_SOURCE, 17};
        EXPECT_EQ(call([&] { return velo_message_take(receiver.messenger, unasked, &key, &bytes); }),
                  nullptr);
        if (told_) return;
        velo_message* message =
            call([&] { return velo_message_take(receiver.messenger, here, &key, &bytes); });
        if (told_) return;
        ASSERT_NE(message, nullptr);
        velo_message_receive& receive = prepared(receiver);
        expect(call([&] { return velo_message_receive_taken(receiver.messenger, message, &receive); }));
        settle();
        if (told_) return;
        call([&] { velo_message_forget(receiver.messenger, 0); });
        settle();
    }

    void watch() {
        for (Rank& rank : ranks_) {
            optional([&] { velo_dump(rank.engine, nullptr, 0); });
            velo_messenger_state state;
            call([&] { velo_messenger_observe(rank.messenger, &state); });
            for (unsigned index = 0; velo_counter_at(index) != nullptr; ++index)
                call([&] { return velo_counter_value(rank.engine, index); });
            optional([&] { velo_engine_abandon(rank.engine); });
        }
        for (int i = 0; i < 3000 && !told_; ++i) call([&] { return velo_progress(ranks_[0].engine); });
    }

    const Variant& variant_;
    const std::string backing_, trace_;
    std::array<Rank, 2> ranks_;
    bool told_ = false, harmless_ = false, finished_ = false;
};

const Variant kVariants[] = {{"dynamic", "dynamic", "auto", false},
                             {"dynamic_from_then_on", "dynamic", "auto", true},
                             {"lazy_by_mailbox", "lazy", "copy", false},
                             {"lazy_by_mailbox_from_then_on", "lazy", "copy", true},
                             {"rnr_by_mailbox", "rnr", "copy", true}};

class AllocationTest : public ::testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(Each, AllocationTest, ::testing::ValuesIn(kVariants),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(AllocationTest, that_fails_is_told_and_leaves_nothing) {
    const TemporaryDirectory backing, trace;
    const std::size_t files = entries_of("/proc/self/fd");
    std::uint64_t allocations = 0;
    for (bool failed = true; failed && !HasFailure(); ++allocations) {
        SCOPED_TRACE("allocation " + std::to_string(allocations));
        auto scenario = std::make_unique<Scenario>(GetParam(), backing.path(), trace.path());
        faults = {};
        faults.allocations_left = allocations;
        faults.all_later_fail = GetParam().all_later_fail;
        std::optional<Silence> silence(std::in_place);
        try {
            scenario->run();
        } catch (const std::exception& thrown) {
            faults.counting = false;
            ADD_FAILURE() << "went through the C interface: " << thrown.what();
        }
        EXPECT_TRUE(faults.failed == 0 || scenario->told() || scenario->harmless());
        EXPECT_TRUE(scenario->told() || scenario->finished());
        scenario.reset();
        faults.counting = false;
        silence.reset();
        EXPECT_EQ(entries_of(backing.path()), 0U);
        EXPECT_EQ(mapped_of(backing.path()), 0U);
        EXPECT_EQ(entries_of("/proc/self/fd"), files);
        failed = faults.failed > 0;
    }
    EXPECT_GT(allocations, 200U) << "the scenario does something";
    RecordProperty("allocations", std::to_string(allocations));
}

}  // namespace
}  // namespace velo::test
