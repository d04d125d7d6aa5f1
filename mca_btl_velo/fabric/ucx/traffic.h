// What the parts of the UCX network share.
#pragma once

#include <memory>
#include <string>

#include "fabric/ucx/messages.h"
#include "fabric/ucx/network.h"

namespace velo::fabric::ucx {

// A send that UCX has not finished with. UCX reads header and data until then.
struct Flight {
    UcxNetwork* network;
    Remote* to;
    std::size_t outstanding;
    void* context;  // of a bulk transfer; the data is the caller's then
    std::vector<std::byte> header, data;
};

std::string process_text(std::uint64_t name);

}  // namespace velo::fabric::ucx
