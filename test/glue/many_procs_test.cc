// The BTL's add_procs in a job of 16,384 processes takes sixteen times the steps that it takes in one of 1024:
// of the glue, and of the engine below it where that looks for a peer. A step is a basic block of these files,
// which are compiled to count them.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "fabric/shm/address.h"
#include "many_procs.h"
#include "steps.h"

namespace velo::test {
namespace {

constexpr std::uint32_t kFew = 1024, kMany = 16'384;
// To read a counter of one peer. The steps are basic blocks, and sanitizers add some of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kStepsPerPeer = 128;
#else
constexpr std::uint64_t kStepsPerPeer = 32;
#endif

void rename(void* bytes, std::uint64_t name) {
    fabric::shm::Address address;
    std::memcpy(&address, bytes, sizeof address);
    address.process_name = name;
    std::memcpy(bytes, &address, sizeof address);
}

template <typename Action>
std::uint64_t steps_of(Action action) {
    const std::uint64_t before = steps();
    action();
    return steps() - before;
}

std::uint64_t name_of(std::uint32_t rank) {
    return std::uint64_t{MANY_PROCS_JOB} << 32 | rank;
}

class Job {
 public:
    explicit Job(std::uint32_t size, const char* flow_control = "lazy")
        : engine(many_procs_open(flow_control, size, rename)) {}
    ~Job() { many_procs_close(); }
    Job(const Job&) = delete;
    velo_engine* const engine;
};

// Sixteen times as many, a search that takes 14 looks instead of 10, and nothing that grows faster.
void expect_in_proportion(std::uint64_t few, std::uint64_t many) {
    EXPECT_GT(few, kFew);
    EXPECT_LE(many, few * (kMany / kFew) * 14 / 10);
}

class ManyProcsTest : public ::testing::Test {
 protected:
    void SetUp() override {
        if (!many_procs_possible()) GTEST_SKIP() << "Open MPI calls PMIx directly";
    }
};

TEST_F(ManyProcsTest, all_at_once_are_added_in_steps_proportional_to_their_number) {
    std::uint64_t taken[2];
    for (const std::uint32_t size : {kFew, kMany}) {
        Job job(size);
        taken[size == kMany] = steps_of([&] { many_procs_add(0, size); });
        EXPECT_EQ(many_procs_lookups(), size - 1);
        std::set<const void*> endpoints;
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            ASSERT_TRUE(many_procs_reachable(rank));
            endpoints.insert(many_procs_endpoint(rank));
        }
        EXPECT_EQ(endpoints.size(), size);
        EXPECT_FALSE(endpoints.contains(nullptr));
    }
    expect_in_proportion(taken[0], taken[1]);
}

TEST_F(ManyProcsTest, one_after_the_other_and_again_they_take_no_more) {
    std::uint64_t taken[2];
    for (const std::uint32_t size : {kFew, kMany}) {
        Job job(size);
        many_procs_add(0, size);
        std::vector<const void*> endpoints;
        for (std::uint32_t rank = 0; rank < size; ++rank) endpoints.push_back(many_procs_endpoint(rank));
        taken[size == kMany] = steps_of([&] {
            for (std::uint32_t rank = size; rank-- > 0;) many_procs_add(rank, 1);
        });
        for (std::uint32_t rank = 0; rank < size; ++rank)
            ASSERT_EQ(many_procs_endpoint(rank), endpoints[rank]);
    }
    expect_in_proportion(taken[0], taken[1]);
}

TEST_F(ManyProcsTest, their_counters_are_read_in_steps_proportional_to_their_number) {
    std::uint64_t taken[2];
    unsigned names = 0;
    while (std::strcmp(velo_counter_at(names)->name, "peer_names") != 0) ++names;
    for (const std::uint32_t size : {kFew, kMany}) {
        Job job(size);
        many_procs_add(0, size);
        ASSERT_EQ(velo_counter_peers(job.engine), size - 1);
        std::vector<std::uint64_t> values(size);
        taken[size == kMany] =
            steps_of([&] { velo_counter_of_peers(job.engine, names, values.data(), size); });
        for (std::uint32_t peer = 0; peer < size - 1; ++peer) ASSERT_EQ(values[peer], name_of(peer + 1));
        EXPECT_EQ(values[size - 1], 0U);
    }
    expect_in_proportion(taken[0], taken[1]);
    // Places for processes of other jobs, of which there are none, are looked at once.
    EXPECT_LE(taken[0], kStepsPerPeer * kFew);
}

// The MTL is unloaded before the BTL closes the engine.
TEST_F(ManyProcsTest, nothing_of_a_component_is_touched_after_it_has_released_the_engine) {
    for (int visits = 0; visits < 3; ++visits) {
        Job job(2);
        for (int visit = 0; visit < visits; ++visit) many_procs_visit();
        many_procs_add(0, 2);
        EXPECT_TRUE(many_procs_reachable(1));
    }
}

}  // namespace
}  // namespace velo::test
