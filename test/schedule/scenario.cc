#include "scenario.h"

#include <algorithm>

#include "flow/policies.h"

namespace velo::schedule {
namespace {

// Small numbers: every limit is met again and again.
void draw_parameters(flow::PolicyConfig& config, std::uint32_t processes, Random& random) {
    config.preposted_buffers = random.chance(1, 4) ? random.between(10, 100) : random.between(1, 9);
    config.initial_buffers = random.between(1, std::min(config.preposted_buffers, 6U));
    config.growth_buffers = random.below(4);
    config.credit_message_threshold = random.chance(1, 2) ? 5 : random.between(1, 12);
    config.rnr_timer_ns = random.chance(1, 4) ? 1 : random.between(100, 20'000);
    config.lazy_slots = random.chance(1, 4) ? random.between(1, 100) : random.between(1, 12);
    config.lazy_peers = random.between(1, processes);
    config.lazy_stealing = random.chance(1, 2);
    config.lazy_ahead = random.chance(1, 2) ? 0 : 1 + random.below(4);
    config.lazy_doorbell = random.chance(1, 3);
}

}  // namespace

std::uint32_t Scenario::process_at(std::uint32_t process, flow::PeerIndex index) const {
    for (bool own : {true, false})
        for (std::uint32_t q = 0; q < processes; ++q)
            if (q != process && same_job(process, q) == own && index-- == 0) return q;
    return processes;
}

flow::PeerIndex Scenario::index_of(std::uint32_t process, std::uint32_t peer) const {
    flow::PeerIndex index = 0;
    while (process_at(process, index) != peer) ++index;
    return index;
}

flow::PolicyConfig Scenario::config_of(std::uint32_t process) const {
    flow::PolicyConfig config = parameters;
    config.peers = 0;
    config.spare_peers = 0;
    for (std::uint32_t q = 0; q < processes; ++q) {
        if (q == process) continue;
        ++(same_job(process, q) ? config.peers : config.spare_peers);
    }
    config.credit_slots = credit_slots;
    config.piggyback = piggyback;
    config.intended_max = intended_max;
    if (config.peers > 0)
        config.data_slots =
            std::max(data_slots * config.peers / (processes - 1), flow::minimum_data_slots(policy, config));
    return config;
}

std::string Scenario::describe() const {
    std::string text = policy + " N=" + std::to_string(processes) + " n=" + std::to_string(credit_slots) +
                       " D=" + std::to_string(data_slots) + (piggyback ? " piggyback" : "") +
                       (delay_credits ? " delay" : "");
    if (intended_max != flow::kMaxQuota) text += " intended_max=" + std::to_string(intended_max);
    const flow::PolicyConfig& more = parameters;
    if (one_queue) text += " one queue";
    text += " preposted=" + std::to_string(more.preposted_buffers) +
            " initial=" + std::to_string(more.initial_buffers) +
            " growth=" + std::to_string(more.growth_buffers) +
            " threshold=" + std::to_string(more.credit_message_threshold) +
            " timer=" + std::to_string(more.rnr_timer_ns) + " lazy=" + std::to_string(more.lazy_slots) + "," +
            std::to_string(more.lazy_peers) + (more.lazy_stealing ? " stealing" : "") + " ahead " +
            std::to_string(more.lazy_ahead) + (more.lazy_doorbell ? " doorbell" : "");
    if (by_reference.outbox_bytes > 0)
        text +=
            " outbox " + std::to_string(by_reference.outbox_bytes) + " shift " +
            std::to_string(by_reference.shift) + " of " + std::to_string(by_reference.packet_bytes) +
            (by_reference.batches ? " batches" : "") + (by_reference.takes_credits ? " takes credits" : "") +
            (by_reference.whole_first ? " whole first" : "") + (by_reference.told_late ? " told late" : "");
    if (!job.empty()) {
        text += " jobs ";
        for (std::uint8_t j : job) text += std::to_string(j);
    }
    return text;
}

Scenario Scenario::random(const std::string& policy, Random& random) {
    Scenario s;
    s.policy = policy;
    s.processes = random.chance(1, 24) ? random.between(7, 16) : random.between(2, 6);
    s.credit_slots = random.between(1, 5);
    const std::uint32_t peers = s.processes - 1;
    s.one_queue = random.chance(1, 4);
    draw_parameters(s.parameters, s.processes, random);
    flow::PolicyConfig config = s.parameters;
    config.peers = peers;
    config.credit_slots = s.credit_slots;
    const std::uint32_t roomy = random.chance(1, 3) ? 40 : 4;  // slots per peer beyond the minimum, at most
    s.data_slots = flow::minimum_data_slots(policy, config) +
                   (random.chance(1, 8) ? 0 : random.below(roomy * peers + 1));
    s.piggyback = random.chance(2, 3);
    s.delay_credits = random.chance(2, 3);
    if (random.chance(1, 6)) {
        s.job.resize(s.processes);
        for (std::uint8_t& j : s.job) j = static_cast<std::uint8_t>(random.below(2));
    }
    if (random.chance(1, 8)) {
        const std::uint32_t share = s.data_slots / peers + 1;
        s.intended_max = std::max(share, s.credit_slots) + random.below(2 * share);
    }
    return s;
}

void Scenario::draw_outbox(Random& random) {
    // One, two or some chunks of the smallest size; or some of each.
    constexpr std::uint64_t kBytes[] = {2'304, 2 * 2'304, 5 * 2'304, 100'000};
    constexpr std::uint32_t kPacketBytes[] = {56, 300, 2'240};
    by_reference.outbox_bytes = kBytes[random.below(4)];
    by_reference.packet_bytes = kPacketBytes[random.below(3)];
    by_reference.batches = random.chance(3, 4);
    by_reference.takes_credits = random.chance(1, 2);
    by_reference.shift = random.chance(1, 3) ? 31 : 1;
    by_reference.whole_first = random.chance(1, 2);
    by_reference.told_late = random.chance(1, 2);
}

}  // namespace velo::schedule
