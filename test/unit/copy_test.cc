// Small copies: every size, no byte too many.
#include "platform/copy.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace velo::platform {
namespace {

TEST(CopyTest, copies_every_size_of_a_packet_and_nothing_beside_it) {
    for (std::size_t bytes = 0; bytes <= 64; ++bytes) {
        // Exactly as large as needed: a sanitizer sees every access outside.
        auto from = std::make_unique<std::byte[]>(bytes);
        std::array<std::byte, 66> to{};
        for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i + 1);
        copy_small(to.data() + 1, from.get(), bytes);
        EXPECT_EQ(to[0], std::byte{0});
        for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(to[i + 1], from[i]) << i << " of " << bytes;
        EXPECT_EQ(to[bytes + 1], std::byte{0});
    }
}

}  // namespace
}  // namespace velo::platform
