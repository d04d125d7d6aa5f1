// XPMEM on a stand-in for its library and kernel module: the windows that are kept, refusals, and transfers
// of whole engines.
#include "singlecopy/xpmem/xpmem.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine_party.h"
#include "fake_xpmem.h"
#include "platform/failure.h"
#include "singlecopy/mechanisms.h"
#include "singlecopy/xpmem/windows.h"

namespace velo::test {
namespace {

using singlecopy::Mechanisms;
using singlecopy::RemoteProcess;
using singlecopy::Windows;

constexpr std::uint64_t kWindow = Windows::kWindowBytes;
void fill(const Arena& arena, std::uint64_t offset, std::size_t bytes, unsigned seed) {
    std::string text = pattern(bytes, seed);
    std::memcpy(arena.data() + offset, text.data(), bytes);
}

std::string part(const Arena& arena, std::uint64_t offset, std::size_t bytes) {
    return {reinterpret_cast<const char*>(arena.data()) + offset, bytes};
}

// One "peer", this process itself, and its memory in an arena.
class XpmemTest : public ::testing::Test {
 protected:
    XpmemTest() : arena_(40 * kWindow, kWindow) { fake_.know(arena_); }

    RemoteProcess process(const Mechanisms& mechanisms) {
        *reinterpret_cast<std::uint64_t*>(arena_.data()) = kCookie;
        return {getpid(), arena_.address(), kCookie, mechanisms.xpmem_segment()};
    }
    std::string read(singlecopy::RemoteMemory& memory, std::uint64_t offset, std::size_t bytes) {
        std::string text(bytes, '\0');
        EXPECT_EQ(memory.read(text.data(), arena_.address() + offset, bytes), 0);
        return text;
    }

    static constexpr std::uint64_t kCookie = 0x1234567890ULL;
    Arena arena_;
    const std::uint64_t place_ = arena_.address();
    FakeXpmem fake_;
};

TEST_F(XpmemTest, transfers_cross_the_edges_of_windows) {
    Mechanisms mechanisms("xpmem");
    auto memory = mechanisms.reach(process(mechanisms));
    for (std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{4097}, kWindow + 5, 2 * kWindow + 9}) {
        const std::uint64_t offset = kWindow - 3;
        fill(arena_, offset, bytes, 7);
        EXPECT_TRUE(read(*memory, offset, bytes) == pattern(bytes, 7)) << bytes;

        std::string text = pattern(bytes, 8), before = part(arena_, offset - 8, 8);
        EXPECT_EQ(memory->write(text.data(), arena_.address() + offset, bytes), 0);
        EXPECT_TRUE(part(arena_, offset, bytes) == text) << bytes;
        EXPECT_EQ(part(arena_, offset - 8, 8), before);
    }
}

TEST_F(XpmemTest, a_window_is_attached_once_and_shows_later_stores_of_its_owner) {
    Mechanisms mechanisms("xpmem");
    auto memory = mechanisms.reach(process(mechanisms));
    int before = fake_.attached;
    for (unsigned round = 0; round < 20; ++round) {
        fill(arena_, 5 * kWindow + 100, 10'000, round);
        EXPECT_EQ(read(*memory, 5 * kWindow + 100, 10'000), pattern(10'000, round));
    }
    EXPECT_EQ(fake_.attached, before + 1);
    EXPECT_EQ(fake_.detached, 0);
}

TEST_F(XpmemTest, windows_are_bounded_and_the_least_recently_used_one_gives_way) {
    Mechanisms mechanisms("xpmem");
    auto memory = mechanisms.reach(process(mechanisms));
    for (std::uint64_t window = 0; window < 40; ++window) {
        fill(arena_, window * kWindow + 64, 64, static_cast<unsigned>(window));
        EXPECT_EQ(read(*memory, window * kWindow + 64, 64), pattern(64, static_cast<unsigned>(window)));
        read(*memory, 8, 8);  // window 0 stays in use
        EXPECT_LE(fake_.live(), Windows::kMostWindows);
    }
    EXPECT_EQ(fake_.attached, 40) << "window 0 never gave way";
    EXPECT_EQ(fake_.live(), Windows::kMostWindows);
    int attached = fake_.attached;
    read(*memory, 8, 8);
    read(*memory, 39 * kWindow, 8);
    EXPECT_EQ(fake_.attached, attached) << "both are still there";
    EXPECT_EQ(read(*memory, 1 * kWindow + 64, 64), pattern(64, 1));
    EXPECT_EQ(fake_.attached, attached + 1) << "the oldest had given way";
}

TEST_F(XpmemTest, pages_of_a_window_that_ends_beyond_the_address_space_are_attached_in_passing) {
    Mechanisms mechanisms("xpmem");
    auto memory = mechanisms.reach(process(mechanisms));
    fake_.limit = place_ + 3 * kWindow + kWindow / 2;
    std::size_t live = fake_.live();
    fill(arena_, 3 * kWindow + 1000, 9000, 3);
    EXPECT_EQ(read(*memory, 3 * kWindow + 1000, 9000), pattern(9000, 3));
    EXPECT_EQ(read(*memory, 3 * kWindow + 1000, 9000), pattern(9000, 3));
    EXPECT_EQ(fake_.live(), live);
    EXPECT_EQ(fake_.detached, 2);
}

TEST_F(XpmemTest, a_window_in_use_is_never_detached) {
    std::int64_t permit = fake_.get(fake_.make());
    {
        Windows windows(fake_, permit);
        std::vector<Windows::Pin> pins;
        for (std::uint64_t i = 0; i < Windows::kMostWindows; ++i)
            pins.push_back(windows.pin(place_ + i * kWindow, 8));
        Windows::Pin more = windows.pin(place_ + 36 * kWindow + 5, 8);
        ASSERT_NE(more.data, nullptr);
        EXPECT_NE(more.passing, nullptr);
        EXPECT_EQ(fake_.detached, 0);
        fill(arena_, 36 * kWindow + 5, 8, 9);
        EXPECT_EQ(std::string(reinterpret_cast<char*>(more.data), 8), pattern(8, 9));
        windows.unpin(more);
        EXPECT_EQ(fake_.detached, 1);
        windows.unpin(pins[7]);
        Windows::Pin next = windows.pin(place_ + 37 * kWindow, 8);
        EXPECT_EQ(next.passing, nullptr) << "the seventh has given way";
        windows.unpin(next);
        EXPECT_EQ(windows.pin(place_ + 7 * kWindow, 8).window, place_ / kWindow + 7);
    }
    fake_.release(permit);
    fake_.remove(0);
}

TEST_F(XpmemTest, a_refused_attachment_is_an_error_number) {
    Mechanisms mechanisms("xpmem");
    auto memory = mechanisms.reach(process(mechanisms));
    fake_.refuse_attach = ENOMEM;
    char byte = 0;
    EXPECT_EQ(memory->read(&byte, place_ + 9 * kWindow, 1), ENOMEM);
    EXPECT_EQ(memory->write(&byte, place_ + 9 * kWindow, 1), ENOMEM);
    EXPECT_EQ(memory->read(&byte, place_, 1), 0) << "what is attached stays";
    EXPECT_EQ(memory->read(&byte, 16, 1), EFAULT);
    EXPECT_EQ(memory->read(&byte, UINT64_MAX - 4, 100), EFAULT);
}

TEST_F(XpmemTest, threads_share_the_windows_of_a_peer) {
    Mechanisms mechanisms("xpmem");
    auto memory = mechanisms.reach(process(mechanisms));
    for (std::uint64_t window = 0; window < 40; ++window)
        fill(arena_, window * kWindow + 4096, 64, static_cast<unsigned>(window));
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (unsigned i = 0; i < 300; ++i) {
                unsigned window = (i * 7 + thread * 11) % 40;
                EXPECT_EQ(read(*memory, window * kWindow + 4096, 64), pattern(64, window));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(fake_.live(), Windows::kMostWindows);
}

// --- which mechanism

std::string refusal(const std::function<void()>& action) {
    try {
        action();
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.status(), VELO_ERR_PARAMETER);
        EXPECT_NE(std::strstr(failure.what(), "btl_velo_single_copy_mechanism is xpmem"), nullptr)
            << failure.what();
        return failure.what();
    }
    ADD_FAILURE() << "accepted";
    return {};
}

TEST_F(XpmemTest, auto_prefers_xpmem_and_falls_back_for_each_peer) {
    Mechanisms mechanisms("auto");
    EXPECT_EQ(mechanisms.description(), "auto (xpmem, cma where the peer permits it)");
    EXPECT_FALSE(mechanisms.forced());
    RemoteProcess peer = process(mechanisms);
    auto first = mechanisms.reach(peer);
    EXPECT_NE(first, nullptr);
    EXPECT_EQ(fake_.live(), 1U) << "the probe went through an attachment";

    fake_.refuse_get = EACCES;
    auto second = mechanisms.reach(peer);
    ASSERT_NE(second, nullptr) << "by CMA";
    EXPECT_EQ(read(*second, 0, 8), part(arena_, 0, 8));
    EXPECT_EQ(fake_.live(), 1U);

    peer.xpmem_segment = 0;
    fake_.refuse_get = 0;
    EXPECT_NE(mechanisms.reach(peer), nullptr);
    peer.cookie += 1;
    EXPECT_EQ(mechanisms.reach(peer), nullptr) << "another process";
}

TEST_F(XpmemTest, auto_goes_without_xpmem_quietly_where_there_is_no_module) {
    fake_.refuse_make = ENOENT;
    Mechanisms mechanisms("auto");
    EXPECT_EQ(mechanisms.description(), "auto (cma where the peer permits it)");
    EXPECT_EQ(mechanisms.xpmem_segment(), 0);
    EXPECT_NE(mechanisms.reach(process(mechanisms)), nullptr);
}

TEST_F(XpmemTest, nothing_is_made_attachable_for_the_other_choices) {
    for (const char* choice : {"cma", "copy"}) {
        Mechanisms mechanisms(choice);
        EXPECT_EQ(mechanisms.xpmem_segment(), 0);
        EXPECT_EQ(mechanisms.description(), choice);
    }
    EXPECT_EQ(fake_.made, 0);
}

TEST_F(XpmemTest, xpmem_asked_for_where_it_cannot_be_had_names_the_parameter_and_the_reason) {
    FakeXpmem::current = nullptr;
    EXPECT_NE(refusal([] { Mechanisms mechanisms("xpmem"); }).find("--with-xpmem=DIR"), std::string::npos);
    FakeXpmem::current = &fake_;

    fake_.refuse_make = ENOENT;
    EXPECT_NE(refusal([] {
                  Mechanisms mechanisms("xpmem");
              }).find("No such file or directory; is the kernel module"),
              std::string::npos);
    fake_.refuse_make = 0;

    Mechanisms mechanisms("xpmem");
    RemoteProcess peer = process(mechanisms);
    auto reach = [&] { mechanisms.reach(peer); };
    fake_.refuse_get = EACCES;
    EXPECT_NE(refusal(reach).find("Permission denied"), std::string::npos);
    fake_.refuse_get = 0;
    fake_.refuse_attach = ENOMEM;
    EXPECT_NE(refusal(reach).find("Cannot allocate memory"), std::string::npos);
    fake_.refuse_attach = 0;
    peer.xpmem_segment = 0;
    EXPECT_NE(refusal(reach).find("process " + std::to_string(getpid())), std::string::npos);
}

TEST_F(XpmemTest, another_process_is_reached_by_its_segment) {
    int announced[2], done[2];
    ASSERT_EQ(pipe(announced), 0);
    ASSERT_EQ(pipe(done), 0);
    pid_t owner = fork();
    if (owner == 0) {
        int status = 1;
        {
            Mechanisms own("xpmem");
            RemoteProcess self = process(own);
            std::uint64_t secret = 4711;  // private memory, at an address that the parent has too
            self.probe = reinterpret_cast<std::uint64_t>(&secret);
            self.cookie = secret;
            fill(arena_, 2 * kWindow - 50, 5000, 1);
            char go = 0;
            bool told =
                write(announced[1], &self, sizeof self) == sizeof self && ::read(done[0], &go, 1) == 1;
            if (told && part(arena_, 4 * kWindow - 50, 5000) == pattern(5000, 2)) status = 0;
        }
        _exit(status);
    }
    RemoteProcess peer{};
    ASSERT_EQ(::read(announced[0], &peer, sizeof peer), static_cast<ssize_t>(sizeof peer));
    Mechanisms mechanisms("xpmem");
    auto memory = mechanisms.reach(peer);
    EXPECT_EQ(read(*memory, 2 * kWindow - 50, 5000), pattern(5000, 1));
    std::string text = pattern(5000, 2);
    EXPECT_EQ(memory->write(text.data(), arena_.address() + 4 * kWindow - 50, text.size()), 0);
    EXPECT_EQ(write(done[1], "g", 1), 1);
    int status = -1;
    waitpid(owner, &status, 0);
    EXPECT_EQ(status, 0);
    for (int end : {announced[0], announced[1], done[0], done[1]}) close(end);
}

// --- whole engines

class XpmemEngineTest : public ::testing::TestWithParam<const char*> {
 protected:
    XpmemEngineTest() {
        for (const Arena& arena : arenas_) fake_.know(arena);
        PartyConfig config;
        config.single_copy = GetParam();
        config.slots_per_peer = 64;
        party_.emplace(config);
    }

    void get(std::size_t bytes, unsigned seed) {
        fill(arenas_[1], 11, bytes, seed);
        Outcome outcome;
        ASSERT_GE(velo_get((*party_)[0].engine, (*party_)[0].peers[1], arenas_[0].data() + 3,
                           arenas_[1].address() + 11, bytes, Outcome::done, &outcome),
                  VELO_OK);
        party_->settle();
        EXPECT_EQ(outcome.calls, 1);
        EXPECT_EQ(outcome.status, VELO_OK);
        EXPECT_TRUE(part(arenas_[0], 3, bytes) == pattern(bytes, seed)) << bytes;
    }

    void put(std::size_t bytes, unsigned seed) {
        fill(arenas_[0], 3, bytes, seed);
        Outcome outcome;
        ASSERT_GE(velo_put((*party_)[0].engine, (*party_)[0].peers[1], arenas_[0].data() + 3,
                           arenas_[1].address() + 11, bytes, Outcome::done, &outcome),
                  VELO_OK);
        party_->settle();
        EXPECT_EQ(outcome.calls, 1);
        EXPECT_TRUE(part(arenas_[1], 11, bytes) == pattern(bytes, seed)) << bytes;
    }

    Arena arenas_[2] = {Arena(2 * kWindow, kWindow), Arena(2 * kWindow, kWindow)};
    FakeXpmem fake_;
    std::optional<Party> party_;
};

INSTANTIATE_TEST_SUITE_P(Choices, XpmemEngineTest, ::testing::Values("xpmem", "auto"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(XpmemEngineTest, get_and_put_move_every_size_exactly_once) {
    unsigned seed = 0;
    for (std::size_t bytes : {0UL, 1UL, 8UL, 4097UL, 128UL * 1024 + 1, 3UL << 20, 9UL << 20}) {
        get(bytes, ++seed);
        put(bytes, ++seed);
    }
    EXPECT_GT(fake_.attached, 0);
}

// auto tries dual copy and the mailbox in between: all must agree about the bytes.
TEST_P(XpmemEngineTest, gets_of_one_size_stay_right_while_routes_change) {
    for (unsigned round = 0; round < 60; ++round) get(256 * 1024 + 7, round);
}

TEST_F(XpmemTest, a_refused_attachment_fails_the_transfer_of_an_engine_and_no_callback_runs) {
    PartyConfig config;
    config.single_copy = "xpmem";
    Party party(config);
    fake_.refuse_attach = ENOMEM;
    Outcome outcome;
    EXPECT_EQ(velo_get(party[0].engine, party[0].peers[1], arena_.data(), arena_.address() + kWindow, 4096,
                       Outcome::done, &outcome),
              VELO_ERR_REMOTE);
    EXPECT_EQ(outcome.calls, 0);
}

}  // namespace
}  // namespace velo::test
