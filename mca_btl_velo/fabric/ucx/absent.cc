// Velo without UCX.
#include "fabric/network.h"

namespace velo::fabric {

std::unique_ptr<Network> open_network(const NetworkConfig&, Receiver&, std::string* reason) {
    *reason = "this Velo was built without UCX (apt-get install libucx-dev, then configure again)";
    return nullptr;
}

}  // namespace velo::fabric
