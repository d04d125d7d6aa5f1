// Credits that a receiver asks back (REQ) and a sender returns (RESP). Both packets take a data slot and so a
// credit, for which they may have to wait, and go before all DATA.
#pragma once

#include "flow/emitter.h"

namespace velo::flow {

class Requests {
 public:
    // A REQ or RESP for `to` waits for a credit.
    virtual bool control_waiting(FlowIndex to) const = 0;
    // There is one.
    virtual void send_waiting_control(FlowIndex to, Emitter& out) = 0;
    virtual void request_retrieved(FlowIndex from, Emitter& out) = 0;
    virtual void response_retrieved(FlowIndex from, std::uint32_t returned, Emitter& out) = 0;

 protected:
    ~Requests() = default;
};

}  // namespace velo::flow
