// Copies: every size, wherever a line ends, no byte too many.
#include "platform/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

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

TEST(CopyTest, copies_every_size_to_every_place_in_a_line_and_nothing_beside_it) {
    constexpr std::size_t kLine = 64, kMost = kLeastLong + 2 * kLine + 1;
    alignas(kLine) std::array<std::byte, kLine + kMost + 1> to;
    for (std::size_t place = 0; place <= kLine; ++place) {
        const bool to_lines = place == 0;
        for (std::size_t bytes = 0; bytes <= kMost; ++bytes) {
            auto from = std::make_unique<std::byte[]>(bytes);
            for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(1 + i % 251);
            to.fill(std::byte{255});
            (to_lines ? copy_to_lines : platform::copy)(to.data() + place, from.get(), bytes);
            std::vector<std::byte> expected(to.size(), std::byte{255});
            std::copy_n(from.get(), bytes, expected.begin() + static_cast<std::ptrdiff_t>(place));
            ASSERT_TRUE(std::equal(to.begin(), to.end(), expected.begin())) << bytes << " bytes to " << place;
        }
    }
}

TEST(CopyTest, copies_by_string_what_is_long_and_nothing_beside_it) {
    for (const std::size_t bytes : {kLeastByString - 1, kLeastByString, kLeastByString + 65}) {
        std::vector<std::byte> from(bytes), to(bytes + 2);
        for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(1 + i % 251);
        copy_by_string(to.data() + 1, from.data(), bytes);
        EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 1)) << bytes;
        EXPECT_EQ(to.front(), std::byte{0});
        EXPECT_EQ(to.back(), std::byte{0});
    }
}

}  // namespace
}  // namespace velo::platform
