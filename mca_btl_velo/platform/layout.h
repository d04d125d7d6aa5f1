// Every address that processes exchange begins with the name of its layout, eight characters, so that two
// builds of Velo that cannot talk to each other tell so, and which they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace velo::platform {

// Throws Failure (VELO_ERR_MISMATCH) that names both layouts unless `address` is at least `bytes` long and of
// layout `magic`. `owner`: who sent it.
void check_layout(std::span<const std::byte> address, std::uint64_t magic, std::size_t bytes,
                  const std::string& owner);
// The same for addresses whose second word is the process name of their owner.
void check_layout(std::span<const std::byte> address, std::uint64_t magic, std::size_t bytes);

}  // namespace velo::platform
