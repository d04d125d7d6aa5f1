// The engine through its C interface: messages of all sizes, order, queueing, callbacks, late connections,
// bad input.
#include "engine/engine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "engine_party.h"
#include "fabric/shm/segment.h"
#include "lying_peer.h"

namespace velo::test {
namespace {

class EngineTest : public ::testing::TestWithParam<std::string> {
 protected:
    PartyConfig config(std::size_t size = 2) const {
        PartyConfig config;
        config.size = size;
        config.flow_control = GetParam().c_str();
        return config;
    }
};

INSTANTIATE_TEST_SUITE_P(EveryPolicy, EngineTest, ::testing::ValuesIn(policies()),
                         [](const auto& info) { return info.param; });

// Random bytes would hardly ever look like a header of the next round; these do, in every slot.
TEST_P(EngineTest, trains_over_the_end_of_the_ring_arrive_whole_whatever_they_contain) {
    for (bool trains : {true, false}) {
        PartyConfig big = config();
        big.slots_per_peer = 44;
        big.packet_trains = trains;
        Party party(big);
        std::string forged(3000, '\0');
        for (unsigned i = 0; i < 2000; ++i) {
            wire::Header header{wire::PacketKind::kData, wire::kFirst | wire::kLast, 7, 5, 0, 0};
            header.lap = static_cast<std::uint16_t>(2 + i * 40 / 44);
            std::uint64_t word = header.pack();
            for (std::size_t at = 0; at + 8 <= forged.size(); at += 8) std::memcpy(&forged[at], &word, 8);
            std::size_t bytes = 1 + i * 61 % 2999;
            party.send(0, 1, 1, forged.substr(0, bytes));
            party.settle();
            ASSERT_EQ(party[1].received.size(), 1U) << "message " << i;
            ASSERT_EQ(party[1].received.front().data, forged.substr(0, bytes));
            party[1].received.clear();
        }
    }
}

TEST_P(EngineTest, a_flood_to_a_receiver_that_does_not_look_waits_and_then_arrives) {
    Party party(config(4));
    constexpr int kMessages = 300;
    for (int i = 0; i < kMessages; ++i) {
        for (std::size_t from = 1; from < 4; ++from)
            party.send(from, 0, 1, pattern(2000 + from, static_cast<unsigned>(i)));
    }
    for (int i = 0; i < 50; ++i) {
        for (std::size_t from = 1; from < 4; ++from) velo_progress(party[from].engine);
    }
    EXPECT_EQ(party[0].received.size(), 0U);
    EXPECT_GT(party.queued(), 3U * kMessages / 2) << "mailbox and outbox have room for a few of them only";
    party.settle();
    ASSERT_EQ(party[0].received.size(), 3U * kMessages);
    EXPECT_EQ(party.queued(), party.completed());
    std::size_t next[4] = {};
    for (const Received& message : party[0].received) {
        std::size_t from = message.data.size() - 2000;
        EXPECT_EQ(message.data, pattern(2000 + from, static_cast<unsigned>(next[from]++)));
    }
}

TEST_P(EngineTest, a_callback_may_answer_and_is_not_entered_again) {
    Party party(config());
    int depth = 0, deepest = 0;
    for (std::size_t rank : {0U, 1U}) {
        party[rank].on_message = [&, rank](const Received& message) {
            deepest = std::max(deepest, ++depth);
            velo_progress(party[rank].engine);
            unsigned hops = static_cast<unsigned char>(message.data[0]);
            if (hops > 0) party.send(rank, 1 - rank, 2, std::string(200, static_cast<char>(hops - 1)));
            --depth;
        };
    }
    party.send(0, 1, 2, std::string(200, static_cast<char>(100)));
    party.settle();
    EXPECT_EQ(party[0].received.size() + party[1].received.size(), 101U);
    EXPECT_EQ(deepest, 1);
}

TEST_P(EngineTest, send_now_sends_all_or_nothing_and_never_overtakes) {
    PartyConfig in_packets = config();
    in_packets.by_reference = "never";
    Party party(in_packets);
    // A policy on demand has no credit before.
    party.send(0, 1, 1, "first contact");
    party.settle();
    party[1].received.clear();
    std::string small = pattern(20, 1);
    auto now = [&](const std::string& text) {
        return velo_send_now(party[0].peers[1], 9, text.data(), 4, text.data() + 4, text.size() - 4);
    };
    EXPECT_EQ(now(pattern(4096, 2)), VELO_WOULD_BLOCK) << "8 slots cannot take 65 packets";
    int sent = 0;
    while (now(small) == VELO_OK) ++sent;
    EXPECT_GT(sent, 0);
    EXPECT_EQ(party.send(0, 1, 3, "queued"), VELO_QUEUED);
    EXPECT_EQ(now(small), VELO_WOULD_BLOCK);
    party.settle();
    ASSERT_EQ(party[1].received.size(), static_cast<std::size_t>(sent) + 1);
    EXPECT_EQ(party[1].received.back().data, "queued");
    EXPECT_EQ(now(small), VELO_OK);
}

TEST_P(EngineTest, what_leaves_at_once_arrives_whole_wherever_in_the_ring_it_lies) {
    PartyConfig roomy = config();
    roomy.slots_per_peer = roomy.lazy_slots = 200;
    roomy.preposted_buffers = roomy.initial_buffers = 100;
    Party party(roomy);
    party.send(0, 1, 1, "first contact");
    party.settle();
    party[1].received.clear();
    std::size_t left = 0;
    for (unsigned bytes = 14; bytes < 1500; bytes += 3) {
        const std::string text = pattern(bytes, bytes);
        const std::size_t head = bytes % 2 == 0 ? 14 : std::min(70U, bytes);
        if (velo_send_now(party[0].peers[1], 9, text.data(), head, text.data() + head, bytes - head) !=
            VELO_OK)
            continue;
        ++left;
        party.settle();
        ASSERT_EQ(party[1].received.size(), 1U) << bytes;
        ASSERT_EQ(party[1].received.back().data, text) << bytes;
        party[1].received.clear();
    }
    EXPECT_GT(left, 400U);
    EXPECT_TRUE(party[1].fatal.empty());
}

TEST_P(EngineTest, a_peer_that_was_never_connected_to_is_heard_and_gets_its_credits) {
    Party party(config(), false);
    party.connect(0, 1);
    for (unsigned i = 0; i < 100; ++i) party.send(0, 1, 1, pattern(300, i));
    party.settle();
    EXPECT_EQ(party[1].received.size(), 100U);
    EXPECT_EQ(party.queued(), party.completed());
    EXPECT_TRUE(party[1].fatal.empty());
}

TEST_P(EngineTest, an_impossible_packet_is_reported_and_nothing_else_happens) {
    Party party(config());
    fabric::shm::Segment segment = segment_of(party[1].engine);
    auto writer = segment.writer();
    writer.publish(writer.reserve(1), wire::Header{wire::PacketKind::kData, wire::kFirst, 1, 56, 0, 77});
    party.settle();
    ASSERT_EQ(party[1].fatal.size(), 1U);
    EXPECT_NE(party[1].fatal[0].find("src 77"), std::string::npos) << party[1].fatal[0];
    EXPECT_TRUE(party[1].received.empty());
}

TEST_P(EngineTest, a_run_longer_than_the_ring_is_refused_in_the_middle_of_a_message_too) {
    Party party(config());
    party.send(0, 1, 1, "opens a window where one is needed");
    party.settle();
    party[1].received.clear();
    LyingPeer liar(party[1].engine);
    liar.store(wire::PacketKind::kData, wire::kFirst, 50);
    const std::size_t length = wire::run_capacity(liar.capacity() + 1);
    liar.store(wire::PacketKind::kData, 0, static_cast<std::uint16_t>(length));
    party.settle();
    ASSERT_EQ(party[1].fatal.size(), 1U);
    const std::string& text = party[1].fatal[0];
    EXPECT_NE(text.find("len " + std::to_string(length)), std::string::npos) << text;
    EXPECT_TRUE(party[1].received.empty());
}

// Rank 1 has a large quota at rank 0, which loses it to rank 2 while 0 has no credit to say so.
TEST(EngineRules, a_request_that_waits_for_a_credit_leaves_with_the_first_one) {
    PartyConfig config;
    config.size = 3;
    config.slots_per_peer = 16;
    Party party(config);
    const auto flood = [&](std::size_t from, std::size_t to) {
        for (unsigned i = 0; i < 30; ++i) party.send(from, to, 1, pattern(900, i));
    };
    for (int round = 0; round < 10; ++round) {
        flood(1, 0);
        party.settle();
    }
    flood(0, 1);  // which does not look
    const auto waits = [&] {
        party[0].log.clear();
        velo_dump(party[0].engine, party[0].peers[1], 0);
        return party[0].log.back().find("control packet waiting") != std::string::npos;
    };
    for (int round = 0; round < 100 && !waits(); ++round) {
        flood(2, 0);
        for (int i = 0; i < 50; ++i)
            for (std::size_t rank : {2U, 0U}) velo_progress(party[rank].engine);
    }
    ASSERT_TRUE(waits());
    const std::uint64_t before = counter(party[0], "requests");
    party.settle();
    EXPECT_FALSE(waits());
    EXPECT_GT(counter(party[0], "requests"), before);
    EXPECT_EQ(counter(party[1], "responses"), counter(party[0], "requests"));
    EXPECT_EQ(party.queued(), party.completed());
}

TEST(EngineRules, a_response_that_nobody_asked_for_is_a_protocol_error) {
    Party party(PartyConfig{});
    LyingPeer liar(party[1].engine);
    liar.store(wire::PacketKind::kResponse, wire::kFirst | wire::kLast, 4, 1'000'000);
    party.settle();
    ASSERT_EQ(party[1].fatal.size(), 1U);
    EXPECT_NE(party[1].fatal[0].find("RESP"), std::string::npos) << party[1].fatal[0];
}

TEST_P(EngineTest, a_message_that_outgrows_the_agreed_size_is_refused) {
    PartyConfig small = config();
    small.max_message_bytes = 128;
    Party party(small);
    party.send(0, 1, 1, pattern(200, 1));
    party.settle();
    EXPECT_EQ(party[1].fatal.size(), 1U);
}

// What a member's process sent: the text of its report.
std::string report_of(Member& member) {
    ::testing::internal::CaptureStderr();
    velo_engine_close(std::exchange(member.engine, nullptr));
    return ::testing::internal::GetCapturedStderr();
}

std::uint64_t counter(const std::string& report, std::size_t rank, const char* name) {
    auto json = nlohmann::json::parse(report.substr(report.find('{')));
    return json["per_rank"][rank][name];
}

// Open MPI frees the texts of parameters before it closes the component.
TEST(EngineReport, says_what_was_given_after_the_texts_have_gone) {
    std::string policy = "static", single_copy = "copy", report = "json";
    PartyConfig config;
    config.flow_control = policy.c_str();
    config.single_copy = single_copy.c_str();
    config.report = report.c_str();
    Party party(config);
    for (std::string* text : {&policy, &single_copy, &report}) text->assign(text->size(), '?');
    velo_engine_close(std::exchange(party[1].engine, nullptr));
    const std::string said = report_of(party[0]);
    ASSERT_NE(said.find('{'), std::string::npos) << said;
    const auto json = nlohmann::json::parse(said.substr(said.find('{')));
    EXPECT_EQ(json["set"]["flow_control"], "static");
    EXPECT_EQ(json["set"]["single_copy_mechanism"], "copy");
    EXPECT_EQ(json["set"]["report"], "json");
}

TEST(BacklogTest, messages_that_waited_bring_their_sender_more_buffers_and_others_do_not) {
    PartyConfig config;
    config.flow_control = "mvapich_dynamic";
    config.slots_per_peer = 22;
    config.initial_buffers = 2;
    config.growth_buffers = 3;
    config.preposted_buffers = 17;
    config.report = "json";
    config.by_reference = "never";
    for (std::size_t bytes : {20U, 2000U}) {
        Party party(config);
        for (unsigned i = 0; i < 20; ++i) {
            party.send(0, 1, 1, pattern(20, i));
            party.settle();
        }
        EXPECT_EQ(party.queued(), 0U);
        for (unsigned i = 0; i < 30; ++i) party.send(0, 1, 1, pattern(bytes, i));
        party.settle();
        EXPECT_EQ(party[1].received.size(), 50U);
        for (std::size_t rank : {1U, 0U}) velo_progress(party[rank].engine);
        velo_engine_close(std::exchange(party[1].engine, nullptr));
        std::string report = report_of(party[0]);
        EXPECT_EQ(counter(report, 0, "grown_buffers"), 0U);
        EXPECT_EQ(counter(report, 1, "grown_buffers"), 15U) << "from 2 to 17";
        EXPECT_EQ(counter(report, 1, "growths"), 5U);
        EXPECT_EQ(counter(report, 0, "largest_share"), 2U);
        EXPECT_EQ(counter(report, 1, "largest_share"), 17U);
    }
}

std::size_t arrived(Party& party, std::size_t rank) {
    velo_progress(party[rank].engine);
    return party[rank].received.size();
}

TEST(RefusalTest, a_receiver_takes_no_more_of_one_sender_than_its_buffers_and_others_are_not_held) {
    PartyConfig config;
    config.size = 3;
    config.flow_control = "rnr";
    config.preposted_buffers = 4;
    Party party(config);
    for (unsigned i = 0; i < 10; ++i) party.send(1, 0, 1, pattern(20, i));
    EXPECT_EQ(party.queued(), 6U);
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(party.send(2, 0, 2, pattern(30, i)), VELO_OK);
    EXPECT_EQ(party.send(2, 0, 2, pattern(30, 4)), VELO_QUEUED);
    for (int i = 0; i < 20; ++i) velo_progress(party[1].engine);
    EXPECT_EQ(arrived(party, 0), 8U);
    party.settle();
    EXPECT_EQ(party[0].received.size(), 15U);
    EXPECT_EQ(party.queued(), party.completed());
}

TEST(RefusalTest, a_long_message_takes_no_more_of_the_receiver_than_its_buffers) {
    for (bool trains : {false, true}) {
        PartyConfig config;
        config.flow_control = "rnr";
        config.preposted_buffers = 4;
        config.packet_trains = trains;
        config.by_reference = "never";
        Party party(config);
        EXPECT_EQ(party.send(0, 1, 1, pattern(56, 1)), VELO_OK);
        EXPECT_EQ(party.send(0, 1, 1, pattern(1000, 2)), VELO_QUEUED);
        EXPECT_EQ(counter(party[0], "data_packets"), 4U);
        party.settle();
        EXPECT_EQ(arrived(party, 1), 2U);
        EXPECT_EQ(party[1].received.back().data, pattern(1000, 2));
    }
}

TEST(RefusalTest, what_was_refused_is_held_for_the_time_and_stays_ahead_of_what_follows) {
    PartyConfig config;
    config.flow_control = "rnr";
    config.preposted_buffers = 2;
    config.rnr_timer_ns = 200'000'000;
    Party party(config);
    auto begin = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < 3; ++i) party.send(0, 1, 1, pattern(20, i));
    EXPECT_EQ(arrived(party, 1), 2U);
    // There is room now, but the third one is held, and the fourth one stays behind it.
    EXPECT_EQ(party.send(0, 1, 1, pattern(20, 3)), VELO_QUEUED);
    std::string late = pattern(20, 4);
    EXPECT_EQ(velo_send_now(party[0].peers[1], 1, late.data(), 4, late.data() + 4, 16), VELO_WOULD_BLOCK);
    while (arrived(party, 1) < 4) velo_progress(party[0].engine);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(party[1].received[i].data, pattern(20, i));
}

fabric::shm::Address announced_by(const Member& member) {
    fabric::shm::Address address;
    std::size_t bytes = 0;
    std::memcpy(&address, velo_engine_address(member.engine, &bytes), sizeof address);
    return address;
}

// As it appears to a process in another user namespace: the file has to be found by its name.
void connect_by_name(const Member& from, const Member& to) {
    fabric::shm::Address foreign = announced_by(to);
    foreign.file.namespaces.user ^= 1;
    velo_peer* peer = nullptr;
    char error[512] = "";
    EXPECT_EQ(velo_peer_connect(from.engine, &foreign, sizeof foreign, &peer, error, sizeof error), VELO_OK)
        << error;
}

bool has_name(const fabric::shm::Address& address) {
    char name[64];
    std::snprintf(name, sizeof name, "/dev/shm/velo-%u-%016llx", address.file.user,
                  static_cast<unsigned long long>(address.file.nonce));
    return std::filesystem::exists(name);
}

TEST(EngineNameTest, a_mailbox_has_no_name_once_its_process_leaves_without_closing) {
    Party party(PartyConfig{}, false);
    std::thread other([&] { connect_by_name(party[1], party[0]); });
    connect_by_name(party[0], party[1]);
    other.join();
    const fabric::shm::Address addresses[] = {announced_by(party[0]), announced_by(party[1])};
    EXPECT_TRUE(has_name(addresses[0]));
    EXPECT_TRUE(has_name(addresses[1]));
    const pid_t child = fork();
    if (child == 0) {
        velo_engine_abandon(party[0].engine);
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(has_name(addresses[0])) << "it is the parent's";
    velo_engine_abandon(party[0].engine);
    EXPECT_FALSE(has_name(addresses[0]));
    party.step();
    EXPECT_FALSE(has_name(addresses[1])) << "all have attached";
}

struct Lingering {
    velo_send send{};
    std::uint64_t content = 0;
    Party* party = nullptr;
    std::uint32_t looks = 0;
    int* left = nullptr;
};

TEST(LingeringTest, one_progress_sends_all_that_waits_while_its_receiver_keeps_up) {
    constexpr int kMessages = 300;
    for (const std::uint32_t looks : {0U, 1000U}) {
        SCOPED_TRACE(looks);
        PartyConfig config;
        config.by_reference = "never";
        Party party(config);
        int left = kMessages;
        std::vector<Lingering> messages(kMessages);
        for (Lingering& message : messages) {
            message.party = &party, message.looks = looks, message.left = &left;
            message.send.part[0] = &message.content;
            message.send.bytes[0] = sizeof message.content;
            message.send.tag = 1;
            message.send.done = [](velo_send* send, velo_status) {
                const auto& done = *reinterpret_cast<Lingering*>(send);
                --*done.left;
                velo_extend_progress((*done.party)[0].engine, done.looks);
                velo_progress((*done.party)[1].engine);
            };
            if (velo_send_start(party[0].engine, party[0].peers[1], &message.send) == VELO_OK) --left;
        }
        const int waiting = left;
        velo_progress(party[1].engine);
        velo_progress(party[0].engine);
        const int gone = waiting - left;
        if (looks == 0)
            EXPECT_LE(gone, 8) << "as many as there are slots";
        else
            EXPECT_EQ(left, 0);
        while (left > 0) party.step();
        party.step();
    }
}

TEST(EngineSetupTest, an_automatic_mailbox_serves_few_and_many_peers) {
    PartyConfig config;
    config.slots_per_peer = 0;
    Party party(config);
    EXPECT_NE(std::string(velo_engine_description(party[0].engine)).find("slots_per_peer 8192 (automatic)"),
              std::string::npos);
}

std::uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t all = 0, resident = 0;
    statm >> all >> resident;
    return resident * 4096;
}

TEST(EngineSetupTest, the_pages_of_few_peers_are_mapped_at_once_and_those_of_many_as_they_are_used) {
    for (const std::size_t size : {4U, 17U}) {
        SCOPED_TRACE(size);
        PartyConfig config;
        config.size = size;
        config.outbox = std::size_t{1} << 19;
        const std::uint64_t before = resident_bytes();
        Party party(config);
        const std::uint64_t added = resident_bytes() - before, pairs = size * (size - 1);
        if (size == 4)
            EXPECT_GE(added, pairs * config.outbox);
        else
            EXPECT_LE(added, pairs * config.outbox / 2);
    }
}

TEST(EngineSetupTest, locality_is_shown_on_request_and_for_each_connection) {
    PartyConfig config;
    EXPECT_EQ(std::string(velo_engine_description(Party(config)[0].engine)).find("processor "),
              std::string::npos);
    config.describe_locality = true;
    Party party(config);
    std::string text = velo_engine_description(party[0].engine);
    EXPECT_TRUE(text.find("; processor") != std::string::npos ||
                text.find("; locality unknown") != std::string::npos)
        << text;
    // The first process of a node says what holds for all of them.
    EXPECT_EQ(text.find("flow_control "), 0U) << text;
    EXPECT_EQ(velo_engine_description(party[1].engine), "rank 101: " + text.substr(text.rfind("; ") + 2))
        << text;
    std::erase_if(party[0].log, [](const std::string& line) { return line.find("route ") == 0; });
    ASSERT_EQ(party[0].log.size(), 1U);
    EXPECT_NE(party[0].log[0].find("connected to rank 101: NUMA node "), std::string::npos)
        << party[0].log[0];
}

TEST(EngineSetupTest, more_peers_than_a_packet_can_name_are_refused_with_a_way_out) {
    constexpr std::uint32_t kMost = 65'535, kSpare = 16;
    std::vector<std::uint64_t> peers(kMost + 1);
    for (std::size_t i = 0; i < peers.size(); ++i) peers[i] = i + 1;
    struct Job {
        std::uint32_t here, elsewhere;
        std::vector<const char*> says;  // nothing: it opens
    };
    for (const Job& job :
         {Job{kMost - kSpare, 0, {}},
          Job{kMost - kSpare + 1,
              0,
              {"65520 peers on this node", "btl_velo_spare_peers 16", "--mca btl ^velo"}},
          Job{kMost + 1, 0, {"65536 peers on this node", "--mca btl ^velo"}},
          Job{1, kMost + 1, {"65536 peers on other nodes", "--mca btl_velo_network none"}}}) {
        SCOPED_TRACE(job.here);
        velo_config config = velo_default_config();
        config.process_name = 1 << 20;
        config.flow_control = "lazy";
        config.backing_directory = "/dev/shm";
        config.max_message_bytes = 1024;
        config.spare_peers = kSpare;
        config.node_peers = config.remote_peers = peers.data();
        config.node_peer_count = job.here;
        config.remote_peer_count = job.elsewhere;
        config.log = [](void*, int, const char*) {};
        velo_engine* engine = nullptr;
        char error[512] = "";
        const velo_status status = velo_engine_open(&config, &engine, error, sizeof error);
        EXPECT_EQ(status, job.says.empty() ? VELO_OK : VELO_ERR_PARAMETER) << error;
        for (const char* words : job.says) EXPECT_NE(std::strstr(error, words), nullptr) << error;
        velo_engine_close(engine);
    }
}

}  // namespace
}  // namespace velo::test
