// Credits between an engine and peers on other nodes, several of whose messages arrive at one look.
#include <chrono>
#include <map>

#include "api/velo_messages.h"
#include "engine_party.h"
#include "messaging/protocol.h"
#include "played_peers.h"

namespace velo::test {
namespace {

class NetworkCredits : public PlayedPeers {
 protected:
    NetworkCredits() : PlayedPeers("static", true) {}

    // Credit packets that a peer has got since the last call.
    std::vector<std::uint32_t> credits_of(const Remote& remote) {
        std::vector<std::uint32_t> values;
        for (const FakeUcx::Message& message : FakeUcx::take_all(remote.worker)) {
            Parcel parcel;
            if (message.id != fabric::ucx::kParcelId || message.data.size() < sizeof parcel) continue;
            std::memcpy(&parcel, message.data.data(), sizeof parcel);
            if (parcel.kind == static_cast<std::uint8_t>(wire::PacketKind::kCredit))
                values.push_back(parcel.value);
        }
        return values;
    }
    // A message that makes a credit packet due.
    void put(Remote& from) {
        const Parcel parcel = parcel_of(from, 2000);
        FakeUcx::send(victim_.worker, {fabric::ucx::kParcelId, {}, joined(bytes_of(parcel), Bytes(2000))});
    }
};

// The credit packet for the first one waits for an answer when that for the second one falls due.
TEST_F(NetworkCredits, that_wait_for_one_peer_are_not_lost_to_another_one) {
    for (int round = 0; round < 3; ++round) {
        const std::size_t before = received_.size();
        put(remotes_[0]);
        put(remotes_[1]);
        settle();
        ASSERT_EQ(received_.size(), before + 2);
        const auto first = credits_of(remotes_[0]), other = credits_of(remotes_[1]);
        ASSERT_EQ(first.size(), 1U) << round;
        EXPECT_EQ(first, other);
        EXPECT_GT(first[0], 0U);
    }
}

TEST_F(NetworkCredits, that_fall_due_twice_at_one_look_travel_in_one_packet) {
    put(remotes_[0]);
    settle();
    const auto once = credits_of(remotes_[0]);
    ASSERT_EQ(once.size(), 1U);
    put(remotes_[1]);
    put(remotes_[1]);
    settle();
    const auto twice = credits_of(remotes_[1]);
    ASSERT_EQ(twice.size(), 1U);
    EXPECT_GE(twice[0], 2 * once[0]);
}

// Once all that it has sent has come, what waits for its credits is lost, as all that is sent to it later.
TEST_F(NetworkCredits, of_a_peer_that_takes_leave_are_waited_for_until_its_last_message_has_come) {
    static int lost;
    lost = 0;
    const auto message = [] {
        velo_send send{};
        send.part[0] = "text";
        send.bytes[0] = 4;
        send.tag = 1;
        send.done = [](velo_send*, velo_status) { ++lost; };
        return send;
    };
    for (Remote& to : remotes_)
        while (velo_send_now(to.peer, 1, "text", 4, nullptr, 0) == VELO_OK) velo_progress(engine_);
    velo_send waiting[2] = {message(), message()}, later = message();
    for (int i = 0; i < 2; ++i)
        ASSERT_EQ(velo_send_start(engine_, remotes_[i].peer, &waiting[i]), VELO_QUEUED);
    say(remotes_[0], "first");
    const std::uint32_t parcels = remotes_[0].sequence + 1;
    PlayedPeers::send(fabric::ucx::kGoodbyeId, bytes_of(Introduction{victim_.key, kNames[0]}),
                      bytes_of(parcels));
    for (int i = 0; i < 100'000; ++i) velo_progress(engine_);
    EXPECT_EQ(lost, 0) << "its last message may have a credit";
    say(remotes_[0], "last");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (lost == 0 && std::chrono::steady_clock::now() < deadline) velo_progress(engine_);
    EXPECT_EQ(lost, 1);
    EXPECT_EQ(velo_send_start(engine_, remotes_[0].peer, &later), VELO_OK);
    say(remotes_[1], "from the other one");
    EXPECT_EQ(received_, (std::vector<std::string>{"first", "last", "from the other one"}));
    EXPECT_TRUE(fatal_.empty()) << fatal_.front();
    EXPECT_EQ(lost, 1);
}

// Messages that a process sends before it looks at the network again.
class NetworkBursts : public PlayedPeers {
 protected:
    static constexpr int kLeaveAtOnce = 8;

    explicit NetworkBursts(const char* flow_control = "static", std::uint32_t slots_per_peer = 64)
        : PlayedPeers(flow_control, false, slots_per_peer) {}

    struct Sent {
        velo_send send;
        NetworkBursts* by;
        std::string text;
    };
    velo_status start(const std::string& text, bool collectable = true) {
        Sent& sent = *sends_.emplace_back(std::make_unique<Sent>());
        sent.by = this;
        sent.text = text;
        sent.send.part[0] = sent.text.data();
        sent.send.bytes[0] = std::min<std::size_t>(sent.text.size(), 14);  // as an upper layer's header
        sent.send.part[1] = sent.text.data() + sent.send.bytes[0];
        sent.send.bytes[1] = sent.text.size() - sent.send.bytes[0];
        sent.send.tag = 1;
        sent.send.collectable = collectable;
        sent.send.done = [](velo_send* send, velo_status) { ++reinterpret_cast<Sent*>(send)->by->left_; };
        return velo_send_start(engine_, remotes_[0].peer, &sent.send);
    }
    // What the peer has got since the last call: the texts in each message of UCX.
    std::vector<std::vector<std::string>> got() {
        std::vector<std::vector<std::string>> all;
        for (const FakeUcx::Message& message : FakeUcx::take_all(remotes_[0].worker)) {
            if (message.id != fabric::ucx::kParcelId && message.id != fabric::ucx::kParcelsId) continue;
            std::vector<std::string>& texts = all.emplace_back();
            for (std::size_t at = 0; at < message.data.size();) {
                Parcel parcel;
                if (message.data.size() - at < sizeof parcel) {
                    texts.emplace_back("half a parcel");
                    break;
                }
                std::memcpy(&parcel, message.data.data() + at, sizeof parcel);
                kinds_.push_back(static_cast<wire::PacketKind>(parcel.kind));
                EXPECT_EQ(parcel.sequence, parcels_++);
                at += sizeof parcel;
                texts.emplace_back(reinterpret_cast<const char*>(message.data.data()) + at, parcel.bytes);
                at += parcel.bytes;
            }
        }
        return all;
    }
    void credit(std::uint32_t packets) {
        Parcel parcel = parcel_of(remotes_[0], 0, 0);
        parcel.kind = static_cast<std::uint8_t>(wire::PacketKind::kCredit);
        parcel.value = packets;
        parcel.run_packets = 1;
        say(parcel, {});
    }
    // As many as leave at once.
    void begin() {
        for (int i = 0; i < kLeaveAtOnce; ++i) ASSERT_EQ(start("first"), VELO_OK);
        ASSERT_EQ(got().size(), std::size_t{kLeaveAtOnce});
    }

    std::vector<std::unique_ptr<Sent>> sends_;
    std::vector<wire::PacketKind> kinds_;
    std::uint32_t parcels_ = 0;
    int left_ = 0;
};

TEST_F(NetworkBursts, leave_message_by_message_and_then_together_at_the_next_look) {
    begin();
    EXPECT_EQ(velo_send_now(remotes_[0].peer, 1, "text", 4, nullptr, 0), VELO_WOULD_BLOCK);
    EXPECT_EQ(start("a"), VELO_QUEUED);
    EXPECT_EQ(start("bc"), VELO_QUEUED);
    EXPECT_EQ(start(std::string(200, 'd')), VELO_QUEUED);
    EXPECT_TRUE(got().empty());
    EXPECT_EQ(left_, 0);
    velo_progress(engine_);
    const std::vector<std::vector<std::string>> together{{"a", "bc", std::string(200, 'd')}};
    EXPECT_EQ(got(), together);
    EXPECT_EQ(left_, 3);
    EXPECT_EQ(start("the next burst"), VELO_OK);
    EXPECT_EQ(got().size(), 1U);
}

// Nobody may look before the program computes.
TEST_F(NetworkBursts, are_none_of_messages_that_are_done_for_their_owner_once_they_are_copied) {
    for (int i = 0; i < 3 * kLeaveAtOnce; ++i) EXPECT_EQ(start("text", false), VELO_OK);
    EXPECT_EQ(got().size(), std::size_t{3 * kLeaveAtOnce});
}

TEST_F(NetworkBursts, leave_before_a_message_that_may_not_wait) {
    begin();
    EXPECT_EQ(start("a"), VELO_QUEUED);
    EXPECT_EQ(start("b"), VELO_QUEUED);
    EXPECT_EQ(start("at once", false), VELO_OK);
    const std::vector<std::vector<std::string>> in_order{{"a", "b"}, {"at once"}};
    EXPECT_EQ(got(), in_order);
    EXPECT_EQ(start("c"), VELO_QUEUED);
    velo_progress(engine_);
    EXPECT_EQ(got(), (std::vector<std::vector<std::string>>{{"c"}}));
    EXPECT_EQ(left_, 3);
}

TEST_F(NetworkBursts, wait_for_credits_when_those_are_used_up) {
    constexpr int kMessages = 60;
    begin();
    for (int i = 0; i < kMessages; ++i) EXPECT_EQ(start(std::to_string(i)), VELO_QUEUED);
    settle();
    const int with_credits = left_;
    EXPECT_GT(with_credits, 0);
    EXPECT_LT(with_credits, kMessages);
    EXPECT_EQ(got().size(), 1U);
    credit(40);
    EXPECT_EQ(left_, kMessages);
    const auto more = got();
    ASSERT_EQ(more.size(), 1U);
    EXPECT_EQ(more[0].size(), static_cast<std::size_t>(kMessages - with_credits));
    EXPECT_EQ(more[0][0], std::to_string(with_credits));
    EXPECT_TRUE(fatal_.empty());
}

// UCX looks at the data of what it cannot send yet later; the sender may have changed it by then.
TEST_F(NetworkBursts, arrive_as_they_were_sent_when_the_network_was_busy) {
    FakeUcx::is_busy = true;
    std::string text = "as it was", rest = std::string(150, 'r');
    EXPECT_EQ(velo_send_now(remotes_[0].peer, 1, text.data(), text.size(), rest.data(), rest.size()),
              VELO_OK);
    const std::string sent = text + rest;
    text.assign(text.size(), '-');
    rest.assign(rest.size(), '-');
    EXPECT_TRUE(got().empty());
    FakeUcx::free_network();
    const std::vector<std::vector<std::string>> once{{sent}};
    EXPECT_EQ(got(), once);
}

class LongNetworkBursts : public NetworkBursts {
 protected:
    static constexpr std::size_t kLong = 20'000;

    LongNetworkBursts() : NetworkBursts("static", 16'384) {}

    // As "c 3, d 1": a text of three times c and one of once d.
    static std::string short_of(const std::vector<std::string>& texts) {
        std::string all;
        for (const std::string& text : texts)
            for (std::size_t at = 0, end; at < text.size(); at = end) {
                end = std::min(text.find_first_not_of(text[at], at), text.size());
                all += std::string(all.empty() ? ""
                                   : at == 0   ? ", "
                                               : "+") +
                       text[at] + ' ' + std::to_string(end - at);
            }
        return all;
    }
};

// The memory is the sender's again when the message has left, and not before: what it changes too early
// shows.
TEST_F(LongNetworkBursts, are_taken_from_where_they_are_unless_their_owner_may_compute) {
    FakeUcx::is_busy = true;
    for (const bool collectable : {false, true}) {
        const bool waits = start(std::string(kLong, 'a'), collectable) == VELO_QUEUED;
        EXPECT_EQ(waits, collectable);
        sends_.back()->text.assign(kLong, 'b');
    }
    EXPECT_TRUE(fatal_.empty());
    EXPECT_EQ(left_, 0);
    FakeUcx::free_network();
    std::vector<std::string> arrived;
    for (const std::vector<std::string>& together : got()) arrived.push_back(short_of(together));
    EXPECT_EQ(arrived, (std::vector<std::string>{"a 20000", "a 14+b 19986"}));
    velo_progress(engine_);
    EXPECT_EQ(left_, 1);
}

// What has waited for credits leaves at one time.
TEST_F(LongNetworkBursts, leave_in_order_with_short_ones_and_not_too_many_at_once) {
    std::string sent, arrived;  // one may leave in two parts
    std::size_t most = 0;
    const auto take = [&] {
        for (const std::vector<std::string>& together : got()) {
            std::size_t bytes = 0;
            for (const std::string& text : together) {
                bytes += sizeof(Parcel) + text.size();
                arrived += text;
            }
            most = std::max(most, bytes);
        }
    };
    for (int i = 0; i < 120; ++i) {
        const std::string text(i % 3 == 0 ? 5 : kLong, static_cast<char>('a' + i % 26));
        start(text);
        sent += text;
    }
    settle();
    take();
    EXPECT_LT(arrived.size(), sent.size());
    credit(16'000);
    settle();
    take();
    EXPECT_EQ(short_of({arrived}), short_of({sent}));
    EXPECT_GT(most, std::size_t{96} * 1024);
    EXPECT_LE(most, std::size_t{128} * 1024);
}

class NetworkBurstsWithoutCredits : public NetworkBursts {
 protected:
    NetworkBurstsWithoutCredits() : NetworkBursts("none") {}
};

TEST_F(NetworkBurstsWithoutCredits, leave_before_the_next_look_once_they_are_long) {
    begin();
    const std::string text(1000, 't');
    for (int i = 0; i < 32; ++i) EXPECT_EQ(start(text), VELO_QUEUED);
    EXPECT_TRUE(got().empty());
    EXPECT_EQ(start(text), VELO_QUEUED);
    const auto together = got();
    ASSERT_EQ(together.size(), 1U);
    EXPECT_EQ(together[0].size(), 33U);
}

// Else a send would be done before it has left, and its process might compute then.
TEST_F(NetworkBurstsWithoutCredits, are_done_when_the_network_holds_nothing_of_them) {
    FakeUcx::is_busy = true;
    EXPECT_EQ(start("held"), VELO_QUEUED);
    EXPECT_EQ(velo_send_now(remotes_[0].peer, 1, "text", 4, nullptr, 0), VELO_WOULD_BLOCK);
    EXPECT_EQ(start("for others", false), VELO_OK);
    for (int i = 0; i < kLeaveAtOnce; ++i) EXPECT_EQ(start("another"), VELO_QUEUED);
    for (int i = 0; i < 3; ++i) velo_progress(engine_);
    EXPECT_EQ(left_, 0);
    EXPECT_EQ(velo_counter_value(engine_, counter_index("stalls")), 1U);
    FakeUcx::free_network();
    EXPECT_EQ(left_, 0);
    velo_progress(engine_);
    EXPECT_EQ(left_, 1 + kLeaveAtOnce);
    EXPECT_EQ(velo_counter_value(engine_, counter_index("stalls")), 1U);
    EXPECT_EQ(velo_send_now(remotes_[0].peer, 1, "text", 4, nullptr, 0), VELO_OK);
    const std::string longer(40'000, 't');
    EXPECT_EQ(velo_send_now(remotes_[0].peer, 1, longer.data(), longer.size(), nullptr, 0), VELO_WOULD_BLOCK);
}

class NetworkBurstsThatTellOfABacklog : public NetworkBursts {
 protected:
    NetworkBurstsThatTellOfABacklog() : NetworkBursts("mvapich_dynamic") {}
};

// Their receiver would widen the window for those that have waited for credits.
TEST_F(NetworkBurstsThatTellOfABacklog, have_not_waited_for_credits) {
    credit(100);
    begin();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(start("text"), VELO_QUEUED);
    velo_progress(engine_);
    EXPECT_EQ(got().size(), 1U);
    EXPECT_EQ(kinds_, std::vector<wire::PacketKind>(kLeaveAtOnce + 10, wire::PacketKind::kData));
}

class RefusingNetwork : public PlayedPeers {
 protected:
    RefusingNetwork() : PlayedPeers("rnr") {}

    velo_status send() { return velo_send_now(remotes_[0].peer, engine::kSinkTag, "text", 4, nullptr, 0); }
    void report(std::uint64_t retrieved) {
        PlayedPeers::send(fabric::ucx::kRetrievedId, bytes_of(Introduction{victim_.key, kNames[0]}),
                          bytes_of(retrieved));
    }
};

TEST_F(RefusingNetwork, reports_that_overtake_each_other_do_not_count_backwards) {
    EXPECT_EQ(send(), VELO_OK);
    EXPECT_EQ(send(), VELO_OK);
    EXPECT_EQ(send(), VELO_WOULD_BLOCK);
    report(2);
    report(1);
    EXPECT_EQ(send(), VELO_OK);
    EXPECT_EQ(send(), VELO_OK);
    EXPECT_EQ(send(), VELO_WOULD_BLOCK);
}

// Peers have 64 slots for each other. What is announced is sent when its sender makes progress.
class NetworkMessages : public PlayedPeers {
 protected:
    NetworkMessages() : PlayedPeers("static") {}

    // Bytes that the first peer has got since the last call, with and without an announcement by UCX.
    struct Got {
        std::size_t at_once = 0, announced = 0;
    };
    Got got() {
        Got got;
        for (const FakeUcx::Message& message : FakeUcx::take_all(remotes_[0].worker)) {
            if (message.id == fabric::ucx::kParcelId) got.at_once += message.data.size() - sizeof(Parcel);
            if (message.announced) got.announced += message.data.size();
        }
        return got;
    }
    void start(std::size_t bytes) {
        velo_send& send = *sends_.emplace_back(std::make_unique<velo_send>());
        send.part[0] = text_.data();
        send.bytes[0] = bytes;
        send.tag = 1;
        send.done = [](velo_send*, velo_status) {};
        velo_send_start(engine_, remotes_[0].peer, &send);
    }

    const std::string text_ = std::string(4096, 'x');
    std::vector<std::unique_ptr<velo_send>> sends_;
};

TEST_F(NetworkMessages, of_half_of_the_slots_wait_for_credits_rather_than_be_announced) {
    for (int i = 0; i < 6; ++i) start(1500);
    const Got sent = got();
    EXPECT_EQ(sent.announced, 0U);
    EXPECT_GT(sent.at_once, 2 * 1500U) << "as much as the credits allow";
    EXPECT_LT(sent.at_once, 6 * 1500U);
}

TEST_F(NetworkMessages, of_more_than_all_of_the_slots_leave_in_parts) {
    start(4096);
    const Got sent = got();
    EXPECT_EQ(sent.announced, 0U);
    EXPECT_GT(sent.at_once, 3000U) << "as much as the credits allow";
    EXPECT_LT(sent.at_once, 4096U);
}

// A messenger on that engine, and another one's idea of a share.
class NetworkMatching : public NetworkMessages {
 protected:
    ~NetworkMatching() override { velo_messenger_close(messenger_); }

    void open(bool everywhere) {
        const velo_messenger_config config{1000, 1 << 20, 1 << 20, 4, everywhere};
        char error[512] = "";
        ASSERT_EQ(velo_messenger_open(engine_, &config, &messenger_, error, sizeof error), VELO_OK) << error;
        std::size_t bytes = 0;
        const void* address = velo_messenger_address(messenger_, &bytes);
        ASSERT_EQ(velo_messenger_connect(messenger_, remotes_[0].peer, address, bytes), VELO_OK);
    }
    velo_messenger_state after_sending(std::size_t bytes, velo_send_mode mode = VELO_SEND_STANDARD) {
        velo_message_send& send = *messages_.emplace_back(std::make_unique<velo_message_send>());
        send.done = [](velo_message_send*, velo_status) {};
        velo_message_start(messenger_, remotes_[0].peer, 0, 0, 7, text_.data(), bytes, mode, &send);
        velo_messenger_state state;
        velo_messenger_observe(messenger_, &state);
        return state;
    }

    velo_messenger* messenger_ = nullptr;
    std::vector<std::unique_ptr<velo_message_send>> messages_;
};

TEST_F(NetworkMatching, sends_to_another_node_at_once_what_half_of_the_slots_hold) {
    open(false);
    EXPECT_EQ(after_sending(2000).eager, 1U);
    EXPECT_EQ(got().at_once, 2016U);
    const velo_messenger_state state = after_sending(2048);
    EXPECT_EQ(state.eager, 1U);
    EXPECT_EQ(state.rendezvous, 1U);
    EXPECT_EQ(state.degraded, 0U);
}

TEST_F(NetworkMatching, collects_what_is_waited_for_and_not_what_is_buffered) {
    constexpr unsigned kMessages = 12, kLeaveAtOnce = 8, kBytes = 24;
    open(false);
    for (const auto mode : {VELO_SEND_BUFFERED, VELO_SEND_STANDARD}) {
        velo_progress(engine_);
        for (unsigned i = 0; i < kMessages; ++i) after_sending(8, mode);
        EXPECT_EQ(got().at_once, kBytes * (mode == VELO_SEND_BUFFERED ? kMessages : kLeaveAtOnce));
    }
}

TEST_F(NetworkMatching, announces_to_another_node_whatever_is_beyond_a_limit_that_holds_everywhere) {
    open(true);
    EXPECT_EQ(after_sending(1000).eager, 1U);
    EXPECT_EQ(after_sending(1001).rendezvous, 1U);
}

TEST_F(NetworkMatching, finds_room_that_was_given_back_before_a_message_goes_by_rendezvous) {
    open(false);
    velo_messenger_state state{};
    while (state.degraded == 0) state = after_sending(800);
    const std::uint64_t eager = state.eager;
    const messaging::Header header{{}, 100, messaging::Kind::kCredits, 0};
    Parcel parcel = parcel_of(remotes_[0], sizeof header);
    parcel.tag = engine::kSinkTag;
    FakeUcx::send(victim_.worker, {fabric::ucx::kParcelId, {}, joined(bytes_of(parcel), bytes_of(header))});
    state = after_sending(800);
    EXPECT_EQ(state.eager, eager + 1);
    EXPECT_EQ(state.degraded, 1U);
}

}  // namespace
}  // namespace velo::test
