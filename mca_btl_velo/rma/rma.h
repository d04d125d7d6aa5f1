// RMA get, put and atomics. Get and put go by single copy where a live probe of the peer shows that the
// kernel permits it, otherwise by messages through the mailbox, in parts, so that a long transfer does not
// keep small messages waiting. Atomics always go by message and are executed by the target's processor.
//
// Not thread safe: the engine calls it under its lock. The callbacks that it returns run after the lock is
// released.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "flow/policy_config.h"
#include "rma/message.h"
#include "singlecopy/mechanisms.h"
#include "types/engine.h"

namespace velo::rma {

using flow::PeerIndex;

// Carries the messages of the engine itself to a peer, in order, whenever credits allow.
class Poster {
 public:
    virtual ~Poster() = default;
    virtual void post(PeerIndex to, velo_send* message) = 0;
};

enum class Direction { kGet, kPut };

// Where the data of an arriving message goes. bytes == 0: there is none.
struct Placement {
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
};

// A completed operation, to be reported to the upper layer.
struct Completion {
    velo_rma_done_fn done = nullptr;
    void* argument = nullptr;
    velo_status status = VELO_OK;
    std::uint64_t result = 0;
};

class Rma {
 public:
    static constexpr std::size_t kBytesPerExpectedPeer = sizeof(void*);  // never spoken to
    static const std::size_t kBytesPerPeer;                              // beside it, else
    Rma(const singlecopy::Mechanisms& mechanisms, std::uint32_t peers, Poster& poster);
    ~Rma();

    void connect(PeerIndex peer, const singlecopy::RemoteProcess& process);
    // A peer on another node: no single copy; the poster has a way for large data past the mailbox.
    void connect_past_mailbox(PeerIndex peer);
    void grow(std::uint32_t peers) { access_.resize(peers); }

    // Access to this peer's memory by single copy, probed on first use; nullptr if no mechanism gives it.
    // Throws Failure where a mechanism was asked for by name.
    singlecopy::RemoteMemory* memory_of(PeerIndex peer);

    // Asks the peer to help with a get of that ticket.
    void ask_for_help(PeerIndex peer, const void* local, std::uint64_t remote, std::uint64_t bytes,
                      std::uint32_t ticket);

    // Transfers through the mailbox; complete later through `finish`.
    void start(Direction direction, PeerIndex peer, void* local, std::uint64_t remote, std::uint64_t bytes,
               Completion completion);
    velo_status start_atomic(PeerIndex peer, velo_atomic operation, unsigned width, std::uint64_t remote,
                             std::uint64_t operand, std::uint64_t compare, Completion completion);

    // The first packet of a message from `peer` has arrived: tells where its data goes. False if the header
    // makes no sense: a protocol error.
    bool begin(PeerIndex peer, const MessageHeader& header, Placement* placement);
    // All of the message, with its data in place, has arrived. Returns the completion that it causes, if any
    // (done set). A request for help is for whoever shares gets, and changes nothing here.
    Completion finish(PeerIndex peer, const MessageHeader& header);

    // What is known of the peer's memory; nullptr: nothing.
    const singlecopy::RemoteMemory* known_memory(PeerIndex peer) const {
        return access_[peer] != nullptr ? access_[peer]->memory.get() : nullptr;
    }
    // The peer has ended. Its transfers through the mailbox are lost.
    void departed(PeerIndex peer, std::vector<Completion>* lost);

 private:
    struct Access {
        explicit Access(const singlecopy::RemoteProcess& at) : process(at) {}

        singlecopy::RemoteProcess process;
        std::unique_ptr<singlecopy::RemoteMemory> memory;
        bool probed = false;
        bool past_mailbox = false;
    };
    // Part of a transfer that travels as one message. Small messages to the same peer slip in between parts;
    // so many are asked for at a time that one is on its way while the other is being unpacked.
    static constexpr std::size_t kPartsAhead = 2;
    struct Part {
        enum class State : std::uint8_t { kNone, kAsked, kArriving };
        std::uint64_t position = 0, bytes = 0;
        State state = State::kNone;
    };
    struct Transfer {
        PeerIndex peer;
        Operation operation;
        std::byte* local;
        std::uint64_t remote, bytes;
        std::uint64_t requested = 0, arrived = 0;
        Completion completion;
        // Each is answered once and as a whole: no reply reaches memory that is not waiting for it, nor a
        // transfer that is complete.
        std::array<Part, kPartsAhead> parts{};

        Part* find(std::uint64_t position, Part::State state);
    };
    struct Message;

    std::uint64_t part_bytes(PeerIndex peer) const;
    void request_part(std::uint64_t id, Transfer& transfer);
    void post(PeerIndex to, const MessageHeader& header, const void* data, std::uint64_t bytes);
    Completion part_arrived(const MessageHeader& header);
    Transfer* find(PeerIndex peer, std::uint64_t id, Operation operation);
    Transfer* begin_reply(PeerIndex peer, const MessageHeader& header, Operation operation);

    const singlecopy::Mechanisms& mechanisms_;
    Poster& poster_;
    std::vector<std::unique_ptr<Access>> access_;  // null until first contact
    std::unordered_map<std::uint64_t, Transfer> transfers_;
    std::uint64_t next_id_ = 1;
    // Every message that is on its way, so that the ones still queued at close are freed.
    Message* in_flight_ = nullptr;
};

}  // namespace velo::rma
