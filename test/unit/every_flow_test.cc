// Every policy with a tight, a small and the default mailbox, in one process: messages around the limits of
// packet, train and mailbox among several processes, matched messages below and above the eager limit,
// transfers and atomics beside messages. Bytes and order are checked.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "messenger_party.h"

namespace velo::test {
namespace {

constexpr std::uint32_t kByDefault = 0;

// `slots` for each peer, and what makes the mailbox of each policy as tight as that.
PartyConfig config_of(const std::string& policy, std::uint32_t slots, std::size_t size) {
    PartyConfig config;
    config.size = size;
    config.flow_control = policy.c_str();
    config.slots_per_peer = slots;
    if (slots == kByDefault) {
        config.preposted_buffers = 100;
        config.initial_buffers = config.growth_buffers = 4;
        config.lazy_slots = 1024;
        config.lazy_peers = 64;
    } else {
        config.preposted_buffers = slots;
        config.initial_buffers = slots - 2;
        config.lazy_slots = 2 * slots;
    }
    return config;
}

class EveryFlowTest : public ::testing::TestWithParam<std::tuple<std::string, std::uint32_t>> {
 protected:
    static PartyConfig config(std::size_t size) {
        return config_of(std::get<0>(GetParam()), std::get<1>(GetParam()), size);
    }
};

INSTANTIATE_TEST_SUITE_P(EveryFlow, EveryFlowTest,
                         ::testing::Combine(::testing::ValuesIn(policies()),
                                            ::testing::Values(4U, 8U, kByDefault)),
                         [](const auto& info) {
                             const std::uint32_t slots = std::get<1>(info.param);
                             return std::get<0>(info.param) + "_" +
                                    (slots == kByDefault ? "default" : std::to_string(slots));
                         });

// One packet less or more, and as many packets as mailboxes have slots.
std::vector<std::size_t> sizes_at_the_limits() {
    std::vector<std::size_t> sizes = {0, 1, 8, 13, 14, 15};
    for (std::size_t packets : {1, 2, 3, 4, 8, 16, 64, 128}) {
        for (std::size_t bytes : {packets * 56, packets * 64 - 8}) {
            for (std::size_t step : {2, 1, 0}) sizes.push_back(bytes - step);
            sizes.push_back(bytes + 1);
        }
    }
    sizes.insert(sizes.end(), {32'767, 32'768});
    return sizes;
}

TEST_P(EveryFlowTest, messages_among_all_arrive_whole_and_in_the_order_of_each_sender) {
    constexpr std::size_t kProcesses = 4;
    // A third of the sizes each way, and each size in a third of the ways; a third of the ways with each mailbox.
    const std::vector<std::size_t> limits = sizes_at_the_limits();
    const std::uint32_t slots = std::get<1>(GetParam());
    for (unsigned way = slots == 4 ? 0 : slots == 8 ? 1 : 2; way < 48; way += 3) {
        std::vector<std::size_t> sizes;
        for (std::size_t at = (way + way / 16) % 3; at < limits.size(); at += 3) sizes.push_back(limits[at]);
        PartyConfig how = config(kProcesses);
        how.piggyback = way & 1;
        how.delay_credits = way & 2;
        how.packet_trains = way & 4;
        how.ranks_per_node = way & 8 ? 2 : 0;
        constexpr const char* kByReference[] = {"never", "auto", "always"};
        how.by_reference = kByReference[way / 16];
        Party party(how);
        const auto contents = [&](std::size_t from, std::size_t to, std::size_t index) {
            const std::size_t bytes = sizes[(index * 7 + from + to) % sizes.size()];
            return pattern(bytes, static_cast<unsigned>(1000 * from + 100 * to + index));
        };
        for (std::size_t index = 0; index < sizes.size(); ++index) {
            for (std::size_t from = 0; from < kProcesses; ++from) {
                for (std::size_t to = 0; to < kProcesses; ++to)
                    if (from != to)
                        party.send(from, to, static_cast<std::uint8_t>(from), contents(from, to, index));
            }
            velo_progress(party[index % kProcesses].engine);
        }
        party.settle();
        EXPECT_EQ(party.queued(), party.completed());
        for (std::size_t to = 0; to < kProcesses; ++to) {
            EXPECT_TRUE(party[to].fatal.empty());
            ASSERT_EQ(party[to].received.size(), (kProcesses - 1) * sizes.size()) << "way " << way;
            std::size_t next[kProcesses] = {};
            for (const Received& message : party[to].received) {
                const std::size_t from = message.tag;
                ASSERT_TRUE(message.data == contents(from, to, next[from]))
                    << "way " << way << " from " << from;
                ++next[from];
            }
        }
    }
}

TEST_P(EveryFlowTest, matched_messages_of_all_sizes_arrive_in_order_both_ways) {
    constexpr std::size_t kSizes[] = {0, 1, 40, 96, 97, 1024, 8191, 8192, 8193, 50'000, 300'001};
    constexpr unsigned kMessages = 44;
    for (const char* single_copy : {"auto", "copy"}) {
        PartyConfig how = config(2);
        how.single_copy = single_copy;
        MessengerParty party(how);
        const auto contents = [&](std::size_t from, unsigned index) {
            return pattern(kSizes[(index * 3 + from) % std::size(kSizes)], index);
        };
        std::vector<Transfer*> receives[2];
        // The first half is expected, the other half is not.
        for (unsigned index = 0; index < kMessages; ++index) {
            for (std::size_t from : {0U, 1U}) {
                if (index < kMessages / 2) receives[from].push_back(&party.receive(1 - from, -1, 7, 1 << 19));
                party.send(from, 1 - from, 7, contents(from, index),
                           index % 5 == 0 ? VELO_SEND_SYNCHRONOUS : VELO_SEND_STANDARD);
            }
            party.step();
        }
        for (unsigned index = kMessages / 2; index < kMessages; ++index) {
            for (std::size_t from : {0U, 1U})
                receives[from].push_back(
                    &party.receive(1 - from, static_cast<std::int32_t>(from), 7, 1 << 19));
        }
        party.settle();
        for (std::size_t from : {0U, 1U}) {
            for (unsigned index = 0; index < kMessages; ++index) {
                ASSERT_TRUE(receives[from][index]->done) << single_copy << " " << index;
                ASSERT_TRUE(receives[from][index]->text() == contents(from, index))
                    << single_copy << " " << index;
            }
            EXPECT_EQ(party.state(from).headers, 0U);
        }
    }
}

TEST_P(EveryFlowTest, transfers_and_atomics_of_both_move_each_byte_once_beside_messages) {
    for (const char* single_copy : {"auto", "copy"}) {
        PartyConfig how = config(2);
        how.single_copy = single_copy;
        Party party(how);
        alignas(8) std::int64_t words[2] = {};
        unsigned round = 0;
        for (std::size_t bytes : {0UL, 1UL, 55UL, 56UL, 4097UL, 128UL * 1024, 128UL * 1024 + 1, 1UL << 20}) {
            ++round;
            std::string remote[2], got[2], source[2], target[2];
            Outcome outcomes[2][3];
            for (std::size_t rank : {0U, 1U}) {
                remote[rank] = pattern(bytes, round + 1);
                source[rank] = pattern(bytes, round + 2);
                got[rank].assign(bytes + 2, 'x');
                target[rank].assign(bytes + 2, 'y');
            }
            for (std::size_t rank : {0U, 1U}) {
                const std::size_t other = 1 - rank;
                velo_engine* engine = party[rank].engine;
                velo_peer* peer = party[rank].peers[other];
                for (unsigned i = 0; i < 10; ++i) party.send(rank, other, 1, pattern(200, i));
                EXPECT_GE(velo_get(engine, peer, got[rank].data() + 1, address_of(remote[other].data()),
                                   bytes, Outcome::done, &outcomes[rank][0]),
                          VELO_OK);
                EXPECT_GE(velo_put(engine, peer, source[rank].data(), address_of(target[other].data() + 1),
                                   bytes, Outcome::done, &outcomes[rank][1]),
                          VELO_OK);
                EXPECT_GE(velo_atomic_start(engine, peer, VELO_ATOMIC_ADD, 8, address_of(&words[other]), 3, 0,
                                            Outcome::done, &outcomes[rank][2]),
                          VELO_OK);
            }
            party.settle();
            for (std::size_t rank : {0U, 1U}) {
                for (const Outcome& outcome : outcomes[rank]) {
                    EXPECT_EQ(outcome.calls, 1) << single_copy << " " << bytes;
                    EXPECT_EQ(outcome.status, VELO_OK);
                }
                EXPECT_TRUE(got[rank] == "x" + remote[1 - rank] + "x") << single_copy << " " << bytes;
                EXPECT_TRUE(target[rank] == "y" + source[1 - rank] + "y") << single_copy << " " << bytes;
                EXPECT_EQ(words[rank], 3 * round);
                ASSERT_EQ(party[rank].received.size(), 10U);
                for (unsigned i = 0; i < 10; ++i) EXPECT_EQ(party[rank].received[i].data, pattern(200, i));
                party[rank].received.clear();
            }
        }
    }
}

}  // namespace
}  // namespace velo::test
