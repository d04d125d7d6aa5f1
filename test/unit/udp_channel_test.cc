// Multicast on the sockets of this machine: each member has an address of its own on the loopback interface.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "collectives/udp/channel.h"
#include "platform/failure.h"
#include "platform/monotonic.h"

namespace velo::fabric::udp {
namespace {

constexpr std::uint64_t kPatience = 20'000'000'000;  // of a test that has failed

// A key that no other process of this machine has: groups of tests at the same time do not meet.
Key own_key(unsigned salt) {
    Key key{};
    const auto id = static_cast<std::uint64_t>(getpid());
    const std::uint64_t now = platform::monotonic_ns() + salt;
    std::memcpy(key.data(), &id, sizeof id);
    std::memcpy(key.data() + 8, &now, sizeof now);
    return key;
}

std::vector<std::byte> text(std::size_t bytes, unsigned seed) {
    std::vector<std::byte> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(i * 7 + i / 256 + seed);
    return all;
}

class Party {
 public:
    explicit Party(std::uint32_t members, const ChannelConfig& with = {}) : config(with) {
        config.key = own_key(members);
        for (std::uint32_t i = 0; i < members; ++i) {
            config.members.push_back(htonl(0x7f000001 + i));
            config.ranks.push_back(10 * i);
        }
        config.log = [](void* self, int level, const char* said) {
            if (level == 0) static_cast<Party*>(self)->said.emplace_back(said);
        };
        config.context = this;
        for (std::uint32_t i = 0; i < members; ++i) {
            config.me = i;
            all.emplace_back(config);
        }
    }

    // Until it is so, or the test has failed.
    template <typename Condition>
    bool until(Condition condition) {
        const std::uint64_t end = platform::monotonic_ns() + kPatience;
        while (!condition()) {
            if (platform::monotonic_ns() > end) return false;
            for (Channel& channel : all) channel.poll();
        }
        return true;
    }
    // Member `source` is heard by all.
    bool opened(std::uint32_t source) {
        (void)all[source].send({}, "", 0);
        return until([&] { return all[source].usable(); });
    }

    ChannelConfig config;
    std::deque<Channel> all;
    std::vector<std::string> said;
};

// Skips where the system does not multicast on its loopback interface.
#define NEEDS_LOOPBACK(party) \
    if (!(party).opened(0)) GTEST_SKIP() << "no multicast on the loopback interface here"

TEST(UdpChannelTest, ABroadcastComesToAllWhoWantItBeforeAndAfter) {
    Party party(4);
    NEEDS_LOOPBACK(party);
    for (const std::size_t bytes : {1UL, 8UL, 1000UL, 1400UL, 1401UL, 20'000UL, 65'536UL}) {
        const Name name{bytes, 5};
        std::vector<std::vector<std::byte>> got(4, std::vector<std::byte>(bytes));
        party.all[1].want(name, got[1].data(), bytes, &got[1]);
        const std::vector<std::byte> data = text(bytes, 1);
        ASSERT_TRUE(party.all[0].send(name, data.data(), bytes)) << bytes;
        ASSERT_TRUE(party.until([&] { return !party.all[1].arrived().empty(); })) << bytes;
        for (const unsigned i : {2U, 3U}) {
            party.all[i].want(name, got[i].data(), bytes, &got[i]);
            ASSERT_TRUE(party.until([&] { return !party.all[i].arrived().empty(); })) << bytes;
        }
        for (const unsigned i : {1U, 2U, 3U}) {
            ASSERT_EQ(party.all[i].arrived().size(), 1U);
            EXPECT_EQ(party.all[i].arrived()[0].who, &got[i]);
            EXPECT_TRUE(party.all[i].arrived()[0].fits);
            EXPECT_EQ(got[i], data) << bytes;
            party.all[i].arrived().clear();
        }
    }
    EXPECT_EQ(party.all[0].observe().multicasts_sent, 7U);
    EXPECT_TRUE(party.said.empty());
}

TEST(UdpChannelTest, AnotherLengthThanIsWantedIsTold) {
    Party party(2);
    NEEDS_LOOPBACK(party);
    std::byte few[100];
    const std::vector<std::byte> data = text(5000, 0);
    for (const bool before : {true, false}) {
        const Name name{before, 1};
        if (before) party.all[1].want(name, few, sizeof few, few);
        ASSERT_TRUE(party.all[0].send(name, data.data(), data.size()));
        ASSERT_TRUE(party.until([&] { return party.all[1].reliability().delivered == (before ? 4U : 8U); }));
        if (!before) party.all[1].want(name, few, sizeof few, few);
        ASSERT_EQ(party.all[1].arrived().size(), 1U);
        EXPECT_FALSE(party.all[1].arrived()[0].fits);
        party.all[1].arrived().clear();
    }
}

// Someone on the same network, who knows address and port but not the key.
class Stranger {
 public:
    explicit Stranger(const Key& key) : place_(place_of(key)), fd_(socket(AF_INET, SOCK_DGRAM, 0)) {
        const in_addr loopback{htonl(INADDR_LOOPBACK)};
        EXPECT_EQ(setsockopt(fd_, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback), 0);
    }
    ~Stranger() { close(fd_); }
    void say(std::span<const std::byte> bytes, in_addr_t to) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(place_.port);
        at.sin_addr.s_addr = to;
        (void)sendto(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&at), sizeof at);
    }
    // Hears the group as its members do.
    std::vector<std::vector<std::byte>> heard() {
        std::vector<std::vector<std::byte>> all;
        std::vector<std::byte> buffer(65536);
        for (ssize_t bytes; (bytes = recv(ear_, buffer.data(), buffer.size(), MSG_DONTWAIT)) >= 0;)
            all.emplace_back(buffer.begin(), buffer.begin() + bytes);
        return all;
    }
    void listen() {
        ear_ = socket(AF_INET, SOCK_DGRAM, 0);
        const int one = 1;
        setsockopt(ear_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(place_.port);
        at.sin_addr.s_addr = place_.group;
        ASSERT_EQ(bind(ear_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
        const ip_mreq join{{place_.group}, {htonl(INADDR_LOOPBACK)}};
        ASSERT_EQ(setsockopt(ear_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join), 0);
    }
    void leave() { close(ear_); }
    in_addr_t group() const { return place_.group; }

 private:
    Place place_;
    int fd_, ear_ = -1;
};

TEST(UdpChannelTest, StrangersReplayedAndDamagedDatagramsDoNothing) {
    Party party(3);
    NEEDS_LOOPBACK(party);
    Stranger stranger(party.config.key);
    stranger.listen();
    const std::vector<std::byte> data = text(4000, 3);
    std::vector<std::byte> got(data.size());
    const auto receive = [&](std::uint64_t run) {
        for (const unsigned i : {1U, 2U}) {
            std::ranges::fill(got, std::byte{0});
            party.all[i].want({run, 1}, got.data(), got.size(), &got);
            ASSERT_TRUE(party.until([&] { return !party.all[i].arrived().empty(); }));
            party.all[i].arrived().clear();
            EXPECT_EQ(got, data);
        }
    };
    ASSERT_TRUE(party.all[0].send({0, 1}, data.data(), data.size()));
    receive(0);
    const std::vector<std::vector<std::byte>> overheard = stranger.heard();
    stranger.leave();
    ASSERT_GE(overheard.size(), 3U);

    std::mt19937 random(7);
    const std::uint64_t strangers = party.all[1].observe().multicast_strangers;
    const auto taken = party.all[1].observe().multicasts_taken;
    std::uint64_t garbage = 0;
    for (unsigned round = 0; round < 50; ++round) {
        std::vector<std::byte> noise(random() % 1400);
        for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
        stranger.say(noise, stranger.group());
        std::vector<std::byte> damaged = overheard[random() % overheard.size()];
        damaged[random() % damaged.size()] ^= std::byte{16};
        stranger.say(damaged, stranger.group());
        stranger.say(damaged, party.config.members[1]);
        garbage += 3;
        stranger.say(overheard[random() % overheard.size()], stranger.group());
        stranger.say(overheard[random() % overheard.size()], party.config.members[1]);
        (void)party.until([polls = 0]() mutable { return polls++ == 100; });
    }
    EXPECT_TRUE(party.until([&] {
        return party.all[1].observe().multicast_strangers == strangers + garbage;
    })) << party.all[1].observe().multicast_strangers - strangers
        << " of " << garbage;
    EXPECT_EQ(party.all[1].observe().multicasts_taken, taken)
        << "a replay must not be taken for a new broadcast";
    EXPECT_GT(party.all[1].reliability().duplicates, 0U);
    EXPECT_EQ(party.all[1].reliability().strange, 0U);

    ASSERT_TRUE(party.all[0].send({1, 1}, data.data(), data.size()));
    receive(1);
}

TEST(UdpChannelTest, WhatNobodyAskedForTakesBoundedRoomAndHoldsUpNothing) {
    constexpr std::size_t kRoom = 20'000, kBytes = 4000;
    ChannelConfig with;
    with.stored_bytes = kRoom;
    Party party(2, with);
    NEEDS_LOOPBACK(party);
    const std::vector<std::byte> data = text(kBytes, 1);
    std::uint64_t sent = 0;
    // More than there is room for, and last what is waited for.
    for (; sent < 10; ++sent) ASSERT_TRUE(party.all[0].send({sent, 1}, data.data(), kBytes));
    std::vector<std::byte> got(kBytes);
    party.all[1].want({0, 2}, got.data(), kBytes, &got);
    ASSERT_TRUE(party.all[0].send({0, 2}, data.data(), kBytes));
    ASSERT_TRUE(party.until([&] { return !party.all[1].arrived().empty(); }));
    party.all[1].arrived().clear();
    EXPECT_EQ(got, data);
    EXPECT_GT(party.all[1].observe().multicast_dropped, 0U);
    EXPECT_LE(party.all[1].observe().multicast_kept_bytes, kRoom);
    // All others come when they are asked for.
    for (std::uint64_t run = 0; run < sent; ++run) {
        std::ranges::fill(got, std::byte{0});
        party.all[1].want({run, 1}, got.data(), kBytes, &got);
        ASSERT_TRUE(party.until([&] { return !party.all[1].arrived().empty(); })) << run;
        party.all[1].arrived().clear();
        EXPECT_EQ(got, data) << run;
    }
}

TEST(UdpChannelTest, AFullWindowIsRefusedUntilAllHaveGotOn) {
    Party party(2);
    NEEDS_LOOPBACK(party);
    const std::vector<std::byte> data = text(8, 1);
    std::uint64_t run = 0;
    while (party.all[0].send({run, 1}, data.data(), data.size())) ++run;  // nobody listens
    EXPECT_EQ(run, party.config.window);
    EXPECT_TRUE(party.all[0].owes(1, run - 1));
    EXPECT_FALSE(party.all[0].owes(2, run));
    for (std::uint64_t i = 0; i < run; ++i) {
        std::byte got[8];
        party.all[1].want({i, 1}, got, sizeof got, got);
        ASSERT_TRUE(party.until([&] { return !party.all[1].arrived().empty(); }));
        party.all[1].arrived().clear();
    }
    ASSERT_TRUE(party.until([&] { return !party.all[0].owes(1, run); }));
    EXPECT_TRUE(party.all[0].send({run, 1}, data.data(), data.size()));
}

// Twice 30000 bytes, as the system counts, are 20 datagrams of 1500.
TEST(UdpChannelTest, AStaticShareOfTheReceiveBufferIsAllThatMayBeUnderWayBesideOthers) {
    for (const auto& [members, shares, most] :
         {std::tuple{2U, multicast::Shares::kStatic, 20U}, std::tuple{5U, multicast::Shares::kStatic, 5U},
          std::tuple{2U, multicast::Shares::kDynamic, 128U}}) {
        ChannelConfig config;
        config.receive_bytes = 30'000;
        config.shares = shares;
        Party party(members, config);
        NEEDS_LOOPBACK(party);
        Channel& source = party.all[0];
        std::uint64_t sent = 0;
        while (sent < 1000 && source.send({sent, 1}, "x", 1)) ++sent;
        EXPECT_EQ(sent, most);
        EXPECT_EQ(source.observe().multicast_share, most);
        EXPECT_TRUE(source.fills_up(1));
        // One that is longer than that may go when nothing is under way.
        const std::vector<std::byte> data = text(40'000, 3);
        ASSERT_TRUE(party.until([&] { return source.send({sent, 1}, data.data(), data.size()); }));
        for (std::uint32_t i = 1; i < members; ++i) {
            std::vector<std::byte> got(data.size());
            party.all[i].want({sent, 1}, got.data(), got.size(), &got);
            ASSERT_TRUE(party.until([&] { return !party.all[i].arrived().empty(); }));
            EXPECT_EQ(got, data);
        }
    }
}

// The slides' schemes: who hears whose acknowledgements, and of how many datagrams.
TEST(UdpChannelTest, EachSchemeBringsEveryBroadcastAndItsAcknowledgementsToItsCollectors) {
    using multicast::Scheme;
    constexpr std::uint32_t kMembers = 8;
    constexpr std::uint64_t kRuns = 64;
    std::vector<std::uint64_t> heard;
    for (const auto& [scheme, ack_every, co_roots] :
         {std::tuple{Scheme::kBasic, 1U, std::optional<std::uint32_t>()},
          {Scheme::kWindow, 1U, {}},
          {Scheme::kWindow, 8U, {}},
          {Scheme::kTree, 1U, {}},
          {Scheme::kCoroot, 1U, 1}}) {
        ChannelConfig config;
        config.scheme = scheme;
        config.window = 16;
        config.ack_every = ack_every;
        config.co_roots = co_roots;
        Party party(kMembers, config);
        NEEDS_LOOPBACK(party);
        std::vector<std::vector<std::byte>> got(kMembers, std::vector<std::byte>(100));
        for (std::uint64_t run = 0; run < kRuns; ++run) {
            const std::vector<std::byte> data = text(100, static_cast<unsigned>(run));
            for (std::uint32_t i = 1; i < kMembers; ++i)
                party.all[i].want({run, 1}, got[i].data(), got[i].size(), &got[i]);
            ASSERT_TRUE(party.until([&] { return party.all[0].send({run, 1}, data.data(), data.size()); }));
            // A window of 1 is full until all have acknowledged.
            if (scheme == Scheme::kBasic) EXPECT_TRUE(party.all[0].fills_up(1));
            ASSERT_TRUE(party.until([&] {
                return std::ranges::all_of(
                    party.all, [&](Channel& c) { return &c == &party.all[0] || !c.arrived().empty(); });
            }));
            for (std::uint32_t i = 1; i < kMembers; ++i) {
                EXPECT_EQ(got[i], data);
                party.all[i].arrived().clear();
            }
        }
        ASSERT_TRUE(party.until([&] { return !party.all[0].owes(1, kRuns); }));
        heard.push_back(party.all[0].observe().multicast_acks);
    }
    EXPECT_GE(heard[0], kRuns * (kMembers - 1)) << "basic";
    EXPECT_GE(heard[1], kRuns * (kMembers - 1)) << "window";
    EXPECT_LT(heard[2], heard[1] / 2) << "window, each 8th";
    EXPECT_LE(heard[3], heard[1]) << "tree: three children";
    EXPECT_LE(heard[4], heard[1]) << "co-roots";
}

// Who is asked for room says no when nobody gets on for long, and when there is some, or never will be.
TEST(UdpChannelTest, AWindowFillsUpWhileTheOthersGetOnAndNoLonger) {
    Party party(2);
    NEEDS_LOOPBACK(party);
    const std::vector<std::byte> data = text(8, 1);
    std::uint64_t run = 0;
    for (; run < party.config.window; ++run) {
        EXPECT_FALSE(party.all[0].fills_up(data.size())) << run;
        ASSERT_TRUE(party.all[0].send({run, 1}, data.data(), data.size()));
    }
    EXPECT_TRUE(party.all[0].fills_up(data.size()));
    EXPECT_FALSE(party.all[0].fills_up(std::size_t{party.config.window} * 1500)) << "more than a window";
    // Nobody listens.
    const std::uint64_t end = platform::monotonic_ns() + kPatience;
    while (party.all[0].fills_up(data.size()) && platform::monotonic_ns() < end) party.all[0].poll();
    ASSERT_LT(platform::monotonic_ns(), end);
    EXPECT_FALSE(party.all[0].send({run, 1}, data.data(), data.size()));
    EXPECT_FALSE(party.all[0].fills_up(data.size())) << "nobody has got on since";
    std::byte got[8];
    party.all[1].want({0, 1}, got, sizeof got, got);
    ASSERT_TRUE(party.until([&] { return !party.all[0].owes(1, 0); }));
    EXPECT_FALSE(party.all[0].fills_up(data.size())) << "there is room";
    EXPECT_TRUE(party.all[0].send({run, 1}, data.data(), data.size()));
}

// Whatever they bring along for others: datagrams that are not equally long leave one by one.
TEST(UdpChannelTest, ABroadcastLeavesInOnePiece) {
    Party party(8);
    NEEDS_LOOPBACK(party);
    ASSERT_TRUE(party.opened(1));
    const std::vector<std::byte> data = text(10'000, 1);  // 8 datagrams: all of them are a window
    std::vector<std::byte> got(data.size());
    for (std::uint64_t run = 0; run < 8; ++run)
        for (const std::uint32_t source : {0U, 1U}) {
            Channel& from = party.all[source];
            const std::uint64_t before = from.observe().multicast_system_calls;
            ASSERT_TRUE(from.send({run, source}, data.data(), data.size()));
            EXPECT_EQ(from.observe().multicast_system_calls, before + 1);
            party.all[1 - source].want({run, source}, got.data(), got.size(), &got);
            ASSERT_TRUE(party.until([&] { return !party.all[1 - source].arrived().empty(); }));
            party.all[1 - source].arrived().clear();
            EXPECT_EQ(got, data);
        }
    EXPECT_GT(party.all[1].reliability().acks_piggybacked, 0U);
}

TEST(UdpChannelTest, WhoDoesNotGetOnIsNamedOnce) {
    ChannelConfig with;
    with.silence_ns = 20'000'000;
    Party party(3, with);
    NEEDS_LOOPBACK(party);
    const std::uint64_t end = platform::monotonic_ns() + kPatience;
    // The last one does not listen.
    for (std::uint64_t run = 0; party.said.empty() && platform::monotonic_ns() < end; ++run) {
        (void)party.all[0].send({run, 1}, "x", 1);
        party.all[0].poll();
        party.all[1].poll();
    }
    ASSERT_EQ(party.said.size(), 1U);
    EXPECT_NE(party.said[0].find("127.0.0.3 (rank 20) has made no progress"), std::string::npos)
        << party.said[0];
    const std::uint64_t later = platform::monotonic_ns() + 2 * with.silence_ns;
    while (platform::monotonic_ns() < later) EXPECT_FALSE(party.all[0].send({0, 2}, "x", 1));
    EXPECT_EQ(party.said.size(), 1U);
}

// Whose acknowledgements somebody else collects: sets are of five.
TEST(UdpChannelTest, WhoDoesNotGetOnIsNamedAndNotWhoCollectsForIt) {
    ChannelConfig with;
    with.silence_ns = 20'000'000;
    constexpr std::uint32_t kMembers = 20;
    Party party(kMembers, with);
    NEEDS_LOOPBACK(party);
    const std::uint64_t end = platform::monotonic_ns() + kPatience;
    for (std::uint64_t run = 0; party.said.empty() && platform::monotonic_ns() < end; ++run) {
        (void)party.all[0].send({run, 1}, "x", 1);
        for (std::uint32_t i = 0; i + 1 < kMembers; ++i) party.all[i].poll();
    }
    ASSERT_EQ(party.said.size(), 1U);
    EXPECT_NE(party.said[0].find("127.0.0.20 (rank 190) has made no progress"), std::string::npos)
        << party.said[0];
}

// It goes another way each time, and nobody is to blame.
TEST(UdpChannelTest, WhatNoWindowHoldsIsRefusedAndNobodyIsNamed) {
    ChannelConfig with;
    with.silence_ns = 1'000'000;
    with.mtu = 600;
    Party party(2, with);
    NEEDS_LOOPBACK(party);
    const std::vector<std::byte> data = text(65'000, 1);
    const std::uint64_t end = platform::monotonic_ns() + 5 * with.silence_ns;
    std::uint64_t refused = 0;
    for (; refused == 0 || platform::monotonic_ns() < end; ++refused)
        ASSERT_FALSE(party.all[0].send({refused, 1}, data.data(), data.size()));
    EXPECT_GE(party.all[0].observe().multicasts_refused, refused);
    EXPECT_TRUE(party.said.empty()) << party.said[0];
}

TEST(UdpChannelTest, WithoutATimeUntilThatNobodyIsNamed) {
    ChannelConfig with;
    with.silence_ns = 0;
    Party party(2, with);
    NEEDS_LOOPBACK(party);
    for (unsigned run = 0; run < 3 * party.config.window; ++run) (void)party.all[0].send({run, 1}, "x", 1);
    EXPECT_GT(party.all[0].observe().multicasts_refused, party.config.window);
    EXPECT_TRUE(party.said.empty());
}

// A process that 1 leads, and which has only now joined.
TEST(UdpChannelTest, WhoIsAttachedHearsWhatItWantsAndKeepsNothingThatIsOver) {
    Party party(2);
    NEEDS_LOOPBACK(party);
    const std::vector<std::byte> data = text(3000, 1);
    std::vector<std::byte> got(data.size());
    std::uint64_t run = 0;
    const auto broadcast = [&] {
        ASSERT_TRUE(party.all[0].send({run, 1}, data.data(), data.size()));
        party.all[1].want({run, 1}, got.data(), got.size(), &got);
        ASSERT_TRUE(
            party.until([&] { return !party.all[1].arrived().empty() && !party.all[0].owes(1, run); }));
        party.all[1].arrived().clear();
        ++run;
    };
    while (party.all[0].reliability().sent < 2 * party.config.window) broadcast();
    party.config.attached = true;
    party.config.me = 1;
    party.all.emplace_back(party.config);
    Channel& attached = party.all[2];
    std::vector<std::byte> heard(data.size());
    const auto comes = [&](std::uint64_t which) {
        std::ranges::fill(heard, std::byte{0});
        attached.want({which, 1}, heard.data(), heard.size(), &heard);
        if (which == run) broadcast();
        ASSERT_TRUE(party.until([&] { return !attached.arrived().empty(); }));
        attached.arrived().clear();
        EXPECT_EQ(heard, data);
    };
    broadcast();
    EXPECT_EQ(attached.observe().multicast_kept_bytes, 0U) << "of a group that it has wanted nothing of";
    comes(run);
    broadcast();
    broadcast();
    ASSERT_TRUE(party.until([&] { return attached.observe().multicast_kept_bytes > 2 * data.size(); }));
    const std::uint64_t kept = attached.observe().multicast_kept_bytes;
    comes(run - 2);
    attached.pass({run - 1, 1});
    broadcast();
    comes(run - 1);
    attached.pass({run + 50, 1});
    for (unsigned i = 0; i < 20; ++i) broadcast();
    EXPECT_TRUE(party.until([polls = 0]() mutable { return polls++ == 200; }));
    EXPECT_LE(attached.observe().multicast_kept_bytes, kept);
    EXPECT_EQ(attached.observe().multicast_strangers, 0U);
    EXPECT_EQ(attached.reliability().acks + attached.reliability().nacks, 0U) << "its leader answers for it";
}

TEST(UdpChannelTest, WhatIsForgottenIsNotWrittenTo) {
    Party party(2);
    NEEDS_LOOPBACK(party);
    const std::vector<std::byte> data = text(64, 1);
    std::vector<std::byte> got(64);
    party.all[1].want({0, 1}, got.data(), got.size(), &got);
    party.all[1].forget({0, 1}, &got);
    party.all[1].want({1, 1}, got.data(), got.size(), &got);
    for (const Name& name : {Name{0, 1}, Name{0, 2}})
        ASSERT_TRUE(party.all[0].send(name, data.data(), data.size()));
    ASSERT_TRUE(party.until([&] { return party.all[1].reliability().delivered == 2; }));
    EXPECT_EQ(got, std::vector<std::byte>(64));
    EXPECT_TRUE(party.all[1].arrived().empty());
    // A group that comes later has its own runs.
    party.all[1].forget_group(2);
    party.all[1].want({0, 2}, got.data(), got.size(), &got);
    EXPECT_TRUE(party.all[1].arrived().empty());
    ASSERT_TRUE(party.all[0].send({1, 1}, data.data(), data.size()));
    ASSERT_TRUE(party.until([&] { return !party.all[1].arrived().empty(); }));
    party.all[1].forget({1, 1}, &got);
    EXPECT_TRUE(party.all[1].arrived().empty()) << "who has left is not told";
}

// A member that answers, with the key, that it has heard nothing.
class DeafMember {
 public:
    DeafMember(const ChannelConfig& config, std::uint32_t me)
        : me_(me), sealer_(config.key), fd_(socket(AF_INET, SOCK_DGRAM, 0)) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(place_of(config.key).port);
        at.sin_addr.s_addr = config.members[me];
        EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    }
    ~DeafMember() { close(fd_); }
    void answer() {
        std::vector<std::byte> buffer(65536);
        sockaddr_in from{};
        socklen_t length = sizeof from;
        for (ssize_t bytes; (bytes = recvfrom(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT,
                                              reinterpret_cast<sockaddr*>(&from), &length)) >= 0;) {
            const auto letter = opened(sealer_, std::span(buffer).first(static_cast<std::size_t>(bytes)));
            ASSERT_TRUE(letter.has_value());
            told_no_use += letter->call == Call::kNoUse;
            if (letter->call != Call::kAsk) continue;
            Letter no;
            no.call = Call::kAnswer;
            no.from = me_;
            std::byte room[kMostHeaderBytes];
            (void)sendto(fd_, room, seal(sealer_, no, room), 0, reinterpret_cast<const sockaddr*>(&from),
                         length);
        }
    }
    unsigned told_no_use = 0;

 private:
    std::uint32_t me_;
    Sealer sealer_;
    int fd_;
};

TEST(UdpChannelTest, WhereOneIsNotReachedAllGoWithoutAndItIsSaidOnce) {
    Party party(3);
    NEEDS_LOOPBACK(party);
    party.all.pop_back();
    DeafMember deaf(party.config, 2);
    (void)party.all[1].send({}, "", 0);
    ASSERT_TRUE(party.until([&] {
        deaf.answer();
        return !party.said.empty() && deaf.told_no_use == 1 && party.all[0].has_given_up();
    }));
    EXPECT_EQ(party.said.size(), 1U);
    EXPECT_NE(party.said[0].find("127.0.0.3 (rank 20)"), std::string::npos) << party.said[0];
    EXPECT_FALSE(party.all[0].send({0, 1}, "x", 1));
    EXPECT_FALSE(party.all[1].send({0, 1}, "x", 1));
}

TEST(UdpChannelTest, AsLongAsOneIsSilentTheOthersGoWithoutAndThenWith) {
    Party party(3);
    NEEDS_LOOPBACK(party);
    party.all.pop_back();
    (void)party.all[1].send({}, "", 0);
    const std::uint64_t end = platform::monotonic_ns() + 150'000'000;
    ASSERT_TRUE(party.until([&] { return platform::monotonic_ns() > end; }));
    EXPECT_FALSE(party.all[1].usable());
    EXPECT_FALSE(party.all[1].send({0, 1}, "x", 1));
    EXPECT_TRUE(party.said.empty()) << "who is late is not deaf";
    party.config.me = 2;
    party.all.emplace_back(party.config);
    EXPECT_TRUE(party.until([&] { return party.all[1].usable(); }));
}

TEST(UdpChannelTest, DatagramsThatAreTooShortAreRefused) {
    ChannelConfig config;
    config.key = own_key(0);
    config.members = {htonl(0x7f000001), htonl(0x7f000002)};
    config.ranks = {0, 1};
    config.mtu = 300;
    EXPECT_THROW(Channel channel(config), Failure);
}

}  // namespace
}  // namespace velo::fabric::udp
