// The way to processes on other nodes: one for all of them, because they share one mailbox, which is private
// to its owner. Called by one thread at a time. What arrives is stored there under the same credit rules as a
// local sender's packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/shm/segment.h"
#include "flow/policy_config.h"
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
    bool outlives_peers;  // a lost connection is the end of that peer alone
    std::uint32_t
        patience_ms;  // how long a peer's kernel may answer nothing before the connection counts as lost
    // How long a broken connection may be that of a peer whose leave is still to be read.
    std::uint32_t grace_ms = 4000;
};

// A burst of DATA packets that finds the mailbox empty, all that its sender sent before having been
// retrieved.
struct Delivery {
    flow::PeerIndex from;
    wire::PacketKind kind;  // of the first packet
    std::uint8_t flags;     // wire::kFirst, kLast, kInternal
    std::uint8_t tag;
    std::byte* data;  // of any alignment
    std::size_t bytes;
    std::uint32_t packets;
    std::uint32_t credits;  // piggybacked
};

// Whom the network calls from `progress`.
class Receiver {
 public:
    virtual ~Receiver() = default;
    // Memory for bulk data that has begun to arrive, nullptr if nobody has asked for it.
    virtual std::byte* place(flow::PeerIndex from, std::span<const std::byte> header,
                             std::uint64_t bytes) = 0;
    // Retrieves packets that need not be stored first. Returns what is wrong with them, nullptr if nothing.
    // Not with threads: it calls the upper layer. Throws Failure.
    virtual const char* take(const Delivery& delivery) = 0;
};

// A transfer that has arrived.
struct Placed {
    flow::PeerIndex from;
    std::vector<std::byte> header;
};

// Who sends nothing any more.
struct Left {
    flow::PeerIndex peer;
    std::string lost;  // why the connection is; empty: it has taken leave
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

    // What is sent to the peer in between leaves at the end, in as few messages of the network as may be.
    virtual void begin_series(flow::PeerIndex peer) = 0;
    virtual void end_series(flow::PeerIndex peer) = 0;

    // Under a policy that refuses by sender: so many more packets of this peer have left the mailbox.
    virtual void retrieved(flow::PeerIndex peer, std::uint32_t packets) = 0;
    virtual std::uint64_t name_of(flow::PeerIndex peer) const = 0;

    // Sends a header (part 0) and data (part 1) past the mailbox. Both stay unchanged until `context` comes
    // out of `sent_bulk`.
    virtual void send_bulk(flow::PeerIndex to, const MessageView& message, void* context) = 0;

    // Takes what has arrived into the mailbox, and bulk data to its place. True if there was anything. Throws
    // Failure when a peer is lost, unless this process outlives its peers, or breaks the rules.
    virtual bool progress() = 0;
    // Whether the next three may have anything to tell.
    virtual bool has_completed() const = 0;
    // What has been completed since they were called last.
    virtual std::vector<Placed> placed() = 0;
    virtual std::vector<void*> sent_bulk() = 0;
    // All that they have sent is in the mailbox, and nothing more comes.
    virtual std::vector<Left> left() = 0;
};

// nullptr and a reason if Velo was built without UCX. Throws Failure.
std::unique_ptr<Network> open_network(const NetworkConfig& config, Receiver& receiver, std::string* reason);

}  // namespace velo::fabric
