// Peers that end while others go on: what they held is free again, and so is the place of a process of
// another job.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "engine_party.h"
#include "messenger_party.h"

namespace {

pid_t ends_when_opened;  // the process of which some shared memory is

void kill_and_wait(pid_t process) {
    EXPECT_EQ(kill(process, SIGKILL), 0);
    EXPECT_EQ(waitpid(process, nullptr, 0), process);
}

}  // namespace

// In place of the C library's, for the calls of the engine in this program, which opens files of others below /proc.
extern "C" int openat(int directory, const char* path, int flags, ...) {
    static const auto next =
        reinterpret_cast<int (*)(int, const char*, int, ...)>(dlsym(RTLD_NEXT, "openat"));
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    const std::string files = std::to_string(ends_when_opened) + "/fd/";
    if (ends_when_opened != 0 && std::string_view(path).starts_with(files))
        kill_and_wait(std::exchange(ends_when_opened, 0));
    return next(directory, path, flags, mode);
}

namespace velo::test {
namespace {

constexpr std::size_t kGuest = 2;  // among the peers of the hosts: what comes after their own two

PartyConfig hosts(const std::string& policy) {
    PartyConfig config;
    config.flow_control = policy.c_str();
    config.spare_peers = 1;
    return config;
}

// A process of another job that has met the first host.
class Guest {
 public:
    Guest(Party& party, const std::string& policy, std::uint64_t name, bool is_known = true)
        : party_(party), job_(config_of(policy, name)) {
        party_[0].peers.resize(kGuest + 1);
        if (is_known) party_[0].peers[kGuest] = meet(party_[0], member());
        member().peers[0] = meet(member(), party_[0]);
    }
    Member& member() { return job_[0]; }
    velo_status tell(std::string contents) { return job_.send(0, 0, 1, std::move(contents)); }
    // As much as goes at once, so that nothing is left behind.
    int tell_all_that_goes() {
        int told = 0;
        while (told < 20 && velo_send_now(member().peers[0], 1, "more", 4, nullptr, 0) == VELO_OK) ++told;
        return told;
    }
    void settle() {
        for (int idle = 0; idle < 3;) idle = party_.step() + job_.step() == 0 ? idle + 1 : 0;
    }
    void end() { velo_engine_close(std::exchange(member().engine, nullptr)); }

 private:
    static PartyConfig config_of(const std::string& policy, std::uint64_t name) {
        PartyConfig config = hosts(policy);
        config.size = 1;
        config.first_name = name;
        return config;
    }
    Party& party_;
    Party job_;
};

template <typename Condition>
bool comes_true(Party& party, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < deadline) party.step();
    return condition();
}

class DepartingTest : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(EveryPolicy, DepartingTest, ::testing::ValuesIn(policies()),
                         [](const auto& info) { return info.param; });

TEST_P(DepartingTest, one_place_serves_any_number_of_processes_one_after_the_other) {
    Party party(hosts(GetParam()));
    const std::size_t mapped = mapped_segments();
    std::size_t first_queued = 0;
    for (std::uint64_t round = 1; round <= 40; ++round) {
        SCOPED_TRACE(round);
        Guest guest(party, GetParam(), 1000 + round);
        const std::size_t queued_before = party.queued();
        for (unsigned i = 0; i < 8; ++i) {
            guest.tell(pattern(300, i));
            party.send(0, kGuest, 1, pattern(300, i));
        }
        // The next one finds what the first one did.
        const std::size_t queued = party.queued() - queued_before;
        if (round == 1) first_queued = queued;
        ASSERT_EQ(queued, first_queued);
        guest.settle();
        ASSERT_EQ(guest.member().received.size(), 8U);
        ASSERT_EQ(party[0].received.size(), 8U);
        // Ends with messages under way in both directions, and some that wait.
        for (unsigned i = 0; i < 30; ++i) party.send(0, kGuest, 1, pattern(300, i));
        const auto more = static_cast<std::size_t>(guest.tell_all_that_goes());
        guest.end();
        ASSERT_TRUE(comes_true(party, [&] { return party[0].gone.size() == round; }));
        EXPECT_EQ(party[0].gone.back(), 1000 + round);
        EXPECT_EQ(party[0].received.size(), 8 + more) << "what it has sent comes in any case";
        ASSERT_TRUE(comes_true(party, [&] { return party.queued() == party.completed(); }));
        party[0].received.clear();
        // The hosts have each other as before.
        party.send(1, 0, 1, pattern(500, 3));
        ASSERT_TRUE(comes_true(party, [&] { return party[0].received.size() == 1; }));
        party[0].received.clear();
        ASSERT_TRUE(comes_true(party, [&] { return mapped_segments() <= mapped + 2; }))
            << "its memory is given back";
    }
    EXPECT_TRUE(party[0].fatal.empty()) << party[0].fatal.front();
}

TEST_P(DepartingTest, what_the_next_process_sent_by_reference_is_not_taken_for_read_as_the_last_ones_was) {
    constexpr unsigned kOfTheLast = 5, kRead = 3, kUnread = 12;
    PartyConfig config = hosts(GetParam());
    Party party(config);
    Guest last(party, GetParam(), 1001);
    for (unsigned i = 0; i < kOfTheLast; ++i) {
        last.tell(pattern(1000, i));
        last.settle();
    }
    last.end();
    ASSERT_TRUE(comes_true(party, [&] { return party[0].gone.size() == 1; }));
    party[0].received.clear();
    Guest next(party, GetParam(), 1002);
    for (unsigned i = 0; i < kRead; ++i) {
        next.tell(pattern(1000, i));
        next.settle();
    }
    party.send(0, kGuest, 1, pattern(1000, 9));  // tells how many have been read
    next.settle();
    for (unsigned i = 0; i < kUnread; ++i) next.tell(pattern(1000, 20 + i));
    next.settle();
    ASSERT_TRUE(party[0].fatal.empty()) << party[0].fatal.front();
    ASSERT_EQ(party[0].received.size(), kRead + kUnread);
    for (unsigned i = 0; i < kUnread; ++i)
        EXPECT_TRUE(party[0].received[kRead + i].data == pattern(1000, 20 + i)) << i;
}

TEST_P(DepartingTest, what_is_sent_to_a_process_that_is_gone_is_lost_and_its_memory_out_of_reach) {
    Party party(hosts(GetParam()));
    Guest guest(party, GetParam(), 1001);
    guest.tell("hello");
    guest.settle();
    guest.end();
    ASSERT_TRUE(comes_true(party, [&] { return !party[0].gone.empty(); }));
    Guest next(party, GetParam(), 1002);

    party[0].peers[kGuest] = velo_peer_nobody(party[0].engine);
    for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(party.send(0, kGuest, 1, pattern(700, i)), VELO_OK);
    std::uint64_t word = 0;
    const auto done = [](void*, velo_status, std::uint64_t) { ADD_FAILURE() << "there is nobody"; };
    const auto address = reinterpret_cast<std::uint64_t>(&word);
    velo_peer* nobody = party[0].peers[kGuest];
    EXPECT_EQ(velo_get(party[0].engine, nobody, &word, address, 8, done, nullptr), VELO_ERR_REMOTE);
    EXPECT_EQ(velo_atomic_start(party[0].engine, nobody, VELO_ATOMIC_ADD, 8, address, 1, 0, done, nullptr),
              VELO_ERR_REMOTE);

    next.settle();
    EXPECT_TRUE(next.member().received.empty());
    EXPECT_TRUE(party[0].fatal.empty());
}

// Without having closed, while it waits for an answer and is waited for.
TEST_P(DepartingTest, a_process_that_is_killed_is_noticed_and_its_place_serves_the_next) {
    Party party(hosts(GetParam()));
    for (std::size_t round = 1; round <= 4; ++round) {
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        const pid_t pid = fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) {
            Guest guest(party, GetParam(), 1000 + round, false);
            guest.tell(pattern(300, 1));
            std::size_t bytes = 0;
            const void* address = velo_engine_address(guest.member().engine, &bytes);
            if (write(ends[1], address, bytes) != static_cast<ssize_t>(bytes)) _exit(1);
            for (;;) velo_progress(guest.member().engine);
        }
        char address[1024];
        const ssize_t bytes = read(ends[0], address, sizeof address);
        ASSERT_GT(bytes, 0);
        party[0].peers.resize(kGuest + 1);
        char error[512] = "";
        ASSERT_EQ(velo_peer_connect(party[0].engine, address, static_cast<std::size_t>(bytes),
                                    &party[0].peers[kGuest], error, sizeof error),
                  VELO_OK)
            << error;
        party.send(0, kGuest, 1, pattern(300, 2));
        EXPECT_TRUE(comes_true(party, [&] { return party[0].received.size() == round; }));
        kill_and_wait(pid);
        close(ends[0]);
        close(ends[1]);
        for (unsigned i = 0; i < 50; ++i) party.send(0, kGuest, 1, pattern(300, i));
        ASSERT_TRUE(comes_true(party, [&] { return party[0].gone.size() == round; }));
        ASSERT_TRUE(comes_true(party, [&] { return party.queued() == party.completed(); }));
    }
    EXPECT_TRUE(party[0].fatal.empty()) << party[0].fatal.front();
}

// It was alive when that was looked at.
TEST_P(DepartingTest, a_process_that_ends_while_its_mailbox_is_opened_for_an_answer_is_one_that_has_ended) {
    constexpr unsigned kMessages = 200;
    Party party(hosts(GetParam()));
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        Guest guest(party, GetParam(), 1001, false);
        for (unsigned i = 0; i < kMessages; ++i) guest.tell(pattern(300, i));
        for (;;) velo_progress(guest.member().engine);
    }
    ends_when_opened = pid;
    EXPECT_TRUE(
        comes_true(party, [&] { return ends_when_opened == 0 || party[0].received.size() == kMessages; }));
    const bool answers = GetParam() != "none" && GetParam() != "rnr";
    EXPECT_EQ(ends_when_opened == 0, answers);
    if (std::exchange(ends_when_opened, 0) != 0) kill_and_wait(pid);
    EXPECT_TRUE(comes_true(party, [&] { return party[0].gone.size() == 1; }));
    EXPECT_TRUE(party[0].fatal.empty()) << party[0].fatal.front();

    Guest next(party, GetParam(), 1002);
    party[0].received.clear();
    next.tell("hello");
    next.settle();
    EXPECT_EQ(party[0].received.size(), 1U);
}

// A process with a messenger, and what it does with the messenger of another one.
struct Speaker {
    Speaker(Member& on, Member& other) : Speaker(on, meet(on, other)) {}
    // To whom this one has never spoken, if nullptr.
    Speaker(Member& on, velo_peer* to) : member(on), peer(to) {
        const velo_messenger_config config{.eager_limit = 1000,
                                           .unexpected_pool = 1 << 20,
                                           .header_pool = 1 << 16,
                                           .sharers = 4,
                                           .everywhere = false};
        char error[512] = "";
        EXPECT_EQ(velo_messenger_open(on.engine, &config, &messenger, error, sizeof error), VELO_OK) << error;
    }
    ~Speaker() { velo_messenger_close(messenger); }
    void connect(const Speaker& other) {
        std::size_t bytes = 0;
        const void* address = velo_messenger_address(other.messenger, &bytes);
        EXPECT_EQ(velo_messenger_connect(messenger, peer, address, bytes), VELO_OK);
    }
    void send(Transfer& transfer, const std::string& data, std::int32_t tag) {
        transfer.data = data;
        transfer.send.done = [](velo_message_send* send, velo_status status) {
            auto* self = reinterpret_cast<Transfer*>(send);
            self->done = true;
            self->status = status;
        };
        transfer.status = velo_message_start(messenger, peer, 0, 0, tag, transfer.data.data(),
                                             transfer.data.size(), VELO_SEND_STANDARD, &transfer.send);
        transfer.done = transfer.status == VELO_OK;
    }
    void receive(Transfer& transfer, std::int32_t tag) {
        transfer.data.assign(10'000, '\0');
        transfer.receive.buffer = transfer.data.data();
        transfer.receive.capacity = transfer.data.size();
        transfer.receive.done = [](velo_message_receive* receive, velo_status status) {
            auto* self =
                reinterpret_cast<Transfer*>(reinterpret_cast<char*>(receive) - offsetof(Transfer, receive));
            self->done = true;
            self->status = status;
        };
        EXPECT_EQ(velo_message_receive_start(messenger, 0, VELO_ANY_SOURCE, tag, &transfer.receive), VELO_OK);
    }

    Member& member;
    velo_peer* peer;
    velo_messenger* messenger = nullptr;
};

TEST_P(DepartingTest, messages_that_nobody_has_received_yet_stay_those_of_the_process_that_sent_them) {
    Party party(hosts(GetParam()));
    std::unique_ptr<Speaker> host;
    Transfer lost[3], unanswered[3];
    for (int round = 0; round < 3; ++round) {
        SCOPED_TRACE(round);
        Guest guest(party, GetParam(), 1000 + static_cast<std::uint64_t>(round));
        if (host == nullptr) host = std::make_unique<Speaker>(party[0], guest.member());
        Speaker speaker(guest.member(), party[0]);
        host->peer = party[0].peers[kGuest];
        host->connect(speaker);
        speaker.connect(*host);
        // One that is sent at once and one whose data waits at its sender, both before their receives.
        Transfer small, large, small_there, large_there;
        speaker.send(small, pattern(900, 1), 1);
        speaker.send(large, pattern(5000, 2), 2);
        guest.settle();
        host->receive(small_there, 1);
        host->receive(large_there, 2);
        guest.settle();
        for (Transfer* transfer : {&small, &large, &small_there, &large_there})
            EXPECT_TRUE(transfer->done && transfer->status == VELO_OK);
        EXPECT_EQ(small_there.text(), pattern(900, 1));
        EXPECT_EQ(large_there.text(), pattern(5000, 2));
        // Of the last ones nobody hears but the next guest's host.
        speaker.send(lost[round], pattern(800, 3), 3);
        host->send(unanswered[round], pattern(5000, 4), 4);
        EXPECT_FALSE(unanswered[round].done);
        guest.settle();
        velo_messenger_close(std::exchange(speaker.messenger, nullptr));
        guest.end();
        ASSERT_TRUE(comes_true(party, [&] { return unanswered[round].done; }));
        EXPECT_EQ(unanswered[round].status, VELO_ERR_REMOTE);
        ASSERT_TRUE(
            comes_true(party, [&] { return party[0].gone.size() == 1U + static_cast<unsigned>(round); }));
    }
    for (Transfer& each : lost) {
        Transfer late;
        host->receive(late, 3);
        EXPECT_TRUE(late.done && late.status == VELO_OK);
        EXPECT_EQ(late.text(), each.data);
    }
    EXPECT_TRUE(party[0].fatal.empty()) << party[0].fatal.front();
}

TEST_P(DepartingTest, what_a_process_that_was_never_met_sent_before_it_ended_is_received) {
    Party party(hosts(GetParam()));
    Guest guest(party, GetParam(), 1001, false);
    Speaker host(party[0], nullptr);
    Speaker speaker(guest.member(), party[0]);
    speaker.connect(host);
    Transfer sent, received;
    // Under lazy nothing leaves without an answer, for which the host has to meet the guest.
    if (GetParam() == "lazy") guest.tell("a first message");
    guest.settle();
    speaker.send(sent, pattern(100, 1), 1);
    ASSERT_TRUE(sent.done);
    velo_messenger_close(std::exchange(speaker.messenger, nullptr));
    guest.end();
    host.receive(received, 1);
    EXPECT_TRUE(comes_true(party, [&] { return received.done; }));
    EXPECT_EQ(received.text(), pattern(100, 1));
    EXPECT_TRUE(comes_true(party, [&] { return party[0].gone.size() == 1; }));
    EXPECT_TRUE(party[0].fatal.empty()) << party[0].fatal.front();
}

// Peers of the own job keep their places. What they held does not stay with them.
TEST_P(DepartingTest, peers_that_have_ended_leave_their_slots_to_those_that_go_on) {
    std::size_t delayed[2];
    for (bool they_were_busy : {false, true}) {
        PartyConfig config;
        config.size = 6;
        config.slots_per_peer = 40;
        config.lazy_slots = 100;
        config.lazy_peers = 6;
        config.preposted_buffers = 40;
        config.flow_control = GetParam().c_str();
        Party party(config);
        for (unsigned i = 0; they_were_busy && i < 100; ++i) {
            for (std::size_t from = 1; from <= 4; ++from) party.send(from, 0, 1, pattern(300, i));
            party.settle();
        }
        for (std::size_t gone = 1; gone <= 4; ++gone)
            velo_engine_close(std::exchange(party[gone].engine, nullptr));
        for (int i = 0; i < 40'000; ++i) velo_progress(party[0].engine);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        for (int i = 0; i < 400'000; ++i) velo_progress(party[0].engine);
        const std::size_t before = party.queued();
        for (unsigned i = 0; i < 2000; ++i) {
            party.send(5, 0, 1, pattern(300, i));
            if (i % 6 == 0) {
                velo_progress(party[0].engine);
                velo_progress(party[5].engine);
            }
        }
        delayed[they_were_busy] = party.queued() - before;
        while (party.queued() != party.completed())
            velo_progress(party[0].engine), velo_progress(party[5].engine);
        EXPECT_TRUE(party[0].fatal.empty());
    }
    EXPECT_LE(delayed[1], delayed[0] + delayed[0] / 10 + 20);
    RecordProperty("delayed", std::to_string(delayed[0]) + " " + std::to_string(delayed[1]));
}

}  // namespace
}  // namespace velo::test
