// The way to one process on another node: each burst of packets is one active message.
#pragma once

#include "fabric/fabric.h"
#include "fabric/ucx/network.h"

namespace velo::fabric::ucx {

class UcxLink final : public Link {
 public:
    UcxLink(UcxNetwork& network, Remote& remote)
        : network_(network),
          remote_(remote),
          capacity_(static_cast<std::uint32_t>(mailbox_slots(remote.address))) {}

    Carried carry(const Burst& burst) override;
    bool carry_packet(const MessageView& message, std::uint8_t tag, std::uint32_t piggyback, bool granted,
                      bool rested) override;
    void prepare(std::uint32_t) override {}
    // What went on a broken connection has arrived if the peer has taken leave, and only then.
    bool holds_some() const override {
        return remote_.outstanding > 0 || (remote_.broken != UCS_OK && (!remote_.gone || remote_.lost));
    }
    void carry_control(wire::PacketKind kind, std::uint32_t value) override;

 private:
    void carry_parcels(const Burst& burst, std::uint32_t run, std::uint32_t packets, std::size_t rest,
                       Carried* carried);
    void carry_parcel(const Burst& burst, std::uint32_t run, std::size_t bytes, Carried* carried);
    bool full() const;
    // Packets, of so many, that the receiver does not refuse.
    std::uint32_t accepted(std::uint32_t packets) const;

    UcxNetwork& network_;
    Remote& remote_;
    std::uint32_t capacity_;  // of the receiver's mailbox
};

}  // namespace velo::fabric::ucx
