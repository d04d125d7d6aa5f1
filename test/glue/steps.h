// Steps of what is compiled with -fsanitize-coverage=trace-pc: basic blocks executed.
#pragma once

#include <cstdint>

namespace velo::test {

std::uint64_t steps();

}  // namespace velo::test
