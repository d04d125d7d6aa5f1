// Processors that processes share, and those that each has for itself.
#include "platform/processors.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace velo::platform {
namespace {

cpu_set_t mask(const std::vector<int>& processors) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int processor : processors) CPU_SET(processor, &set);
    return set;
}

std::optional<std::uint32_t> in(const std::vector<const char*>& localities) {
    return processors_in(localities);
}

TEST(ProcessorsTest, who_has_the_mask_of_the_launcher_shares_it) {
    EXPECT_EQ(processors_in(mask({0}), mask({0})), 1U) << "taskset -c 0 mpirun";
    EXPECT_EQ(processors_in(mask({2, 3}), mask({2, 3})), 2U);
}

TEST(ProcessorsTest, who_is_bound_is_one_of_several) {
    EXPECT_EQ(processors_in(mask({1}), mask({0, 1, 2, 3})), 4U);
    EXPECT_EQ(processors_in(mask({1}), mask({0})), 2U) << "mpirun binds beyond its own mask";
}

TEST(ProcessorsTest, ranks_that_are_bound_to_one_each_have_as_many_as_there_are_ranks) {
    EXPECT_EQ(in({"SK0:L30:L20:L10:CR0:HT0:NM0", "SK0:L30:L21:L11:CR1:HT1:NM0"}), 2U);
    EXPECT_EQ(in({"SK0:CR0-1:HT0-3", "SK0:CR2-3:HT4-7"}), 8U);
    EXPECT_EQ(in({"HT0,2-3", "HT3,5"}), 4U);
}

TEST(ProcessorsTest, ranks_that_are_bound_to_the_same_one_share_it) {
    EXPECT_EQ(in({"SK0:CR0:HT0:NM0", "SK0:CR0:HT0:NM0"}), 1U) << "mpirun --cpu-set 0";
}

TEST(ProcessorsTest, nothing_is_known_where_one_is_not_bound) {
    EXPECT_EQ(in({"SK0:CR0:HT0:NM0", nullptr}), std::nullopt);
    EXPECT_EQ(in({"", "SK0:CR0:HT0:NM0"}), std::nullopt);
    EXPECT_EQ(in({"SK0:CR0:NM0"}), std::nullopt);
    EXPECT_EQ(in({"HT4-2"}), std::nullopt);
    EXPECT_EQ(in({"HT0-4294967295"}), std::nullopt);
    EXPECT_EQ(in({"HT1;2"}), std::nullopt);
}

TEST(ProcessorsTest, a_script_that_starts_a_rank_is_not_the_launcher) {
    const std::map<pid_t, pid_t> parents{{30, 20}, {20, 10}, {10, 1}, {1, 0}};
    const auto parent_of = [&](pid_t process) { return parents.at(process); };
    EXPECT_EQ(find_launcher(
                  30, [](pid_t process) { return process == 30; }, parent_of),
              20);
    EXPECT_EQ(find_launcher(
                  20, [](pid_t) { return false; }, parent_of),
              20);
    EXPECT_EQ(find_launcher(
                  30, [](pid_t) { return true; }, parent_of),
              0);
    EXPECT_EQ(find_launcher(
                  0, [](pid_t) { return false; }, parent_of),
              0)
        << "in another namespace";
}

}  // namespace
}  // namespace velo::platform
