// What the engine tells the trace. Off, each call is one branch. Called under the engine's mutex.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/peers/peer.h"
#include "flow/policy.h"
#include "trace/recorder.h"

namespace velo::engine {

class Tracing {
 public:
    // `policy`: the one of the VELO packets. Throws Failure.
    void open(const flow::Policy& policy, const trace::Destination& destination,
              const trace::FileHeader& header);
    bool on() const { return recorder_.has_value(); }

    void connected(const Peer& peer) {
        if (on()) [[unlikely]]
            record_connected(peer);
    }
    // Data packets have left, with whatever the policy piggybacked on them.
    void sent(const Peer& peer, std::uint32_t packets) {
        if (on()) [[unlikely]]
            record_sent(peer, packets);
    }
    // A control packet has left, or one has come, or credits with data, and the accounts hold it.
    void emitted(const Peer& peer, wire::PacketKind kind, std::uint32_t value) {
        if (on()) [[unlikely]]
            record_emitted(peer, kind, value);
    }
    void received(const Peer& peer, wire::PacketKind kind, std::uint32_t value) {
        if (on()) [[unlikely]]
            record_received(peer, kind, value);
    }
    void refused(const Peer& peer, std::uint32_t packets) {
        if (on()) [[unlikely]]
            add(trace::Kind::kRefused, peer, packets, 0);
    }
    // A sample of the mailbox; an empty one is recorded once.
    void mailbox(std::uint64_t occupied, std::uint32_t slots);
    void stall(const Peer& peer, trace::Kind kind, std::uint64_t count, std::uint64_t extra);
    void board(trace::Kind kind, std::uint64_t count, std::uint32_t extra);

    void flush() {
        if (on()) recorder_->flush();
    }
    // Flushes what has been buffered for a second.
    void idle(std::uint64_t now_ns);
    // Why nothing is recorded any more, once; empty otherwise.
    std::string take_complaint() { return on() ? recorder_->take_complaint() : std::string(); }

 private:
    void record_connected(const Peer& peer);
    void record_sent(const Peer& peer, std::uint32_t packets);
    void record_emitted(const Peer& peer, wire::PacketKind kind, std::uint32_t value);
    void record_received(const Peer& peer, wire::PacketKind kind, std::uint32_t value);
    void record_policy_changes(const Peer& peer);
    void add(trace::Kind kind, const Peer& peer, std::uint32_t count, std::uint32_t extra);

    const flow::Policy* policy_ = nullptr;  // while there is a trace
    std::optional<trace::Recorder> recorder_;
    bool mailbox_was_empty_ = false;
    flow::Counters seen_;                  // what has been recorded of the policy's counters
    std::vector<std::uint32_t> intended_;  // as recorded last, by peer
};

}  // namespace velo::engine
