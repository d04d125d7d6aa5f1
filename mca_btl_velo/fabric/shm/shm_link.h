// The software VELO engine: stores packets straight into the receiver's mailbox.
#pragma once

#include "fabric/fabric.h"
#include "mailbox/writer.h"

namespace velo::fabric::shm {

class ShmLink final : public Link {
 public:
    // `source`: this process's index in the receiver's directory.
    ShmLink(mailbox::Writer<> writer, std::uint32_t source) : writer_(writer), source_(source) {}

    std::uint32_t carry(const Run& run) override;
    void carry_control(wire::PacketKind kind, std::uint32_t value) override;

 private:
    mailbox::Writer<> writer_;
    std::uint32_t source_;
};

}  // namespace velo::fabric::shm
