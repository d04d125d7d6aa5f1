// Who takes part, with which configuration: everything that both ends of every pair have to agree upon.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flow/policy_config.h"
#include "random.h"

namespace velo::schedule {

// The rules of design/by-reference.md, each of which a test can break to see that it is needed.
enum class Broken : std::uint8_t {
    kNothing,
    kWaitsForAChunk,  // a message of several packets goes by reference or not at all
    kFreesEarly,      // a chunk passes for read before it is
    kCostsNoCredit,   // a REF takes no credit
    kNotForgotten,    // what an ended reader was allocated stays with it
    kBatchesABegun,   // a message of which a part has left goes in a batch, whole
    kAppendsTooMuch,  // a batch is longer than its chunk
    kBatchesOrWaits,  // a message goes in a batch or not at all
    kPassesItBy,      // a message goes another way while the batch before it is open
    kLeavesItOpen,    // a batch for a reader that has ended stays open
};

struct Scenario {
    std::string policy = "dynamic";
    std::uint32_t processes = 2;     // N
    std::uint32_t credit_slots = 1;  // n
    std::uint32_t data_slots = 1;    // D of a process whose job is all N processes
    bool piggyback = true;
    bool delay_credits = true;
    std::uint32_t intended_max = flow::kMaxQuota;
    bool one_queue = false;           // a mailbox refuses only what does not fit into it, whoever sends
    flow::PolicyConfig parameters{};  // of the policies that have some; the fields above are set in it
    // Messages of several packets may go by reference: see engine/staging/references.cc. None of the rules
    // about credits knows of it.
    struct ByReference {
        std::uint64_t outbox_bytes = 0;      // 0: messages are packets, each by itself
        unsigned shift = 1;                  // engine::Routes::shift
        std::uint32_t packet_bytes = 1'120;  // two in the smallest chunk
        bool batches = false;                // as of Engine::send_in_batch
        bool takes_credits = false;          // Engine::take_credits
        bool whole_first = false;            // a chunk is taken and given back before
        bool told_late = false;              // the sender learns in an event of its own that a chunk was read
        Broken broken = Broken::kNothing;
    } by_reference{};
    std::vector<std::uint8_t>
        job;  // job of each process; processes of other jobs are spare peers. Empty: one job

    // The peers of `process` in its own order: its job in id order, then the others in id order.
    flow::PeerIndex index_of(std::uint32_t process, std::uint32_t peer) const;
    std::uint32_t process_at(std::uint32_t process, flow::PeerIndex index) const;
    flow::PolicyConfig config_of(std::uint32_t process) const;
    std::string describe() const;

    // A scenario drawn from the seed, for the named policy.
    static Scenario random(const std::string& policy, Random& random);
    // Adds an outbox, drawn as well.
    void draw_outbox(Random& random);

 private:
    bool same_job(std::uint32_t a, std::uint32_t b) const { return job.empty() || job[a] == job[b]; }
};

}  // namespace velo::schedule
