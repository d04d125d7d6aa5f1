// Builds of Velo that cannot talk to each other tell so, and which they are.
#include "platform/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "platform/failure.h"

namespace velo::platform {
namespace {

constexpr std::uint64_t kOurs = 0x35304f4c4556ULL;    // "VELO05"
constexpr std::uint64_t kTheirs = 0x36304f4c4556ULL;  // "VELO06"
using Words = std::array<std::uint64_t, 3>;           // an address: layout, owner, and more

std::string objection(const Words& address, std::size_t given, std::size_t needed) {
    try {
        check_layout(std::as_bytes(std::span(address)).first(given), kOurs, needed);
        return {};
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.status(), VELO_ERR_MISMATCH);
        return failure.what();
    }
}

constexpr std::uint64_t kOwner = 7ULL << 32 | 3;

TEST(LayoutTest, an_address_of_the_same_layout_may_be_longer) {
    EXPECT_EQ(objection({kOurs, kOwner, 0}, 24, 16), "");
    EXPECT_EQ(objection({kOurs, kOwner, 0}, 24, 24), "");
}

TEST(LayoutTest, another_layout_is_named_beside_the_own_one_and_so_is_its_process) {
    const std::string text = objection({kTheirs, kOwner, 0}, 24, 16);
    EXPECT_NE(text.find("rank 3 of job 7 runs another build"), std::string::npos) << text;
    EXPECT_NE(text.find("\"VELO06\" (24 bytes)"), std::string::npos) << text;
    EXPECT_NE(text.find("\"VELO05\" (16 bytes)"), std::string::npos) << text;
}

TEST(LayoutTest, an_address_that_is_too_short_is_another_layout_however_short) {
    EXPECT_NE(objection({kOurs, kOwner, 0}, 16, 24).find("\"VELO05\" (16 bytes)"), std::string::npos);
    for (std::size_t given = 0; given < 16; ++given) EXPECT_NE(objection({kOurs, kOwner, 0}, given, 16), "");
}

TEST(LayoutTest, a_layout_without_a_name_is_told_without_strange_letters) {
    const std::string text = objection({0x0a1b0041ULL, kOwner, 0}, 24, 24);
    EXPECT_NE(text.find("\"A???\" (24 bytes)"), std::string::npos) << text;
}

}  // namespace
}  // namespace velo::platform
