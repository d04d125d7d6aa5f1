// What a unit hears of peers: each prepares for one, and clears up what it holds for one that ends.
#pragma once

#include <vector>

#include "engine/peers/domain.h"
#include "fabric/shm/address.h"

namespace velo::engine {

class PeerEvents {
 public:
    // Under the mutex.

    // Its address on this node is known; perhaps not for the first time.
    virtual void introduced(const Peer&, const fabric::shm::Address&) {}
    // It is about to be connected to. Throws Failure where that must not be.
    virtual void attaching(Peer&) {}
    virtual void attached(Peer&) {}
    // It has ended: nothing will come of it but what is in the mailbox already.
    virtual void ended(Peer&) {}
    // False: something is under way that the unit needs it for.
    virtual bool may_depart(const Peer&) { return true; }
    // All that it sent has been retrieved, and it holds no credits any more. What is sent to it is lost.
    virtual void departed(Peer&) {}
    // Its place is about to become that of the next process.
    virtual void vacated(Peer&) {}

    // Without the mutex, under the gate, after `departed`: the upper layer may be told.
    virtual void gone(Peer&) {}

 protected:
    ~PeerEvents() = default;
};

// Several units, which hear of an event in the order in which they were added.
class EachUnit final : public PeerEvents {
 public:
    // While the process is opened.
    void add(PeerEvents& unit) { units_.push_back(&unit); }

    void introduced(const Peer& peer, const fabric::shm::Address& address) override {
        for (PeerEvents* unit : units_) unit->introduced(peer, address);
    }
    void attaching(Peer& peer) override {
        for (PeerEvents* unit : units_) unit->attaching(peer);
    }
    void attached(Peer& peer) override {
        for (PeerEvents* unit : units_) unit->attached(peer);
    }
    void ended(Peer& peer) override {
        for (PeerEvents* unit : units_) unit->ended(peer);
    }
    bool may_depart(const Peer& peer) override {
        for (PeerEvents* unit : units_)
            if (!unit->may_depart(peer)) return false;
        return true;
    }
    void departed(Peer& peer) override {
        for (PeerEvents* unit : units_) unit->departed(peer);
    }
    void vacated(Peer& peer) override {
        for (PeerEvents* unit : units_) unit->vacated(peer);
    }
    void gone(Peer& peer) override {
        for (PeerEvents* unit : units_) unit->gone(peer);
    }

 private:
    std::vector<PeerEvents*> units_;
};

}  // namespace velo::engine
