// What an engine tells about itself: counters, stalls and the warning when one lasts, the trace, its state.
// It hears of events and changes nothing. Under the engine's mutex, unless it says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/observe/tracing.h"
#include "engine/peers/domain.h"
#include "engine/peers/peer_table.h"
#include "engine/peers/stalls.h"
#include "fabric/shm/segment.h"
#include "platform/gate.h"
#include "platform/monotonic.h"
#include "types/engine.h"

namespace velo::engine {

class Observer {
 public:
    // What it reads. All of it outlives the observer; none of it is read before the first call.
    struct Watched {
        const velo_config& config;
        platform::OptionalMutex& mutex;
        const Domain& velo;
        const std::optional<Domain>& remote;
        const PeerTable& peers;
    };
    explicit Observer(const Watched& watched);

    // Of the process. Each unit counts what it does; whoever reads them, in any thread, reads values of a
    // moment ago.
    fabric::shm::Statistics counts{};

    // The trace, if the configuration asks for one. Throws Failure. True: there is one.
    bool open_trace(std::uint32_t slots_per_peer);
    void flush_trace() { trace_.flush(); }

    // Events.

    void connected(const Peer& peer) { trace_.connected(peer); }
    // Data packets have left.
    void sent(const Peer& peer, std::uint32_t packets) { trace_.sent(peer, packets); }
    void refused(const Peer& peer, std::uint32_t packets) { trace_.refused(peer, packets); }
    void control_sent(const Peer& peer, wire::PacketKind kind, std::uint32_t value) {
        trace_.emitted(peer, kind, value);
    }
    // Credits that came with data, too.
    void control_received(const Peer& peer, wire::PacketKind kind, std::uint32_t value) {
        trace_.received(peer, kind, value);
    }
    // Something waits for the peer, until nothing does. Told again, either is no event.
    void stalled(Peer& peer, std::uint64_t now_ns = platform::monotonic_ns());
    void resumed(Peer& peer, std::uint64_t now_ns = platform::monotonic_ns());

    // To be called now and then as long as `looks`, which any thread may ask.
    bool looks() const { return stalls_.any() || trace_.on(); }
    void look(std::uint64_t now_ns = platform::monotonic_ns());

    // Without the mutex.

    void board(const velo_board_event& event);
    // True while something waits for some peer.
    bool any_stall() const { return stalls_.any(); }
    void describe(std::string text) { description_ = std::move(text); }
    const std::string& description() const noexcept { return description_; }
    // Logs the state of a peer, or of all.
    void dump(const Peer* only, int level) const;
    // The final counters, for the report. `own_bytes`: of the engine and its buffers.
    void publish(const fabric::shm::Segment& mailbox, std::size_t own_bytes);
    // What a peer costs that this process has never met; it has met all but under a policy on demand.
    std::size_t unmet_peer_bytes() const;

 private:
    void log(int level, const std::string& text) const;
    void warn_of_stall(Peer& peer, std::uint64_t quiet_ns);
    std::size_t private_bytes() const;

    Watched watched_;
    Tracing trace_;
    Stalls<Peer> stalls_;
    std::string description_;
};

}  // namespace velo::engine
