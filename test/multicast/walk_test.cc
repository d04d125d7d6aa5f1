// Seeded walks of larger groups: all schemes, every rate of loss, members that do not listen for a while.
// VELO_MULTICAST_WALKS: how many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "multicast/world.h"
#include "schedule/random.h"

namespace velo::multicast {
namespace {

using schedule::Random;

Config random_config(Random& random) {
    Config config;
    config.members = random.chance(1, 4) ? random.between(2, 7) : random.between(8, 64);
    config.scheme = static_cast<Scheme>(random.below(4));
    config.window = 1U << random.below(7);
    config.share = random.below(config.window);
    config.shares = random.chance(1, 4) ? Shares::kStatic : Shares::kDynamic;
    config.ack_every = random.between(1, 16);
    config.skewed = random.chance(3, 4);
    config.co_roots = random.chance(1, 2) ? kSquareRoot : random.below(config.members);
    config.reliable_transfer = random.chance(1, 3);
    config.first = random.chance(1, 4) ? UINT32_MAX - random.below(100) : random.below(1000);
    config.most_backoff = 16U << random.below(5);
    config.sources = {random.below(config.members)};
    if (random.chance(1, 4)) config.sources.push_back((config.sources[0] + 1) % config.members);
    return config;
}

class Walk {
 public:
    Walk(const Config& config, std::uint32_t datagrams, Random& random)
        : world_(config, datagrams),
          random_(random),
          loss_(random.chance(1, 4) ? 0 : random.below(40)),
          doubles_(random.below(10)) {}

    // What is wrong, or the empty string.
    std::string run() {
        for (std::uint64_t step = 0; !world_.finished(); ++step) {
            // Who does not listen is another one from time to time, often nobody.
            if (step % 4096 == 0) deaf_ = random_.below(2 * world_.members());
            if (step > kPatience) return "it does not end";
            clock_ += random_.below(1000);
            if (random_.chance(1, 16)) broadcast(random_.below(world_.members()));
            if (world_.packets().empty())
                wait();
            else
                pass(random_.below(static_cast<std::uint32_t>(world_.packets().size())));
            if (step % 64 == 0) {
                tick();
                if (std::string broken = world_.violation(); !broken.empty()) return broken;
            }
        }
        return world_.violation();
    }
    const World& world() const { return world_; }

 private:
    static constexpr std::uint64_t kPatience = 20'000'000;

    void broadcast(std::uint32_t m) {
        while (world_.wants_to_send(m)) {
            world_.set_clock(m, clock_);
            if (!world_.broadcast(m)) break;
        }
    }
    void pass(std::uint32_t index) {
        const std::uint32_t to = world_.packets()[index].to;
        if (to == deaf_) return;
        world_.set_clock(to, clock_);
        if (random_.chance(loss_, 100))
            world_.lose(index);
        else
            world_.arrive(index, random_.chance(doubles_, 100));
    }
    void tick() {
        for (std::uint32_t m = 0; m < world_.members(); ++m)
            if (m != deaf_ && world_.deadline(m) <= clock_) {
                world_.set_clock(m, clock_);
                world_.tick(m);
            }
    }
    void wait() {
        std::uint64_t next = kNever;
        for (std::uint32_t m = 0; m < world_.members(); ++m) {
            broadcast(m);
            next = std::min(next, world_.deadline(m));
        }
        if (next == kNever || !world_.packets().empty()) return;
        clock_ = std::max(clock_, next);
        deaf_ = UINT32_MAX;
        tick();
    }

    World world_;
    Random& random_;
    std::uint32_t loss_, doubles_;  // in 100
    std::uint32_t deaf_ = UINT32_MAX;
    std::uint64_t clock_ = 0;
};

TEST(MulticastWalk, large_groups_get_everything_once_and_in_order_whatever_is_lost) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr std::uint64_t kUsual = 40;
#else
    constexpr std::uint64_t kUsual = 100;
#endif
    const char* given = std::getenv("VELO_MULTICAST_WALKS");
    const std::uint64_t walks = given != nullptr ? std::strtoull(given, nullptr, 10) : kUsual;
    Counters sum;
    for (std::uint64_t seed = 1; seed <= walks; ++seed) {
        Random random(seed);
        const Config config = random_config(random);
        ASSERT_EQ(Member::objection(config), "");
        Walk walk(config, random.between(1, 300), random);
        ASSERT_EQ(walk.run(), "") << "seed " << seed << ": " << kSchemeNames[static_cast<int>(config.scheme)]
                                  << ", " << config.members << " members, window " << config.window;
        for (std::uint32_t m = 0; m < walk.world().members(); ++m) {
            const Counters& c = walk.world().member(m).counters();
            sum.repairs += c.repairs;
            sum.repairs_to_all += c.repairs_to_all;
            sum.resent += c.resent;
            sum.acks_joined += c.acks_joined;
            sum.acks_piggybacked += c.acks_piggybacked;
            sum.full += c.full;
        }
    }
    for (const std::uint64_t count :
         {sum.repairs, sum.repairs_to_all, sum.resent, sum.acks_joined, sum.acks_piggybacked, sum.full})
        EXPECT_GT(count, 0U);
}

}  // namespace
}  // namespace velo::multicast
