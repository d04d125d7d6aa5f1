// What a policy goes by: the numbers of peers and slots, and the parameters. And what it asks of a mailbox.
// n is credit_slots.
#pragma once

#include <cstdint>

#include "types/parameters.h"

namespace velo::flow {

// Index of a peer in this process's directory, 0..P-1.
using PeerIndex = std::uint32_t;

// Upper bound of a credit count that one packet can carry (16 bits), and with it of a quota and a lot.
inline constexpr std::uint32_t kMaxQuota = 65535;

struct PolicyConfig {
    std::uint32_t peers = 0;         // P, the peers that share the data region, in id order; 0..2^24 - 1
    std::uint32_t spare_peers = 0;   // further indices P..P+spare-1 (processes of other jobs), 0..65535: S
                                     // slots of their own each, beside the data region of the P peers
    std::uint32_t data_slots = 0;    // D of the P peers, spares excluded; see minimum_data_slots
// Those of the parameters that policies go by, with their defaults.
#define VELO_POLICY_PARAMETER(type, name, initial, ...) VELO_TYPE_##type name = initial;
#include "types/parameters.inc"

    // lazy: the engine carries HELLO outside of the mailbox, which then has no slots for it.
    bool lazy_doorbell = false;

    std::uint32_t total_peers() const { return peers + spare_peers; }
    // Slots that DATA, REQ and RESP may occupy in this mailbox at most: the D of invariants I2, I4 and I6.
    std::uint32_t total_data_slots() const { return data_slots + spare_peers * credit_slots; }
    // Slots of the whole mailbox under none, static and dynamic: data region plus credit region. For any
    // policy: mailbox_plan.
    std::uint32_t mailbox_slots() const { return total_data_slots() + total_peers() * credit_slots; }
    // Share of peer `index` in a static partition of the data region (Eq 5.2: never below n in dynamic):
    // D div P, one more for the first D mod P peers; n for a spare.
    std::uint32_t even_share(PeerIndex index) const {
        if (index >= peers) return credit_slots;
        return data_slots / peers + (index < data_slots % peers ? 1 : 0);
    }
};

// What a mailbox has to hold under a policy.
struct MailboxPlan {
    std::uint64_t data_slots = 0;      // packets that take a credit (or, under rnr, a buffer), at most
    std::uint64_t control_slots = 0;   // packets that take none, of all peers together, at most
    std::uint32_t credit_packets = 0;  // CREDIT packets of one peer, at most; part of control_slots

    std::uint64_t total() const { return data_slots + control_slots; }
};

// lazy: what of lazy_ahead to give to a policy. More than an eighth of the windows would close some that are
// in use: with 1 window for 3 active peers an alltoall takes four times as long. What is out of range stays
// so, for the policy to object to.
constexpr std::uint32_t useful_windows_ahead(std::uint32_t ahead, std::uint32_t windows) {
    return ahead > 16 || ahead < windows / 8 ? ahead : windows / 8;
}

// Threshold of Eq 5.1: number of freed slots at which credits go back. q div (n + 1) + 1.
constexpr std::uint32_t return_threshold(std::uint32_t quota, std::uint32_t credit_slots) {
    return quota / (credit_slots + 1) + 1;
}

}  // namespace velo::flow
