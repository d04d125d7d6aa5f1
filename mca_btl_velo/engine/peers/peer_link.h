// The way to a peer's mailbox: through shared memory, inlined, or through a network. What is carried on one
// that is closed is lost; one that leads to a killed process takes no data.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "fabric/interceptor.h"
#include "fabric/shm/shm_link.h"

namespace velo::engine {

class PeerLink {
 public:
    static constexpr std::size_t kHotBytes = fabric::shm::ShmLink::kHotBytes;

    explicit operator bool() const { return shm_.is_open() || network_ != nullptr; }

    fabric::shm::ShmLink& open(mailbox::Writer<> writer, std::uint32_t source) {
        shm_ = fabric::shm::ShmLink(writer, source);
        return shm_;
    }
    void open(std::unique_ptr<fabric::Link> network) { network_ = std::move(network); }
    // With the faults of a test, if there are any.
    void intercept(fabric::Interceptor& faults) {
        if (!faults.active()) return;
        if (shm_.is_open()) network_ = std::make_unique<fabric::shm::ShmLink>(std::exchange(shm_, {}));
        network_ = faults.on(std::move(network_));
    }
    void close(bool refuses = false) {
        shm_ = {};
        network_.reset();
        refuses_ = refuses;
    }

    fabric::Carried carry(const fabric::Burst& burst) {
        if (shm_.is_open()) return shm_.carry(burst);
        if (network_ == nullptr && refuses_) return {0, 0};
        if (network_ == nullptr) return {burst.packets, burst.message.total() - burst.offset};
        return network_->carry(burst);
    }
    [[gnu::always_inline]] bool carry_packet(const fabric::MessageView& message, std::uint8_t tag,
                                             std::uint32_t piggyback, bool granted, bool rested) {
        if (shm_.is_open()) [[likely]]
            return shm_.carry_packet(message, tag, piggyback, granted, rested);
        if (network_ == nullptr) return !refuses_;
        return network_->carry_packet(message, tag, piggyback, granted, rested);
    }
    // Through shared memory, without the faults of a test.
    bool is_direct() const { return shm_.is_open(); }
    fabric::shm::ShmLink& direct() { return shm_; }
    // On one that is closed: false.
    bool begin_reference(bool granted) {
        if (shm_.is_open()) return shm_.begin_reference(granted);
        return network_ != nullptr && network_->begin_reference(granted);
    }
    void carry_reference(const fabric::Referred& what) {
        if (shm_.is_open()) return shm_.carry_reference(what);
        network_->carry_reference(what);
    }
    // Shared memory only.
    void prepare(std::uint32_t packets) {
        if (shm_.is_open()) shm_.prepare(packets);
    }
    bool holds_some() const { return network_ != nullptr && network_->holds_some(); }
    void carry_control(wire::PacketKind kind, std::uint32_t value) {
        if (shm_.is_open())
            shm_.carry_control(kind, value);
        else if (network_ != nullptr)
            network_->carry_control(kind, value);
    }

 private:
    fabric::shm::ShmLink shm_;
    std::unique_ptr<fabric::Link> network_;
    bool refuses_ = false;
};

}  // namespace velo::engine
