// Peers on other nodes: a domain of their own, whose packets a network brings; data that go past the mailbox;
// and messages that are collected, since each costs its sender a system call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "engine/idle/idle.h"
#include "engine/large/large.h"
#include "engine/observe/observer.h"
#include "engine/peers/departures.h"
#include "engine/peers/peer_events.h"
#include "engine/peers/peers.h"
#include "fabric/network.h"
#include "platform/gate.h"
#include "types/engine.h"

namespace velo::engine {

// What Remote asks of the engine, under the gate and without the mutex.
class RemoteHost {
 public:
    // Takes packets out of the mailbox. Returns how many.
    virtual int drain(Domain& domain) = 0;
    // Packets have come that have not been in the mailbox. False: they do not belong to a message.
    virtual bool arrived(Peer& from, const fabric::Delivery& delivery) = 0;

 protected:
    ~RemoteHost() = default;
};

class Remote final : public Work, public PeerEvents, private fabric::Receiver {
 public:
    // A message that is longer is not collected; and so many bytes of those that are leave together.
    static constexpr std::size_t kCollectedBytes = std::size_t{32} * 1024;

    // What it works with. All of it outlives it but `large` and `departures`.
    struct Context {
        RemoteHost& host;
        platform::OptionalMutex& mutex;
        Idle& idle;
        PeerEvents& units;
        Peers& peers;
        Large& large;
        Departures& departures;
        Observer& observer;
        const velo_config& config;
        fabric::shm::Segment& mailbox;
    };
    explicit Remote(const Context& context);

    // Before the first peer: opens the network if there are processes on other nodes. Throws Failure.
    void open(DomainHost& domain_host);
    // The same with that network, which has been opened for this receiver, and the rules of its mailbox.
    void use(DomainHost& domain_host, std::unique_ptr<fabric::Network> network,
             std::unique_ptr<flow::Policy> policy);
    fabric::Receiver& receiver() { return *this; }

    // The peers' indices follow those of the directory of this node.
    bool has(flow::PeerIndex index) const noexcept { return index >= first_; }
    const std::optional<Domain>& domain() const noexcept { return domain_; }
    std::optional<Domain>& domain() noexcept { return domain_; }
    // Nothing waits in the mailbox.
    bool is_quiet() const { return !domain_ || domain_->reader.poll() == 0; }
    // Bytes that travel at once: what half of a peer's slots hold. 0 without a network.
    std::size_t eager_limit() const noexcept {
        return std::min({context_.config.max_message_bytes, VELO_MOST_NETWORK_EAGER_BYTES,
                         std::size_t{slots_per_peer_} / 2 * wire::kPacketBytes});
    }

    // The network's part of an address. Throws Failure. Without the mutex.
    flow::PeerIndex expect(std::span<const std::byte> address);
    // Looks at the network at each poll.
    bool any() const override { return false; }
    int run(bool busy) override;

    // Under the mutex.

    void attach(Peer& peer);
    // Whether a message is one of many since this process looked at the network, and credits are not what it
    // would wait for.
    bool is_one_of_many(Peer& peer, std::size_t bytes) const;
    // Data past the mailbox. False: the message has to go through it.
    bool send_bulk(Peer& peer, velo_send* message);
    // The last one to hear of it: nothing of the peer is left that could complete.
    void gone(Peer& peer) override;
    // Under a policy that refuses by sender.
    void retrieved(const Peer& peer, std::uint32_t packets) { network_->retrieved(peer.source(), packets); }

    // What is sent to the peer meanwhile leaves together, if it is on another node.
    class Series {
     public:
        Series(Remote& remote, const Peer& peer)
            : network_(peer.is_remote() ? remote.network_.get() : nullptr), peer_(peer.source()) {
            if (network_ != nullptr) network_->begin_series(peer_);
        }
        ~Series() {
            if (network_ != nullptr) network_->end_series(peer_);
        }
        Series(const Series&) = delete;
        Series& operator=(const Series&) = delete;

     private:
        fabric::Network* network_;
        flow::PeerIndex peer_;
    };

 private:
    std::byte* place(flow::PeerIndex from, std::span<const std::byte> header, std::uint64_t bytes) override;
    const char* take(const fabric::Delivery& delivery) override;
    bool is_skipped(bool busy);
    int finish_bulk();

    const Context context_;
    platform::OptionalMutex& mutex_;
    std::uint32_t slots_per_peer_ = 0;
    flow::PeerIndex first_ = 0;
    std::unique_ptr<fabric::Network> network_;
    std::optional<Domain> domain_;
    int taken_ = 0;                          // packets that `take` has handled in this progress
    std::atomic<std::uint64_t> looks_{0};    // at the network; written under the gate
    std::uint32_t quiet_ = 0, skipped_ = 0;  // polls without a packet; polls left out
    std::uint32_t local_quiet_ = 0;          // polls without a packet of this node
};

}  // namespace velo::engine
