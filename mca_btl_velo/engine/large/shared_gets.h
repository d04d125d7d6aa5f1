// Gets that two processes carry out together (rma/share.h): those that this process has started, and those of
// peers that it helps with.
//
// A get is opened by its initiator and has a ticket, by which its peer finds it. The peer is either asked for
// help when the get begins, or the get is announced before its data are there, and the peer begins.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/idle/idle.h"
#include "engine/large/get.h"
#include "engine/peers/peer.h"
#include "platform/gate.h"
#include "rma/dual_copy.h"

namespace velo::engine {

// What SharedGets asks of whoever transfers data.
class SharedGetsHost {
 public:
    // Nothing waits in the mailbox: own work comes first.
    virtual bool is_quiet() const = 0;
    // A get has failed by that errno or, 0, because the peer has ended.
    virtual void failed(Peer& peer, int error) = 0;

 protected:
    ~SharedGetsHost() = default;
};

// Tells the peers that this process copies what it gets.
class Getting {
 public:
    explicit Getting(std::atomic<std::uint32_t>& count) : count_(count) {
        count_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Getting() { count_.fetch_sub(1, std::memory_order_relaxed); }
    Getting(const Getting&) = delete;
    Getting& operator=(const Getting&) = delete;

 private:
    std::atomic<std::uint32_t>& count_;
};

class SharedGets final : public Work {
 public:
    using First = rma::Share::First;
    using Lock = std::unique_lock<platform::OptionalMutex>;

    // `cells`, `getting`: of this process's segment.
    SharedGets(SharedGetsHost& host, platform::OptionalMutex& mutex, Idle& idle, rma::ShareCell* cells,
               std::atomic<std::uint32_t>& getting)
        : host_(host), mutex_(mutex), idle_(idle), cells_(cells), getting_(getting) {}

    // Of the initiator, under the mutex.

    // Returns the ticket; nullopt: all cells are in use.
    std::optional<std::uint32_t> open(std::size_t bytes, First first);
    // Of an open one.
    rma::SharedGet get(std::uint32_t ticket, const Get& get, singlecopy::RemoteMemory* memory) const;
    void close(std::uint32_t ticket) { cells_.give_back(rma::cell_of(ticket)); }
    // Copies what the peer does not claim, without the mutex; `lock` is left free. The peer's part is waited
    // for when the process polls.
    velo_status carry_out(Lock& lock, Peer& peer, rma::SharedGet get);
    // Whether the peer copies what it gets, and so does not help.
    static bool is_getting(const Peer& peer) {
        return peer.segment.header().getting.load(std::memory_order_relaxed) != 0;
    }
    // The peer has departed: what it did not finish has failed. Adds the completions, also of the help that
    // it was given, by that memory of its.
    void depart(Peer& peer, const singlecopy::RemoteMemory* memory, std::vector<rma::Completion>* lost);

    // Without the mutex: the peer's part of a get is waited for after the own part of the next, so that
    // neither waits for the other in a stream.
    void await();

    // Of the helper.

    // With a ticket whose cell there is, under the mutex.
    static rma::Help help(Peer& peer, std::uint32_t ticket, std::uint64_t bytes, const std::byte* data,
                          std::uint64_t remote, singlecopy::RemoteMemory& memory);
    // As long as nothing waits in the mailbox; the completion is told at the end. Under the mutex.
    void help_when_idle(const rma::Help& help);
    // From `first` on, which has been claimed. Without the mutex.
    void help_now(Peer& peer, rma::Help& help, const rma::Share::Range& first);
    // Whoever would be told of such help is gone: none of it is given, and nobody is told.
    void give_no_help();

    bool any() const override { return !helps_.empty() || !started_.empty(); }
    int run(bool busy) override;

 private:
    struct Started {
        Peer* peer;
        rma::SharedGet get;
    };
    void finish();
    void give_help();
    rma::Completion end(const Started& started, bool complete);

    SharedGetsHost& host_;
    platform::OptionalMutex& mutex_;
    Idle& idle_;
    rma::ShareCells cells_;
    std::atomic<std::uint32_t>& getting_;
    std::vector<Started> started_;  // whose own part is done
    std::deque<rma::Help> helps_;   // that peers have asked for
};

}  // namespace velo::engine
