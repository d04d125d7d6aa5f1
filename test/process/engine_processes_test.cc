// Engines in real processes: what one leaves behind when it is killed, and what its peers see of it.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <string>

#include "../shared/temporary_directory.h"
#include "api/velo.h"
#include "fabric/shm/segment.h"
#include "rma/share.h"

namespace velo {
namespace {

constexpr std::size_t kAddressRoom = 512;
// As many as there are credits for requests for help, at least.
constexpr std::uint32_t kGets = 6;
constexpr unsigned kMostProcesses = 3;

// What the processes of a test share besides the engines.
struct Board {
    struct Entry {
        std::atomic<std::uint32_t> bytes;
        char address[kAddressRoom];
        std::atomic<std::uint32_t> mark, stopped;
    } entries[kMostProcesses];
};

// Numbered from 0: whether they are the bytes of that message.
void fill(char* data, std::size_t bytes, std::uint64_t number) {
    std::memcpy(data, &number, sizeof number);
    for (std::size_t i = sizeof number; i < bytes; ++i) data[i] = static_cast<char>(number * 31 + i * 7);
}

// A child that does not outlive a test that is killed.
pid_t fork_child() {
    const pid_t child = fork();
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

class ProcessTest : public ::testing::Test {
 protected:
    ProcessTest() {
        void* memory =
            mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        board_ = new (memory) Board{};
    }
    ~ProcessTest() override { munmap(board_, sizeof(Board)); }

    // The processes share few cores with each other: whoever has nothing to do steps aside.
    static void progress(velo_engine* engine) {
        if (velo_progress(engine) == 0) sched_yield();
    }

    static inline std::string last_line_;  // of the log
    struct Side {
        velo_engine* engine = nullptr;
        velo_peer* peer = nullptr;           // the first other one
        velo_peer* peers[kMostProcesses]{};  // by rank
        std::uint64_t received = 0;
        std::size_t bytes = 300;              // of each message
        std::uint64_t stops_at = UINT64_MAX;  // in the middle of this message, and says so
        std::atomic<std::uint32_t>* stopped = nullptr;
        bool broken = false;
    };
    struct Options {
        bool limic = false;
        unsigned size = 2;
        const char* by_reference = "auto";
        std::size_t outbox = std::size_t{1} << 18;
    };

    void open(Side& side, unsigned rank) { open(side, rank, Options{}); }
    void open(Side& side, unsigned rank, const Options& options) {
        std::uint64_t others[kMostProcesses];
        for (unsigned i = 1; i < options.size; ++i) others[i - 1] = i - 1 < rank ? i - 1 : i;
        velo_config config = velo_default_config();
        config.flow_control = "dynamic";
        config.slots_per_peer = 8;
        config.credit_slots = 2;
        config.piggyback = true;
        config.single_copy_mechanism = "auto";
        config.backing_directory = directory_.c_str();
        config.max_message_bytes = 4096;
        config.process_name = rank;
        config.by_reference = options.by_reference;
        config.outbox = options.outbox;
        config.routes = "staged 67108864";
        (options.limic ? config.limic_peers : config.node_peers) = others;
        (options.limic ? config.limic_peer_count : config.node_peer_count) = options.size - 1;
        config.context = &side;
        config.message = [](void* context, std::uint8_t, void* data, std::size_t bytes) {
            auto* self = static_cast<Side*>(context);
            while (self->received == self->stops_at) {
                self->stopped->store(1, std::memory_order_release);
                pause();
            }
            char expected[4096];
            fill(expected, self->bytes, self->received++);
            if (bytes != self->bytes || std::memcmp(data, expected, bytes) != 0) self->broken = true;
        };
        config.fatal = [](void* context, velo_status, const char*) {
            static_cast<Side*>(context)->broken = true;
        };
        config.log = [](void*, int, const char* text) { last_line_ = text; };
        char error[512] = "";
        if (velo_engine_open(&config, &side.engine, error, sizeof error) != VELO_OK) die(error);

        std::size_t bytes = 0;
        const void* address = velo_engine_address(side.engine, &bytes);
        std::memcpy(board_->entries[rank].address, address, bytes);
        board_->entries[rank].bytes.store(static_cast<std::uint32_t>(bytes), std::memory_order_release);
        for (unsigned i = 1; i < options.size; ++i) {
            const std::uint64_t other = others[i - 1];
            while (board_->entries[other].bytes.load(std::memory_order_acquire) == 0) usleep(100);
            if (velo_peer_connect(side.engine, board_->entries[other].address, bytes, &side.peers[other],
                                  error, sizeof error) != VELO_OK) {
                die(error);
            }
        }
        side.peer = side.peers[others[0]];
        board_->entries[rank].mark.store(1, std::memory_order_release);
        for (unsigned i = 1; i < options.size; ++i)
            while (board_->entries[others[i - 1]].mark.load(std::memory_order_acquire) == 0) usleep(100);
    }
    static std::uint64_t counter(velo_engine* engine, const char* name) {
        unsigned index = 0;
        while (std::strcmp(velo_counter_at(index)->name, name) != 0) ++index;
        return velo_counter_value(engine, index);
    }
    // Alone or in a batch.
    static std::uint64_t referred(velo_engine* engine) {
        return counter(engine, "messages_by_reference") + counter(engine, "batched_messages");
    }
    // Until it has left.
    static void send(Side& side, velo_peer* to, std::uint64_t number, std::size_t bytes) {
        static bool sent;
        char data[4096];
        fill(data, bytes, number);
        velo_send send{};
        send.part[0] = data;
        send.bytes[0] = bytes;
        send.done = [](velo_send*, velo_status) { sent = true; };
        sent = velo_send_start(side.engine, to, &send) != VELO_QUEUED;  // to one that was killed: an error
        while (!sent) progress(side.engine);
    }

    [[noreturn]] static void die(const char* text) {
        std::fprintf(stderr, "%s\n", text);
        _exit(2);
    }

    // A child that sends numbered messages, as fast as credits allow, until it is killed or has sent `count`.
    pid_t start_sender(std::uint64_t count) {
        pid_t child = fork_child();
        if (child != 0) return child;
        Side side;
        open(side, 1);
        for (std::uint64_t number = 0; number < count; ++number) {
            send(side, side.peer, number, side.bytes);
            board_->entries[1].mark.store(static_cast<std::uint32_t>(number) + 2, std::memory_order_release);
        }
        velo_engine_close(side.engine);
        _exit(side.broken ? 1 : 0);
    }

    std::size_t files_left() const { return test::entries_of(directory_); }

    Board* board_;
    test::TemporaryDirectory temporary_;
    const std::string& directory_ = temporary_.path();
};

TEST_F(ProcessTest, two_processes_exchange_a_stream_and_leave_nothing) {
    constexpr std::uint64_t kCount = 20'000;
    pid_t sender = start_sender(kCount);
    Side side;
    open(side, 0);
    while (side.received < kCount && !side.broken) progress(side.engine);
    EXPECT_EQ(side.received, kCount);
    EXPECT_FALSE(side.broken);
    int status = 0;
    waitpid(sender, &status, 0);
    EXPECT_EQ(status, 0);
    velo_engine_close(side.engine);
    EXPECT_EQ(files_left(), 0U);
}

TEST_F(ProcessTest, a_sender_killed_in_the_middle_leaves_whole_messages_and_no_file) {
    for (std::uint32_t moment : {1U, 40U, 900U}) {
        *board_->entries[0].address = *board_->entries[1].address = 0;
        for (auto& entry : board_->entries) {
            entry.bytes.store(0);
            entry.mark.store(0);
        }
        pid_t sender = start_sender(~std::uint64_t{0});
        Side side;
        open(side, 0);
        while (board_->entries[1].mark.load(std::memory_order_acquire) < moment) progress(side.engine);
        kill(sender, SIGKILL);
        int status = 0;
        waitpid(sender, &status, 0);
        for (int i = 0; i < 10'000; ++i) progress(side.engine);
        EXPECT_FALSE(side.broken);
        EXPECT_GE(side.received + 1, moment - 1);
        velo_engine_close(side.engine);
        EXPECT_EQ(files_left(), 0U);
    }
}

// Between reserving and storing: a hole in the ring, behind which nothing is seen any more. The job ends
// then, but nobody reads what was not written, waits or crashes before.
TEST_F(ProcessTest, a_sender_killed_with_slots_reserved_but_not_stored_leaves_nothing_to_read) {
    pid_t sender = fork_child();
    if (sender == 0) {
        Side side;
        open(side, 1);
        fabric::shm::Address address;
        std::memcpy(&address, board_->entries[0].address, sizeof address);
        auto segment = fabric::shm::Segment::attach(address);
        auto writer = segment.writer();
        const mailbox::Cursor at = writer.reserve(2);
        std::memset(writer.payload(at), 0xff, wire::kPayloadBytes);
        raise(SIGKILL);
    }
    Side side;
    open(side, 0);
    int status = 0;
    waitpid(sender, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    int handled = 0;
    for (int i = 0; i < 10'000; ++i) handled += velo_progress(side.engine);
    EXPECT_EQ(handled, 0);
    EXPECT_EQ(side.received, 0U);
    EXPECT_FALSE(side.broken);
    velo_engine_close(side.engine);
    EXPECT_EQ(files_left(), 0U);
}

// Its segment lives as long as a mapping.
TEST_F(ProcessTest, what_a_killed_sender_has_left_in_its_outbox_is_read) {
    constexpr std::size_t kBytes = 2000;
    constexpr std::uint64_t kCount = 2;  // credits that a sender has to begin with
    pid_t sender = fork_child();
    if (sender == 0) {
        Side side;
        open(side, 1, {.by_reference = "always"});
        for (std::uint64_t number = 0; number < kCount; ++number) send(side, side.peer, number, kBytes);
        if (referred(side.engine) != kCount) die("the messages did not go by reference");
        raise(SIGKILL);
    }
    Side side;
    side.bytes = kBytes;
    open(side, 0, {.by_reference = "always"});
    int status = 0;
    waitpid(sender, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    for (int i = 0; i < 10'000; ++i) progress(side.engine);
    EXPECT_EQ(side.received, kCount);
    EXPECT_FALSE(side.broken);
    velo_engine_close(side.engine);
    EXPECT_EQ(files_left(), 0U);
}

// Whether the readers are peers by the LiMIC-like path.
class ReaderTest : public ProcessTest, public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(EitherWay, ReaderTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "limic" : "velo"; });

// The one chunk that there is comes back; meanwhile, what is sent to the other one goes in packets.
TEST_P(ReaderTest, a_reader_killed_while_it_reads_gives_its_chunk_back_and_the_others_go_on) {
    constexpr std::size_t kBytes = 2000;
    constexpr std::uint64_t kBefore = 20, kAfter = 20;
    const Options options{.limic = GetParam(), .size = 3, .by_reference = "always", .outbox = 2304};
    pid_t readers[2];
    for (unsigned rank : {1U, 2U}) {
        readers[rank - 1] = fork_child();
        if (readers[rank - 1] != 0) continue;
        Side side;
        side.bytes = kBytes;
        if (rank == 1) side.stops_at = 0;
        side.stopped = &board_->entries[rank].stopped;
        open(side, rank, options);
        while (side.received < kBefore + kAfter && !side.broken) {
            progress(side.engine);
            board_->entries[rank].mark.store(static_cast<std::uint32_t>(side.received) + 1,
                                             std::memory_order_release);
        }
        velo_engine_close(side.engine);
        _exit(side.broken ? 1 : 0);
    }
    Side side;
    open(side, 0, options);
    const auto send_and_wait = [&](std::uint64_t number) {
        send(side, side.peers[2], number, kBytes);
        while (board_->entries[2].mark.load(std::memory_order_acquire) < number + 2) progress(side.engine);
    };
    send(side, side.peers[1], 0, kBytes);
    while (board_->entries[1].stopped.load(std::memory_order_acquire) == 0) progress(side.engine);
    for (std::uint64_t number = 0; number < kBefore; ++number) send_and_wait(number);
    EXPECT_EQ(referred(side.engine), 1U);
    kill(readers[0], SIGKILL);
    int status = 0;
    waitpid(readers[0], &status, 0);
    // The peers are looked at in turn, a millisecond apart.
    usleep(20'000);
    for (int i = 0; i < 20'000; ++i) progress(side.engine);
    send(side, side.peers[1], 1, kBytes);  // nor is it allocated to the dead again
    for (std::uint64_t number = kBefore; number < kBefore + kAfter; ++number) send_and_wait(number);
    EXPECT_EQ(referred(side.engine), 1 + kAfter);
    waitpid(readers[1], &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(side.broken);
    velo_engine_close(side.engine);
    EXPECT_EQ(files_left(), 0U);
}

// Whether the helper is a peer by the LiMIC-like path.
class HelperTest : public ProcessTest, public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(EitherWay, HelperTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "limic" : "velo"; });

// Its part of a get is claimed and will never be there.
TEST_P(HelperTest, a_get_ends_with_an_error_when_its_helper_is_killed_in_the_middle_of_its_part) {
    constexpr std::size_t kBytes = std::size_t{128} << 20;  // so large that both copy, always
    void* source =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pid_t helper = fork_child();
    if (helper == 0) {
        Side side;
        open(side, 1, {.limic = GetParam()});
        fabric::shm::Address address;
        std::memcpy(&address, board_->entries[0].address, sizeof address);
        auto segment = fabric::shm::Segment::attach(address);
        // Whichever get of the other one it sees first: the next ones have the next generations.
        for (std::uint32_t generation = 1;; generation = generation % kGets + 1) {
            if (rma::Share(segment.header().shares, generation, kBytes).claim_back()) raise(SIGKILL);
        }
    }
    Side side;
    open(side, 0, {.limic = GetParam()});
    void* target =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct Outcome {
        int calls = 0;
        velo_status status = VELO_OK;
    } outcome;
    for (unsigned get = 0; get < kGets && outcome.status == VELO_OK; ++get) {
        outcome.calls = 0;
        const velo_status started = velo_get(
            side.engine, side.peer, target, reinterpret_cast<std::uint64_t>(source), kBytes,
            [](void* argument, velo_status status, std::uint64_t) {
                *static_cast<Outcome*>(argument) = {static_cast<Outcome*>(argument)->calls + 1, status};
            },
            &outcome);
        if (started < VELO_OK) break;
        for (int i = 0; i < 1'000'000 && outcome.calls == 0; ++i) progress(side.engine);
        ASSERT_EQ(outcome.calls, 1) << "of get " << get;
    }
    if (outcome.status == VELO_OK) kill(helper, SIGKILL);
    int status = 0;
    waitpid(helper, &status, 0);
    EXPECT_EQ(outcome.status, VELO_ERR_REMOTE);
    EXPECT_FALSE(side.broken);
    velo_engine_close(side.engine);
    munmap(source, kBytes);
    munmap(target, kBytes);
}

// What is not there is looked for in its memory, and that is gone too.
TEST_F(ProcessTest, a_get_ends_with_an_error_when_its_peer_is_killed_in_the_middle_of_a_deposit) {
    constexpr std::size_t kBytes = 10'000'000;  // more than there is room for
    std::vector<std::byte> source(kBytes, std::byte{7}), target(kBytes);
    std::atomic<std::uint32_t>& told = board_->entries[1].stopped;
    const pid_t owner = fork_child();
    if (owner == 0) {
        Side side;
        open(side, 1);
        const std::uint64_t deposit = velo_deposit_begin(side.peer, source.data(), kBytes);
        velo_deposit_store(side.peer, deposit);
        told.store(VELO_DEPOSIT_NUMBER(deposit), std::memory_order_release);
        for (;;) pause();
    }
    Side side;
    open(side, 0);
    fabric::shm::Address address;
    std::memcpy(&address, board_->entries[1].address, sizeof address);
    const std::size_t stored = fabric::shm::Segment::attach(address).deposit_plan().bytes();
    while (told.load(std::memory_order_acquire) == 0) usleep(100);
    kill(owner, SIGKILL);
    waitpid(owner, nullptr, 0);
    velo_status outcome = VELO_QUEUED;
    const velo_status started = velo_get_deposited(
        side.engine, side.peer, told.load(), target.data(), reinterpret_cast<std::uint64_t>(source.data()),
        kBytes,
        [](void* result, velo_status status, std::uint64_t) { *static_cast<velo_status*>(result) = status; },
        &outcome);
    if (started < VELO_OK) outcome = started;
    for (int i = 0; i < 1'000'000 && outcome == VELO_QUEUED; ++i) progress(side.engine);
    EXPECT_EQ(outcome, VELO_ERR_REMOTE);
    EXPECT_NE(last_line_.find("has ended without MPI_Finalize, as if killed: "), std::string::npos)
        << last_line_;
    EXPECT_EQ(std::count(target.begin(), target.end(), std::byte{7}), static_cast<std::ptrdiff_t>(stored));
    velo_engine_close(side.engine);
}

TEST_F(ProcessTest, both_killed_at_once_leave_no_file) {
    pid_t receiver = fork_child();
    if (receiver == 0) {
        Side side;
        open(side, 0);
        for (;;) progress(side.engine);
    }
    pid_t sender = start_sender(~std::uint64_t{0});
    while (board_->entries[1].mark.load(std::memory_order_acquire) < 100) usleep(100);
    for (pid_t process : {sender, receiver}) kill(process, SIGKILL);
    for (pid_t process : {sender, receiver}) waitpid(process, nullptr, 0);
    EXPECT_EQ(files_left(), 0U);
}

}  // namespace
}  // namespace velo
