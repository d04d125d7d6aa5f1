// An engine, and a peer that stores into its mailbox whatever the input says. The peer is a real engine as
// far as the victim can see, but makes no progress of its own.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "api/velo.h"
#include "engine/engine.h"
#include "fabric/shm/segment.h"
#include "input.h"

namespace velo::fuzz {

inline constexpr std::size_t kMaxMessageBytes = 4096;

class Victim {
 public:
    // `policy`: any number.
    explicit Victim(unsigned policy);
    ~Victim();
    Victim(const Victim&) = delete;

    velo_engine* engine() const { return engine_; }
    velo_peer* peer() const { return peer_; }
    // No more than that can come: what the engine was told is wrong, and it has said so.
    bool failed() const { return failed_; }

    // Stores a run whose payload begins with these bytes, as sender `header.source`. An address in an RMA
    // message is changed for one that the peer may use: it may name any, and is trusted with it.
    void store(wire::Header header, Bytes payload);
    // Stores into a chunk of the peer's outbox what begins with these bytes, and allocates it, as if for a
    // REF.
    wire::Reference allocate(std::uint32_t chunk, std::uint32_t bytes, Bytes data);
    // The same of a batch: what is behind headers. kWhole: all of the chunk.
    static constexpr std::uint32_t kWhole = ~0U;
    wire::Reference allocate_batch(std::uint32_t chunk, std::uint32_t bytes, Bytes data);
    // Goes on in the chunk where allocate_batch or this has ended, whether the victim follows it or not.
    void append(std::uint32_t chunk, Bytes data);
    // Says of a ring that so much of a deposit is there, and where: its number.
    std::uint32_t deposit(std::uint32_t ring, std::uint32_t there, std::uint64_t address, std::uint32_t place,
                          std::uint32_t bytes);
    void progress() { velo_progress(engine_); }

 private:
    static void confine(std::byte* message, std::size_t bytes);
    static void confine_each(std::span<std::byte> batch);
    std::pair<wire::Reference, std::span<std::byte>> fill(std::uint32_t chunk, std::uint32_t bytes,
                                                          Bytes data);

    velo_engine* engine_ = nullptr;
    velo_peer* peer_ = nullptr;
    fabric::shm::Segment mailbox_;                  // the victim's, as its peer sees it
    fabric::shm::Segment& peers_;                   // its peer's own
    std::map<std::uint32_t, std::size_t> batched_;  // bytes of the batch in the chunk at a place
    bool failed_ = false;
};

}  // namespace velo::fuzz
