#include "api/velo.h"
#include "fabric/ucx/address.h"
#include "flow/policies.h"
#include "input.h"
#include "require.h"

namespace velo::fuzz {

void addresses(Bytes bytes) {
    using namespace fabric::ucx;
    velo_address_is_here(bytes.data(), bytes.size());
    Address address;
    if (!parse(std::as_bytes(bytes), &address)) return;
    require(mailbox_slots(address) > 0, "an address of a mailbox without slots was accepted");
    // What the engine does with it next.
    flow::initial_credit(address.agreement.flow_control, address.flow, 0);
    flow::initial_credit(address.agreement.flow_control, address.flow, address.flow.peers);
    parameters::difference(address.agreement, {});
    Address again;
    require(parse(pack(address), &again),
            "an address that was accepted is not valid when it is packed again");
}

}  // namespace velo::fuzz
