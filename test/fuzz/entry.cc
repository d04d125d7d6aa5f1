// libFuzzer's entry into one target, which VELO_FUZZ_TARGET names.
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    velo::fuzz::VELO_FUZZ_TARGET({data, bytes});
    return 0;
}
