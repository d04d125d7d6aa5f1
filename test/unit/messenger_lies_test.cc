// Messengers whose peer lies: about what it was sent, offered and asked, and about whose it is.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "api/handle.h"
#include "exact_memory.h"
#include "lying_peer.h"
#include "messaging/announcements.h"
#include "messaging/protocol.h"
#include "messenger_party.h"

namespace velo::test {
namespace {

using messaging::AnnounceHeader;
using messaging::Announcement;
using messaging::Announcements;
using messaging::Answer;
using messaging::AnswerHeader;
using messaging::AskHeader;
using messaging::DoneHeader;
using messaging::Header;
using messaging::Kind;
using messaging::OfferHeader;
using messaging::ProbeHeader;
using messaging::RendezvousHeader;
using messaging::SynchronousHeader;

// Rank 0 is lied to in the names of ranks 1 and 2. Without a pool every message is a rendezvous, of which
// four may be under way.
class MessengerLies : public ::testing::Test {
 protected:
    static constexpr velo_messenger_config kTight{8192, 0, 0, 4, false};
    static constexpr int kUnderWay = 4;

    explicit MessengerLies(const char* single_copy = "copy")
        : party_(config(single_copy), kTight),
          first_(party_.party[0].engine, 0),
          other_(party_.party[0].engine, 1) {}

    static PartyConfig config(const char* single_copy) {
        PartyConfig config;
        config.size = 3;
        config.slots_per_peer = 64;
        config.single_copy = single_copy;
        return config;
    }
    template <typename Message>
    void say(LyingPeer& liar, const Message& message, std::size_t bytes = sizeof(Message)) {
        liar.store(wire::kFirst | wire::kLast, engine::kSinkTag,
                   std::string_view(reinterpret_cast<const char*>(&message), bytes));
        velo_progress(party_.party[0].engine);
    }
    static Header header(Kind kind, matching::Key key = {0, 1, 5}) { return {key, 0, kind, 0}; }
    // Of the sends of rank 0, counted from 0: the ids of a new messenger are easily guessed.
    static std::uint64_t id_of(std::uint64_t send) { return std::uint64_t{1} << 32 | send; }
    static DoneHeader done(std::uint64_t send) { return {header(Kind::kDone, {0, 0, 0}), id_of(send)}; }
    std::size_t failures() { return party_.party[0].fatal.size(); }

    MessengerParty party_;
    LyingPeer first_, other_;
};

TEST_F(MessengerLies, the_right_acknowledgement_ends_a_send) {
    const Transfer& send = party_.send(0, 1, 5, "text");
    say(first_, done(0));
    EXPECT_TRUE(send.done);
    EXPECT_EQ(failures(), 0U);
}

TEST_F(MessengerLies, another_peer_cannot_acknowledge_a_send) {
    const Transfer& send = party_.send(0, 1, 5, "text");
    say(other_, done(0));
    EXPECT_FALSE(send.done);
    EXPECT_EQ(failures(), 1U);
}

TEST_F(MessengerLies, a_send_is_not_acknowledged_twice) {
    party_.send(0, 1, 5, "text");
    say(first_, done(0));
    say(first_, done(0));
    EXPECT_EQ(failures(), 1U);
}

// Its memory is the program's again when it is done: it must have left the backlog.
TEST_F(MessengerLies, a_message_that_is_held_back_is_not_acknowledged_before_it_leaves) {
    for (int i = 0; i < kUnderWay; ++i) party_.send(0, 1, 5, "under way");
    const Transfer& held = party_.send(0, 1, 5, "held back");
    ASSERT_EQ(party_.state(0).held, 1U);
    say(first_, done(kUnderWay));
    EXPECT_FALSE(held.done);
    EXPECT_EQ(failures(), 1U);
}

TEST_F(MessengerLies, nor_while_it_is_only_offered) {
    for (int i = 0; i < kUnderWay; ++i) party_.send(0, 1, 5, "under way");
    const Transfer& held = party_.send(0, 1, 6, "held back");
    say(first_, AskHeader{header(Kind::kAsk, {0, 0, 6}), 3});
    say(first_, done(kUnderWay));
    EXPECT_FALSE(held.done);
    EXPECT_EQ(failures(), 1U);
}

TEST_F(MessengerLies, an_offer_that_is_accepted_is_acknowledged) {
    for (int i = 0; i < kUnderWay; ++i) party_.send(0, 1, 5, "under way");
    const Transfer& held = party_.send(0, 1, 6, "held back");
    say(first_, AskHeader{header(Kind::kAsk, {0, 0, 6}), 3});
    say(first_, AnswerHeader{header(Kind::kAnswer, {0, 0, 6}), id_of(kUnderWay), 3, Answer::kAccepted});
    say(first_, done(kUnderWay));
    EXPECT_TRUE(held.done);
    EXPECT_EQ(failures(), 0U);
}

TEST_F(MessengerLies, an_answer_to_an_offer_that_was_not_made_is_refused) {
    const auto answer = [](std::uint64_t send) {
        return AnswerHeader{header(Kind::kAnswer, {0, 0, 6}), id_of(send), 3, Answer::kAccepted};
    };
    say(first_, answer(0));
    EXPECT_EQ(failures(), 1U) << "nothing is held back";
}

TEST_F(MessengerLies, nor_is_one_for_a_message_that_nobody_has_asked_for) {
    for (int i = 0; i < kUnderWay; ++i) party_.send(0, 1, 5, "under way");
    const Transfer& held = party_.send(0, 1, 6, "held back");
    say(first_, AnswerHeader{header(Kind::kAnswer, {0, 0, 6}), id_of(kUnderWay), 3, Answer::kAccepted});
    EXPECT_EQ(failures(), 1U);
    EXPECT_EQ(party_.state(0).held, 1U);
    EXPECT_FALSE(held.done);
}

TEST_F(MessengerLies, nor_one_with_the_id_of_another_message) {
    for (int i = 0; i < kUnderWay; ++i) party_.send(0, 1, 5, "under way");
    party_.send(0, 1, 6, "held back");
    say(first_, AskHeader{header(Kind::kAsk, {0, 0, 6}), 3});
    say(first_, AnswerHeader{header(Kind::kAnswer, {0, 0, 6}), id_of(0), 3, Answer::kAccepted});
    EXPECT_EQ(failures(), 1U);
    EXPECT_EQ(party_.state(0).held, 1U);
}

TEST_F(MessengerLies, nor_one_of_another_peer) {
    for (int i = 0; i < kUnderWay; ++i) party_.send(0, 1, 5, "under way");
    party_.send(0, 1, 6, "held back");
    say(first_, AskHeader{header(Kind::kAsk, {0, 0, 6}), 3});
    say(other_, AnswerHeader{header(Kind::kAnswer, {0, 0, 6}), id_of(kUnderWay), 3, Answer::kAccepted});
    EXPECT_EQ(failures(), 1U);
    EXPECT_EQ(party_.state(0).held, 1U);
}

// Whatever the verdict says of a ticket that was not the offer's, the ask that was made stays.
TEST_F(MessengerLies, an_answer_with_a_foreign_ticket_takes_no_ask_away) {
    for (int i = 0; i < kUnderWay; ++i) party_.send(0, 1, 5, "under way");
    party_.send(0, 1, 6, "held back");
    say(first_, AskHeader{header(Kind::kAsk, {0, 0, 6}), 3});
    for (Answer verdict : {Answer::kGone, Answer::kLater, Answer::kGone})
        say(first_, AnswerHeader{header(Kind::kAnswer, {0, 0, 6}), id_of(kUnderWay), 99, verdict});
    EXPECT_EQ(failures(), 0U) << "each is answered by another offer";
    EXPECT_EQ(party_.state(0).held, 1U);
    say(first_, AnswerHeader{header(Kind::kAnswer, {0, 0, 6}), id_of(kUnderWay), 3, Answer::kAccepted});
    EXPECT_EQ(failures(), 0U);
    EXPECT_EQ(party_.state(0).held, 0U);
}

// --- what a receiver is told

OfferHeader offer_of(std::uint64_t ticket, std::int32_t tag = 5) {
    return {{{{0, 1, tag}, 0, Kind::kOffer, 0}, 9, 4096, 4}, ticket};
}

TEST_F(MessengerLies, an_offer_for_a_ticket_that_nobody_holds_gets_no_receive) {
    const Transfer& waits = party_.receive(0, 1, 5);
    for (std::uint64_t ticket : {1ULL, 77ULL, ~0ULL}) say(first_, offer_of(ticket));
    say(first_, offer_of(0, 6));  // the right ticket, which the message does not match
    EXPECT_EQ(party_.state(0).matched_at_once, 0U);
    EXPECT_FALSE(waits.done);
    EXPECT_EQ(failures(), 0U);
}

TEST_F(MessengerLies, an_offer_for_a_younger_receive_does_not_get_the_older_one) {
    const Transfer& older = party_.receive(0, VELO_ANY_SOURCE, 5);
    const Transfer& younger = party_.receive(0, 1, 5);
    say(first_, offer_of(1));
    EXPECT_EQ(party_.state(0).matched_at_once, 0U);
    EXPECT_FALSE(older.done || younger.done);
    say(first_, offer_of(0));
    EXPECT_EQ(party_.state(0).matched_at_once, 1U);
}

TEST_F(MessengerLies, answers_to_probes_that_were_not_made_have_no_effect) {
    say(first_, ProbeHeader{header(Kind::kSeen), 1, 5, 9, 100, 0});
    say(first_, ProbeHeader{header(Kind::kTaken), 1, 5, 9, 100, 4096});
    velo_key found;
    std::size_t bytes;
    EXPECT_FALSE(velo_message_probe(party_.at(0), {0, 1, 5}, &found, &bytes));
    EXPECT_EQ(party_.state(0).headers, 0U);
    EXPECT_EQ(failures(), 0U);
}

TEST_F(MessengerLies, a_message_that_was_only_asked_about_is_not_handed_over) {
    say(first_, header(Kind::kHolding, {0, 0, 1}));
    velo_key found;
    std::size_t bytes;
    EXPECT_FALSE(velo_message_probe(party_.at(0), {0, 1, 5}, &found, &bytes));
    say(first_, ProbeHeader{header(Kind::kTaken), 1, 5, 9, 100, 4096});
    EXPECT_EQ(party_.state(0).headers, 0U);
    say(first_, ProbeHeader{header(Kind::kSeen), 1, 5, 9, 100, 0});
    EXPECT_TRUE(velo_message_probe(party_.at(0), {0, 1, 5}, &found, &bytes)) << "the answer that was due";
    EXPECT_EQ(bytes, 100U);
}

// Neither end touches what is not the message's or the receive's: both are exactly so long.
TEST_F(MessengerLies, no_more_is_fetched_than_there_is_room_for) {
    const std::string sent = pattern(10, 1);
    const ExactMemory source(sent.data(), sent.size());
    const Transfer& receive = party_.receive(0, 1, 5, source.size());
    say(first_, RendezvousHeader{header(Kind::kRendezvous), 9, reinterpret_cast<std::uint64_t>(source.data()),
                                 ~std::uint64_t{0}});
    party_.settle();
    EXPECT_EQ(receive.receive.bytes, ~std::uint64_t{0});
    EXPECT_TRUE(receive.done);
    EXPECT_EQ(receive.text(), sent);
}

TEST_F(MessengerLies, a_receive_in_a_cell_that_does_not_exist_is_refused) {
    const std::string text(10000, 'x');
    say(first_, AnnounceHeader{header(Kind::kAnnounce, {0, 0, 5}), 8, text.size(),
                               rma::ticket_of(fabric::shm::kShareCells - 1, 1), 0});
    EXPECT_EQ(failures(), 0U);
    const Transfer& send = party_.send(0, 1, 5, text);
    EXPECT_FALSE(send.done);
    say(first_, AnnounceHeader{header(Kind::kAnnounce, {0, 0, 5}), 8, text.size(),
                               rma::ticket_of(fabric::shm::kShareCells, 1), 0});
    EXPECT_EQ(failures(), 1U);
}

class MessengerLiesReached : public MessengerLies {
 protected:
    MessengerLiesReached() : MessengerLies("auto") {}
};

// A cell that nobody has opened, and addresses that cannot be: the message waits for its acknowledgement.
TEST_F(MessengerLiesReached, an_announcement_that_is_a_lie_is_worth_nothing) {
    const std::string text(10000, 'x');
    std::uint64_t sends = 0;
    for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{8}, ~std::uint64_t{0}})
        for (const std::uint64_t bytes : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{10000}})
            for (const std::uint32_t generation : {0U, 1U}) {
                const auto cell = static_cast<unsigned>(sends) % fabric::shm::kShareCells;
                say(first_, AnnounceHeader{header(Kind::kAnnounce, {0, 0, 5}), address, bytes,
                                           rma::ticket_of(cell, generation), 0});
                const Transfer& send = party_.send(0, 1, 5, text);
                party_.settle();
                EXPECT_FALSE(send.done);
                say(first_, DoneHeader{header(Kind::kDone, {0, 0, 0}), (sends + 1) << 32});
                ASSERT_TRUE(send.done) << sends << ' ' << (failures() > 0 ? party_.party[0].fatal[0] : "");
                ++sends;
            }
    EXPECT_EQ(failures(), 0U);
    EXPECT_EQ(party_.state(0).placed, 0U);
}

// What was to be copied when there is time for it has no place to be told of any more.
TEST_F(MessengerLiesReached, help_that_is_queued_when_a_messenger_closes_is_not_given) {
    const std::string text(100000, 'x');
    for (const bool closes : {false, true}) {
        std::string target(text.size(), '.');
        const std::optional<std::uint32_t> ticket =
            party_.party[1].engine->engine.large().announce(*party_.party[1].peers[0], text.size());
        if (!ticket) GTEST_SKIP() << "no memory can be reached";
        Header announcement = header(Kind::kAnnounce, {0, 0, 5});
        announcement.unused = 1;  // when idle
        say(first_, AnnounceHeader{announcement, reinterpret_cast<std::uint64_t>(target.data()), text.size(),
                                   *ticket, 0});
        EXPECT_FALSE(party_.send(0, 1, 5, text).done);
        if (closes) party_.close(0);
        for (int looks = 0; looks < 1000; ++looks) velo_progress(party_.party[0].engine);
        EXPECT_EQ(target, closes ? std::string(text.size(), '.') : text);
    }
}

TEST(AnnouncementsTest, one_of_a_cell_and_one_of_a_key_are_kept) {
    Announcements announcements;
    for (std::int32_t tag = 0; tag < 1000; ++tag)
        announcements.put({{0, 0, tag},
                           0,
                           100,
                           rma::ticket_of(static_cast<unsigned>(tag) % fabric::shm::kShareCells, 1),
                           false});
    EXPECT_EQ(announcements.size(), fabric::shm::kShareCells);
    EXPECT_FALSE(announcements.take({0, 0, 1}, 100)) << "its cell has another";
    EXPECT_FALSE(announcements.take({0, 0, 999}, 99)) << "another length";
    EXPECT_FALSE(announcements.take({0, 0, 999}, 100)) << "it is taken";
    EXPECT_TRUE(announcements.take({0, 0, 998}, 100));
    announcements.put({{0, 0, 997}, 0, 50, rma::ticket_of(3, 2), false});
    EXPECT_FALSE(announcements.take({0, 0, 997}, 100)) << "the older one";
}

struct CutOff {
    Kind kind;
    std::size_t bytes;
};

class MessengerCutOff : public MessengerLies, public ::testing::WithParamInterface<CutOff> {};

TEST_P(MessengerCutOff, a_header_that_is_a_byte_too_short_is_refused) {
    char text[sizeof(OfferHeader) + sizeof(ProbeHeader)] = {};
    const Header start = header(GetParam().kind);
    std::memcpy(text, &start, sizeof start);
    say(first_, text, GetParam().bytes - 1);
    EXPECT_EQ(failures(), 1U);
    ASSERT_FALSE(party_.party[0].fatal.empty());
    EXPECT_NE(party_.party[0].fatal[0].find("shorter than its header"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, MessengerCutOff,
    ::testing::Values(CutOff{Kind::kEager, sizeof(Header)},
                      CutOff{Kind::kSynchronous, sizeof(SynchronousHeader)},
                      CutOff{Kind::kRendezvous, sizeof(RendezvousHeader)},
                      CutOff{Kind::kDone, sizeof(DoneHeader)}, CutOff{Kind::kCredits, sizeof(Header)},
                      CutOff{Kind::kHolding, sizeof(Header)}, CutOff{Kind::kAsk, sizeof(AskHeader)},
                      CutOff{Kind::kOffer, sizeof(OfferHeader)}, CutOff{Kind::kAnswer, sizeof(AnswerHeader)},
                      CutOff{Kind::kPeek, sizeof(ProbeHeader)}, CutOff{Kind::kSeen, sizeof(ProbeHeader)},
                      CutOff{Kind::kTake, sizeof(ProbeHeader)}, CutOff{Kind::kTaken, sizeof(ProbeHeader)},
                      CutOff{Kind::kAnnounce, sizeof(AnnounceHeader)}),
    [](const auto& info) { return "kind" + std::to_string(static_cast<int>(info.param.kind)); });

TEST_F(MessengerLies, a_kind_that_does_not_exist_is_refused) {
    say(first_, header(static_cast<Kind>(15)));
    EXPECT_EQ(failures(), 1U);
}

}  // namespace
}  // namespace velo::test
