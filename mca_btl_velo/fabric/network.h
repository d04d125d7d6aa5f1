// The way to processes on other nodes: one for all of them, because they share one mailbox, which is private
// to its owner. What arrives is stored there under the same credit rules as a local sender's packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/shm/segment.h"
#include "flow/policy.h"
#include "mailbox/reader.h"

namespace velo::fabric {

struct NetworkConfig {
    std::uint64_t process_name;
    const std::uint64_t* peers;  // names of the senders with indices 0.., ascending
    flow::PolicyConfig flow;     // of the mailbox: peers and spare_peers senders
    shm::Agreement agreement;
    bool limited;                 // the policy's Policy::limited()
    std::uint32_t refusal_limit;  // the policy's
    bool threads;
    std::uint32_t patience_ms;  // how long data may stay unacknowledged before the connection counts as lost
};

// An announced transfer of data that does not go through the mailbox: its receiver provides the memory.
struct BulkArrival {
    flow::PeerIndex from;
    std::vector<std::byte> header;
    std::uint64_t bytes;
    void* descriptor;  // the network's
    bool here;         // the data is there and not only announced
};

class Network {
 public:
    virtual ~Network() = default;

    // What others need in order to reach this process.
    virtual const std::vector<std::byte>& address() const = 0;
    virtual mailbox::Reader<> reader() = 0;

    // The index of the process with that address among the senders; takes a spare place for a stranger.
    // Throws Failure.
    virtual flow::PeerIndex claim(std::span<const std::byte> address) = 0;
    // The way to a peer whose address is known, from `claim` or because it was here. `flow` is the
    // configuration of its mailbox, `index` an index with this process's share of it. Throws Failure.
    virtual std::unique_ptr<Link> open(flow::PeerIndex peer, flow::PolicyConfig* flow,
                                       flow::PeerIndex* index) = 0;

    // Under a policy that refuses by sender: so many more packets of this peer have left the mailbox.
    virtual void retrieved(flow::PeerIndex peer, std::uint32_t packets) = 0;
    virtual std::uint64_t name_of(flow::PeerIndex peer) const = 0;

    // Sends a header (part 0) and data (part 1) past the mailbox. Both stay unchanged until `context` comes
    // out of `sent_bulk`.
    virtual void send_bulk(flow::PeerIndex to, const MessageView& message, void* context) = 0;

    // Takes what has arrived into the mailbox. True if there was anything. One caller at a time. Throws
    // Failure when a peer is lost or breaks the rules.
    virtual bool progress() = 0;
    // After progress: announced transfers, each to be answered by `accept`, and what has been completed.
    virtual std::vector<BulkArrival> arrivals() = 0;
    // Lets the data of an arrival go to `to`. False: it will be among `received` later.
    virtual bool accept(BulkArrival& arrival, void* to) = 0;
    virtual std::vector<BulkArrival> received() = 0;
    virtual std::vector<void*> sent_bulk() = 0;
};

// nullptr and a reason if Velo was built without UCX. Throws Failure.
std::unique_ptr<Network> open_network(const NetworkConfig& config, std::string* reason);

}  // namespace velo::fabric
