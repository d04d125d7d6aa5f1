// What no correct peer sends: the engine says so once, holds no lock meanwhile, and looks at nothing more.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "engine/engine.h"
#include "engine_party.h"
#include "fabric/shm/segment.h"

namespace velo::test {
namespace {

// Stores into the mailbox of a member as its peer with the name 101 would.
class Offender {
 public:
    explicit Offender(Member& victim)
        : victim_(victim), mailbox_(segment_of(victim.engine)), source_(mailbox_.senders().claim(101, 0)) {}

    void store(wire::PacketKind kind, std::uint32_t value = 0) {
        auto writer = mailbox_.writer();
        const mailbox::Cursor at = writer.reserve(1);
        std::memcpy(writer.payload(at), &value, sizeof value);
        writer.publish(at, {kind, wire::kFirst | wire::kLast, 7, sizeof value, 0, source_});
        velo_progress(victim_.engine);
    }
    void ring() {
        mailbox_.doorbell().ring(source_);
        velo_progress(victim_.engine);
    }

 private:
    Member& victim_;
    fabric::shm::Segment mailbox_;
    flow::PeerIndex source_;
};

struct Offence {
    const char* name;
    const char* flow_control;
    void (*commit)(Offender& offender);
    const char* text;
};

const Offence kOffences[] = {
    {"packet_of_another_policy", "dynamic",
     [](Offender& offender) { offender.store(wire::PacketKind::kHello); }, "no correct peer sends"},
    {"answer_to_nothing", "lazy", [](Offender& offender) { offender.store(wire::PacketKind::kBye); },
     "no correct peer sends"},
    {"data_without_a_window", "lazy", [](Offender& offender) { offender.store(wire::PacketKind::kData); },
     "more packets than it has credits for"},
    {"data_after_the_window_was_given_back", "lazy",
     [](Offender& offender) {
         offender.ring();
         offender.store(wire::PacketKind::kLeave);
         // What it was given: half of all, the rest is for the next one.
         offender.store(wire::PacketKind::kBye, PartyConfig().lazy_slots / 2);
         offender.store(wire::PacketKind::kData);
     },
     "more packets than it has credits for"},
    {"doorbell_of_a_peer_with_a_window", "lazy",
     [](Offender& offender) {
         offender.ring();
         offender.ring();
     },
     "no correct peer rings"},
};

class OffenceTest : public ::testing::TestWithParam<Offence> {
 protected:
    OffenceTest() {
        engine::Engine::violations_abort = false;
        config_.flow_control = GetParam().flow_control;
    }
    ~OffenceTest() override { engine::Engine::violations_abort = true; }

    static void commit(Party& party) {
        Offender offender(party[0]);
        GetParam().commit(offender);
        for (int i = 0; i < 100; ++i) velo_progress(party[0].engine);
    }

    PartyConfig config_;
};

INSTANTIATE_TEST_SUITE_P(Each, OffenceTest, ::testing::ValuesIn(kOffences),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(OffenceTest, is_told_once) {
    Party party(config_);
    commit(party);
    ASSERT_EQ(party[0].fatal.size(), 1U);
    EXPECT_NE(party[0].fatal[0].find(GetParam().text), std::string::npos) << party[0].fatal[0];
}

// The upper layer exits, and what runs at exit takes the engine's lock.
TEST_P(OffenceTest, may_end_the_process_from_inside_the_callback) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        config_.threads = true;
        Party party(config_);
        party[0].on_fatal = [&] {
            velo_engine_abandon(party[0].engine);
            _exit(0);
        };
        commit(party);
        _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

// With them a message would be longer than the ring in the liar's memory, of which no more is mapped.
TEST(CreditOffence, more_credits_than_the_mailbox_has_slots_are_not_used) {
    engine::Engine::violations_abort = false;
    for (const char* policy : {"static", "dynamic"}) {
        PartyConfig config;
        config.flow_control = policy;
        config.by_reference = "never";
        Party party(config);
        Offender offender(party[0]);
        offender.store(wire::PacketKind::kCredit, 60'000);
        EXPECT_EQ(party.send(0, 1, 1, pattern(16'000, 3)), VELO_ERR_PROTOCOL) << policy;
    }
    engine::Engine::violations_abort = true;
}

}  // namespace
}  // namespace velo::test
