// Transfers of data between the memories of two processes: which route each takes, and what it takes for
// that. A get finds its data in a ring where the owner has staged them, or is copied by single copy, by one
// process or by both, or travels through the mailbox.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/large/deposits.h"
#include "engine/large/get.h"
#include "engine/large/postponed.h"
#include "engine/large/shared_gets.h"
#include "engine/peers/peers.h"
#include "engine/routes/routes.h"
#include "rma/rma.h"
#include "singlecopy/mechanisms.h"
#include "types/engine.h"

namespace velo::engine {

class Large final : public PeerEvents, private SharedGetsHost, private PostponedHost {
 public:
    // What it works with; all of it outlives it.
    struct Context {
        rma::Poster& poster;
        platform::OptionalMutex& mutex;
        Idle& idle;
        const platform::Gate& gate;
        Peers& peers;
        Routes& routes;
        const velo_config& config;
        const singlecopy::Mechanisms& mechanisms;
        fabric::shm::Segment& mailbox;
        Staging& staging;
        fabric::shm::Statistics& counts;
    };
    explicit Large(const Context& context);

    // Room for peers on other nodes. Before the first peer.
    void grow(std::size_t entries) { rma_.grow(static_cast<std::uint32_t>(entries)); }
    Deposits& deposits() { return deposits_; }
    SharedGets& shared_gets() { return shared_gets_; }
    // The routes are not asked: the reader copies.
    bool single_copy_only() const { return single_copy_only_; }

    // Without the mutex. A status as of velo_get; the completion is told of what is VELO_QUEUED, or before.

    velo_status get(Peer& peer, const Get& get);
    velo_status put(Peer& peer, const void* local, std::uint64_t remote, std::size_t bytes,
                    const rma::Completion& completion);
    velo_status atomic(Peer& peer, velo_atomic operation, unsigned width, std::uint64_t remote,
                       std::uint64_t operand, std::uint64_t compare, const rma::Completion& completion);

    // A staged get, the owner's side (rma/deposit.h): begin returns its name, of which the peer is told the
    // number (0: not staged), store copies the data into the ring, end frees the ring.
    std::uint64_t begin_deposit(Peer& peer, const void* data, std::size_t bytes) noexcept;
    void store_deposit(std::uint64_t deposit) noexcept { deposits_.store(deposit); }
    void end_deposit(Peer& peer, std::uint64_t deposit) noexcept;
    // A get with such a number of the peer's, or 0.
    velo_status get_deposited(Peer& peer, std::uint32_t deposit, const Get& get);

    // A get whose data are not there yet: the peer may copy them as soon as they are, whatever this process
    // does then. Returns a ticket for the peer; nullopt: there is no such route. It has to end in one of two:
    std::optional<std::uint32_t> announce(Peer& peer, std::size_t bytes);
    // ... the data are there, in a deposit, too, if it is not 0: as `get_deposited`.
    velo_status get_announced(Peer& peer, std::uint32_t ticket, std::uint32_t deposit, const Get& get);
    // ... or they will not be: nothing is written any more, or (false) nothing will be when `completion` is
    // told of an error.
    bool withdraw(Peer& peer, std::uint32_t ticket, std::size_t bytes, const rma::Completion& completion);

    // The peer's side, with a ticket whose cell there is. nullopt: this process cannot help.
    std::optional<rma::Help> helping(Peer& peer, std::uint32_t ticket, const std::byte* data,
                                     std::uint64_t remote, std::size_t bytes);
    void help_when_idle(const rma::Help& help);

    // Logs, once a node, that something with that peer has failed, by that errno or, 0, because it has ended.
    void failed(Peer& peer, int error) noexcept override;
    // Logs, once a node, that the peer was killed.
    void died(Peer& peer) noexcept;

    // Messages of a transfer. The first packet has arrived: where its data go. False: it makes no sense.
    // Under the mutex.
    bool begin(flow::PeerIndex from, const rma::MessageHeader& header, rma::Placement* placement) {
        return rma_.begin(from, header, placement);
    }
    // All of it has arrived. Without the mutex.
    void finish(Peer& from, const rma::MessageHeader& header);

    void introduced(const Peer& peer, const fabric::shm::Address& address) override;
    void attaching(Peer& peer) override;
    void attached(Peer& peer) override;
    void ended(Peer& peer) override { deposits_.ended(peer); }
    bool may_depart(const Peer& peer) override { return peer.copying == 0; }
    void departed(Peer& peer) override;
    void gone(Peer& peer) override;
    void vacated(Peer& peer) override;

 private:
    bool is_quiet() const override { return with_.idle.is_quiet(); }
    bool may_share(const Peer& peer, const Get& get) const;
    velo_status copy(Peer& peer, bool put, const Get& get, singlecopy::RemoteMemory& memory);
    velo_status get_now(Peer& peer, std::uint32_t deposit, const Get& get) override;
    velo_status start(Peer& peer, rma::Direction direction, const Get& get);
    velo_status refuse(Peer& peer) noexcept;
    void help(flow::PeerIndex from, const rma::MessageHeader& request);

    const Context with_;
    platform::OptionalMutex& mutex_;
    rma::Rma rma_;
    SharedGets shared_gets_;
    Deposits deposits_;
    Postponed postponed_;
    bool single_copy_only_;
    std::atomic<bool> failure_is_logged_{false};
    std::vector<rma::Completion> lost_;  // of a peer that has just departed
};

}  // namespace velo::engine
