// Which of several ways messages of a size take, tried on the messages themselves: blocks of them go each
// way, in an order that looks like chance, and a block is judged by how long it takes from its first message
// to its last, for each byte. What the peers do with the messages is in that, and what the program does
// between them, which makes blocks longer and never shorter: the shortest block of each way counts. The way
// in use is left for one that is clearly shorter, and all are tried again after a number of messages that
// grows as long as the outcome stays the same, and that lets no trial cost more than a small part of the time
// until the next. What is hopeless is left out after a round, and of the first trial if it was so for
// messages of a smaller size. The first trial waits for as many messages as its first round has, of the
// longest for as many as it has itself, since many programs send few of those, and with `patience` for more;
// until then the way is the one that is expected, or the one that turned out to be much faster than that for
// messages of the next smaller size that was tried. All processes try in the same order, so that two that
// send to each other as much mostly try the same at the same time.
//
// Pure: the clock and the ways are the user's.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace velo::platform {

// Sizes from kLeast on, a power of two, in kClasses classes of a factor of two, the last one without end. The
// last of the kWays is possible from kLeastOfLast on, the last but one from kLeastOfLastTwo on. A block is
// kBlock messages, or kBlockBytes of longer ones, which differ less from each other, and cost more; or as
// many as there are under way at once, up to kBlock of them and kWindowBytes, since a few of these that go
// another way than the others show little.
template <std::size_t kLeast, unsigned kClasses, std::uint32_t kBlock, unsigned kWays = 2,
          std::size_t kLeastOfLast = kLeast, std::size_t kBlockBytes = 1UL * 1024 * 1024,
          std::size_t kLeastOfLastTwo = kLeast, std::size_t kWindowBytes = 16UL * 1024 * 1024>
class Contest {
    static_assert(std::has_single_bit(kLeast) && std::has_single_bit(kLeastOfLast) &&
                  std::has_single_bit(kLeastOfLastTwo) && kLeastOfLast >= kLeastOfLastTwo &&
                  kLeastOfLastTwo >= kLeast);

 public:
    // Of a trial; in each a block goes each way. The first has fewer, as a program may send no more than some
    // hundred messages of a size.
    static constexpr std::uint8_t kRounds = 4, kRoundsOfFirst = 2;
    static constexpr std::uint32_t kShortestRun = 2, kLongestRun = 64;  // trials
    static constexpr float kClearly = 0.95F, kMuch = 0.7F;
    // A trial costs at most one part of so many of the time until the next, up to the longest run, as if no
    // way took more than kMostTimes the time of the best.
    // The first is confirmed sooner.
    static constexpr std::uint32_t kWorth = 32, kWorthOfFirst = 8;

    // What is expected: the first way, from `last_from` bytes on the last, with which the first trial waits
    // for `patience` trials: that way may have a contest of its own, which should not be under way as well.
    explicit Contest(std::size_t last_from = std::numeric_limits<std::size_t>::max(),
                     std::uint32_t patience = 1)
        : last_from_(last_from), patience_(patience) {
        for (unsigned index = 0; index < kClasses; ++index) {
            classes_[index].way = classes_[index].chosen = expected(index);
            classes_[index].left = before_first(index);
            classes_[index].length = block(index);
        }
    }

    // What goes this way goes through so much memory, round and round, whose lines are in another state in
    // use than after anything else has gone between: each block that way counts behind it.
    void settles(unsigned way, std::size_t bytes) { settling_bytes_[way] = bytes; }
    // What somebody knows better before the first trial of this size, which then waits as where the last way
    // is expected; one that is under way already ends without an outcome.
    void expect(std::size_t bytes, unsigned way) {
        const unsigned index = index_of(bytes);
        Class& size = classes_[index];
        if (size.trials > 0 || (size.rounds > 0 && size.waits)) return;
        if (std::exchange(size.rounds, 0) > 0) {
            number(size);
            size.counts = false;
            size.place = 0;
            size.bytes = 0;
            size.left = before_first(index, size.length);
        }
        size.way = size.chosen = static_cast<std::uint8_t>(way);
        const std::uint32_t before = before_first(index, size.length);
        size.waits = true;
        size.left += before_first(index, size.length) - before;
    }
    // Messages of `bytes` >= kLeast go this way, of 0 to kWays - 1.
    unsigned way(std::size_t bytes) const { return classes_[index_of(bytes)].way; }
    // A trial is under way.
    bool tries(std::size_t bytes) const { return classes_[index_of(bytes)].rounds != 0; }
    // Of one that has begun: the block in which it did, and the way that it goes.
    using Ticket = std::uint32_t;
    static constexpr unsigned kBlockBits = 8, kTicketBits = kBlockBits + 3;
    static constexpr unsigned way_of(Ticket ticket) { return ticket >> kBlockBits & 7; }
    // Of one that goes a way that somebody else has chosen; `ended` is not told of it.
    static constexpr Ticket other(unsigned way) { return ticket(static_cast<std::uint8_t>(way), kOther); }
    // Sizes that are told apart, and the one of so many bytes >= kLeast.
    static constexpr unsigned kSizes = kClasses;
    static constexpr unsigned index_of(std::size_t bytes) {
        return std::min(static_cast<unsigned>(std::bit_width(bytes / kLeast)), kClasses) - 1;
    }
    // The same for one that begins now, of several that may be under way, and `ended` is told of each, in any
    // order: a block tries no more than it needs, the others go as before, and it lasts from where its first
    // one begins, as those that are under way together may all end at once.
    template <typename Clock>
    Ticket begin(std::size_t bytes, Clock&& ticks) {
        const unsigned index = index_of(bytes);
        Class& size = classes_[index];
        size.most = std::max(size.most, ++size.under_way);
        if (size.rounds == 0) return ticket(size.way, size.block);
        if (size.started == size.uncounted + size.length + kLost) open_block(size, index);
        if (++size.started > size.uncounted + size.length) return ticket(size.chosen, kOther);
        if (size.started == size.uncounted + 1) size.first_began = ticks();
        return ticket(size.way, size.block);
    }
    // The way of each size outside its trials, counted from 1, as a decimal digit, the smallest size's first.
    std::uint64_t digits() const {
        static_assert(kWays <= 9 && kClasses <= 19);
        std::uint64_t digits = 0;
        for (const Class& size : classes_) digits = 10 * digits + size.chosen + 1;
        return digits;
    }
    // One has gone the way that is due. ticks() is asked where a block begins or ends. True: another way has
    // been chosen.
    template <typename Clock>
    bool went(std::size_t bytes, Clock&& ticks) {
        Class& size = classes_[index_of(bytes)];
        size.bytes += bytes;
        if (--size.left != 0) [[likely]]
            return false;
        const std::uint8_t before = size.chosen;
        turn(index_of(bytes), ticks());
        return size.chosen != before;
    }
    // What began in another block tells nothing about this one. True: another way has been chosen.
    template <typename Clock>
    bool ended(std::size_t bytes, Ticket ticket, Clock&& ticks) {
        Class& size = classes_[index_of(bytes)];
        size.under_way -= size.under_way > 0;  // some of those that were lost may have been forgotten
        return (ticket & kOther) == size.block && went(bytes, ticks);
    }
    // The same of one that has waited for somebody else for so long that its way is hopeless for now: it is
    // not tried any further in this trial; some of those between trials bring the next one about.
    template <typename Clock>
    bool waited(std::size_t bytes, Ticket ticket, Clock&& ticks) {
        const unsigned index = index_of(bytes);
        Class& size = classes_[index];
        if ((ticket & kOther) != size.block || (size.rounds == 0 && ++size.waited < kManyWaited))
            return ended(bytes, ticket, ticks);
        size.under_way -= size.under_way > 0;
        const std::uint8_t before = size.chosen;
        if (size.rounds == 0) {
            turn(index, ticks());
            return size.chosen != before;
        }
        size.shortest[size.way] = kNone;
        size.left_out |= static_cast<std::uint8_t>(bit(size.way));
        if ((size.left_out | size.told) == bit(ways(index)) - 1) size.told = 0;
        size.counts = false;
        size.bytes = 0;
        next(size, index);
        if (size.rounds == 0)
            decide(index);
        else
            open_block(size, index);
        return size.chosen != before;
    }
    // Of those of this size, how many are under way.
    std::uint32_t under_way(std::size_t bytes) const { return classes_[index_of(bytes)].under_way; }
    // Messages of a trial of this size, if no way is left out, and before the first one.
    static constexpr std::uint32_t trial_of(std::size_t bytes, std::uint8_t rounds = kRoundsOfFirst) {
        return trial(index_of(bytes), block(index_of(bytes)), rounds);
    }
    std::uint32_t before_first_of(std::size_t bytes) const { return before_first(index_of(bytes)); }

 private:
    static constexpr std::uint32_t kShortestBlock = 2;
    // Messages that begin in vain while a block waits for the end of its own: some of those are lost, with
    // their peer, and it begins anew.
    static constexpr std::uint32_t kLost = 4096;
    // Blocks are numbered from 0 on, round and round; of none of them.
    static constexpr std::uint8_t kOther = (1U << kBlockBits) - 1;
    static_assert(kWays <= 8);
    static constexpr Ticket ticket(std::uint8_t way, std::uint8_t block) {
        return block | Ticket{way} << kBlockBits;
    }
    // A way whose shortest block took so many times the shortest of all is left out after a round.
    static constexpr float kHopeless = 1.5F, kMostTimes = 8;
    static constexpr std::uint8_t kManyWaited = 8;  // of a run: a trial may find a way that does not wait
    static constexpr float kNone = std::numeric_limits<float>::max();

    struct Class {
        std::uint32_t left = 0;               // messages until the next turn
        std::uint32_t run = kShortestRun;     // trials
        std::uint64_t bytes = 0, began = 0;   // of the block under way
        std::array<float, kWays> shortest{};  // ticks a byte
        std::uint32_t trials = 0;
        // Of the block under way: those that have begun, the uncounted ones included, and when the first one
        // that counts has.
        std::uint32_t started = 0;
        std::uint64_t first_began = 0;
        std::uint8_t block = 0;  // its number; between trials: that of the run
        // Begun and not ended: now, and at most since the last trial began; messages of a block.
        std::uint32_t under_way = 0, most = 0, length = 0;
        std::uint32_t uncounted = 0;  // of a block, before them
        std::uint8_t way = 0, chosen = 0;
        std::uint8_t rounds = 0, place = 0;  // of a trial, yet to come; in the round
        // A bit for each way: left out of the rest of a trial; of the first one, since a smaller size told
        // so.
        std::uint8_t left_out = 0, told = 0;
        std::uint8_t waited = 0;  // too long, since the last trial
        bool waits = false;       // the first trial, with patience: `expect`
        bool counts = false;  // not the first messages after a change, which pay for what the way before left
    };

    static constexpr unsigned ways(unsigned index) {
        return kWays - unsigned{kLeast << index < kLeastOfLast} - unsigned{kLeast << index < kLeastOfLastTwo};
    }
    static constexpr std::uint32_t block(unsigned index) {
        return std::clamp(static_cast<std::uint32_t>(kBlockBytes / (kLeast << index)), kShortestBlock,
                          kBlock);
    }
    static constexpr std::uint32_t longest_block(unsigned index) {
        return std::clamp(static_cast<std::uint32_t>(kWindowBytes / (kLeast << index)), block(index), kBlock);
    }
    static constexpr std::uint32_t uncounted(std::uint32_t length) { return std::max(length / 4, 1U); }
    // Those that settle a way.
    std::uint32_t settling(unsigned index, unsigned way) const {
        return static_cast<std::uint32_t>(settling_bytes_[way] / (kLeast << index));
    }
    static constexpr std::uint32_t trial(unsigned index, std::uint32_t length, std::uint8_t rounds) {
        return rounds * ways(index) * (uncounted(length) + length);
    }
    static std::uint8_t rounds(const Class& size) { return size.trials == 0 ? kRoundsOfFirst : kRounds; }
    std::uint32_t before_first(unsigned index) const { return before_first(index, block(index)); }
    std::uint32_t before_first(unsigned index, std::uint32_t length) const {
        const std::uint32_t all = trial(index, length, kRoundsOfFirst);
        if (is_awaited(index)) return patience_ * all;
        return block(index) > kShortestBlock ? all / kRoundsOfFirst : all;
    }

    void turn(unsigned index, std::uint64_t now) {
        Class& size = classes_[index];
        if (size.rounds == 0) {
            const std::uint32_t length =
                std::clamp(std::exchange(size.most, size.under_way), block(index), longest_block(index));
            if (size.trials == 0 && is_awaited(index) && length > size.length) {
                size.left = before_first(index, length) - before_first(index, size.length);
                size.length = length;
                return;
            }
            begin_trial(size, index, length);
        } else if (size.counts) {
            float& shortest = size.shortest[size.way];
            shortest =
                std::min(shortest, static_cast<float>(now - size.began) / static_cast<float>(size.bytes));
            size.counts = false;
            next(size, index);
        } else {
            size.counts = true;
        }
        size.bytes = 0;
        size.began = size.counts && size.started > size.uncounted ? size.first_began : now;
        if (size.rounds == 0) return decide(index);
        if (!size.counts) return open_block(size, index);
        size.left = size.length;
    }
    void begin_trial(Class& size, unsigned index, std::uint32_t length) {
        size.rounds = rounds(size);
        size.length = length;
        size.shortest.fill(kNone);
        size.left_out = 0;
        if (size.trials > 0) size.told = 0;
        for (unsigned all = ways(index); all > 0 && is_left_out(size, due(size, ways(index))); --all)
            step(size, index);
    }
    void open_block(Class& size, unsigned index) {
        number(size);
        size.counts = false;
        size.started = 0;
        size.way = due(size, ways(index));
        size.uncounted = uncounted(size.length) + settling(index, size.way);
        size.left = size.uncounted;
    }
    static void number(Class& size) { size.block = static_cast<std::uint8_t>((size.block + 1) % kOther); }
    static constexpr unsigned bit(unsigned way) { return 1U << way; }
    static bool is_left_out(const Class& size, unsigned way) {
        return ((size.left_out | size.told) & bit(way)) != 0;
    }
    // The next block of the trial: the next way in the order of the round that is not left out.
    void next(Class& size, unsigned index) const {
        do step(size, index);
        while (size.rounds > 0 && is_left_out(size, due(size, ways(index))));
    }
    void step(Class& size, unsigned index) const {
        if (++size.place < ways(index)) return;
        size.place = 0;
        --size.rounds;
        size.left_out |= hopeless(size);
    }
    static float shortest_of_all(const Class& size) {
        return *std::min_element(size.shortest.begin(), size.shortest.end());
    }
    // Of those that have been tried.
    static std::uint8_t hopeless(const Class& size) {
        const float best = shortest_of_all(size);
        unsigned ways = 0;
        for (unsigned way = 0; way < kWays; ++way)
            if (size.shortest[way] != kNone && size.shortest[way] > kHopeless * best) ways |= bit(way);
        return static_cast<std::uint8_t>(ways);
    }
    // Any of the orders that are the ways in a circle, forwards or backwards, from any of them on.
    std::uint8_t due(const Class& size, unsigned ways) const {
        std::uint32_t chance = ((size.trials + 1) * kRounds - size.rounds) * 0x85EBCA77U + 0x9E3779B1U;
        chance = (chance ^ chance >> 15) * 0x2C1B3C6DU;
        chance ^= chance >> 13;
        const unsigned step = (chance / ways) % 2 != 0 ? ways - size.place : size.place;
        return static_cast<std::uint8_t>((chance % ways + step) % ways);
    }
    void decide(unsigned index) {
        Class& size = classes_[index];
        const auto best = std::min_element(size.shortest.begin(), size.shortest.end());
        const bool changes = *best < kClearly * size.shortest[size.chosen];
        if (changes) size.chosen = static_cast<std::uint8_t>(best - size.shortest.begin());
        size.run = changes ? kShortestRun : std::min(4 * size.run, kLongestRun);
        size.way = size.chosen;
        size.waited = 0;
        number(size);
        std::uint32_t all = trial(index, size.length, kRounds);
        for (unsigned way = 0; way < ways(index); ++way) all += kRounds * settling(index, way);
        size.left = std::max(size.run * all, std::min(worth(size, index), kLongestRun * all));
        ++size.trials;
        tell(index);
    }
    // Messages until a trial is worth what it costs: as if all ways took in it what they did in this one.
    std::uint32_t worth(const Class& size, unsigned index) const {
        const float best = shortest_of_all(size);
        const auto block = static_cast<float>(uncounted(size.length) + size.length);
        float messages = 0;  // that could go the best way in the time that the others take longer
        for (unsigned way = 0; way < ways(index) && best > 0; ++way) {
            const float times =
                std::min(size.shortest[way] == kNone ? kHopeless : size.shortest[way] / best, kMostTimes);
            const std::uint32_t blocks = times < kHopeless ? kRounds : 1;
            messages +=
                (times - 1) * static_cast<float>(blocks) * (block + static_cast<float>(settling(index, way)));
        }
        const std::uint32_t parts = size.trials > 0 ? kWorth : kWorthOfFirst;
        return static_cast<std::uint32_t>(static_cast<float>(parts) * messages);
    }
    bool is_met(unsigned index) const {
        const Class& size = classes_[index];
        return size.trials > 0 || size.rounds > 0 || size.left < before_first(index) ||
               size.length > block(index);
    }
    // Larger sizes that have not been met learn from this trial, until the next larger one has its own; of
    // the last way, which differs most between sizes, only that it is slow enough to begin with another.
    void tell(unsigned index) {
        const Class& size = classes_[index];
        const unsigned slow = hopeless(size) | size.told;
        const float best = size.shortest[size.chosen];
        for (unsigned larger = index + 1; larger < kClasses && !is_met(larger); ++larger) {
            Class& other = classes_[larger];
            const std::uint8_t usual = expected(larger);
            const float otherwise = size.shortest[usual];
            const bool is_much = otherwise == kNone ? (slow & bit(usual)) != 0 : best <= kMuch * otherwise;
            other.told = static_cast<std::uint8_t>(slow & (bit(kWays - 1) - 1));
            other.way = other.chosen = is_much ? size.chosen : usual;
        }
    }
    bool is_awaited(unsigned index) const { return expected(index) != 0 || classes_[index].waits; }
    std::uint8_t expected(unsigned index) const { return kLeast << index < last_from_ ? 0 : kWays - 1; }

    std::size_t last_from_;
    std::uint32_t patience_;
    std::array<std::size_t, kWays> settling_bytes_{};
    std::array<Class, kClasses> classes_{};
};

}  // namespace velo::platform
