// One member's view of a board: the rules, without waiting. design/board.md.
//
// Runs are counted by each member for itself, and all take part in all of them in the same order. In a run a
// member publishes or not, and picks up what others have published; all members know who does, and how many
// bytes. A run uses the line `run % window` of each writer, and the chunk `run % chunks`, or the slip
// `run % slips`, if it gives more than a line holds; its writer waits until all members have finished the run
// that used it before: the position of the slowest reader is the credit.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "collectives/board/layout.h"
#include "platform/cache.h"
#include "platform/failure.h"

namespace velo::board {

template <template <class> class Atom = std::atomic>
class BasicBoard {
 public:
    struct Places {
        Progress<Atom>* progress;
        Counter<Atom>* counters;
        Line<Atom>* lines;
        std::byte *chunks, *slips;
    };

    // `run`: the number of the first one.
    BasicBoard(const Places& places, const Shape& shape, std::uint32_t me, std::uint64_t run = 0)
        : places_(places),
          shape_(shape),
          slips_(shape.slips()),
          me_(me),
          run_(run),
          lowest_(run),
          line_(run % shape.window),
          word_(Word::pack(run, 0, 0)) {}

    std::uint32_t me() const { return me_; }
    std::uint32_t members() const { return shape_.members; }
    const Shape& shape() const { return shape_; }
    std::uint64_t run() const { return run_; }
    // Of whoever was last to arrive.
    std::uint32_t result() const { return shape_.members; }

    // --- the steps of a run

    // The first. By turns: everybody waits for everybody, and nobody publishes more than a line. Of each
    // writer two lines then take turns: where those of a window are read one after the other, a processor
    // fetches the next one before it is written, and delays its writer.
    void begin(std::uint32_t signature, bool by_turns = false) {
        signature_ = signature;
        word_ = Word::pack(run_, 0, Signature::kind_of(signature));
        by_turns_ = by_turns;
        places_.progress[me_].begun.store(Begun::pack(run_ + 1, signature), std::memory_order_relaxed);
    }

    // Whether this run's place for so many bytes is free, and those of the `more` after it. Looks at the
    // others only when what it knows of them does not suffice. Before anything is stored in a place.
    bool may_publish(std::uint32_t bytes, std::uint32_t more = 0) {
        return run_ + more < lowest_ + places_for(bytes) || look_for_slowest(places_for(bytes), more);
    }
    // How many runs of so many bytes may be under way.
    std::uint32_t places_for(std::uint32_t bytes) const {
        if (by_turns_) return Shape::kTurns;
        return bytes <= kInLine ? shape_.window : is_slip(bytes) ? slips_ : shape_.chunks;
    }
    // So many runs after this one may be published along with it, and nobody has to look for the slowest as
    // long as that goes on: whoever is seen in a run has finished all until so many before it.
    std::uint32_t most_ahead() const { return std::max(shape_.chunks, 2U) / 2 - 1; }
    // Where a writer's payload of this run is, or of one after it; the same at all members.
    std::byte* place(std::uint32_t writer, std::uint32_t bytes, std::uint32_t ahead = 0) const {
        if (bytes <= kInLine) return line(writer, ahead).payload;
        if (is_slip(bytes))
            return places_.slips +
                   (std::size_t{writer} * slips_ + ((run_ + ahead) & (slips_ - 1))) * Shape::kSlipBytes;
        const std::uint64_t chunk = (run_ + ahead) % shape_.chunks;
        return places_.chunks + (std::size_t{writer} * shape_.chunks + chunk) * shape_.chunk;
    }
    // The kind of place that so many bytes are stored in, but for lines, which always have memory: Backing.
    std::uint32_t kind_of(std::uint32_t bytes) const {
        return bytes <= kInLine ? 0 : is_slip(bytes) ? Backing::kSlips : Backing::kChunks;
    }
    // All places of a writer of one kind.
    std::span<std::byte> places_of(std::uint32_t writer, std::uint32_t kind) const {
        const bool are_slips = kind == Backing::kSlips;
        const std::size_t bytes =
            are_slips ? std::size_t{slips_} * Shape::kSlipBytes : std::size_t{shape_.chunks} * shape_.chunk;
        return {(are_slips ? places_.slips : places_.chunks) + writer * bytes, bytes};
    }
    Atom<std::uint32_t>& backing_of(std::uint32_t writer) const {
        return writer == result() ? places_.progress[0].result : places_.progress[writer].own;
    }
    // The same, to be stored in: this member's, or that of the reader whom alone it is for. Readers have its
    // lines from when it was used before: all are asked back at once, instead of one after the other by the
    // stores.
    std::byte* place_to_store(std::uint32_t whose, std::uint32_t bytes, std::uint32_t ahead) const {
        std::byte* const place = this->place(whose, bytes, ahead);
        if (bytes <= kInLine) return place;
        for (std::uint32_t at = 0; at < bytes; at += kLineBytes) platform::prefetch_for_write(place + at);
        return place;
    }
    // When the payload is there. As the result: only who has arrived last.
    // `whole`: where all of an operation is that has several runs, if it is in no chunk.
    void publish(std::uint32_t writer, std::uint32_t bytes, std::uint32_t ahead = 0,
                 const Whole& whole = {}) {
        Line<Atom>& line = this->line(writer, ahead);
        if (bytes > kInLine) std::memcpy(line.payload, &whole, sizeof whole);
        // release: nobody finds the word without the payload.
        line.word.store(word(bytes, ahead), std::memory_order_release);
    }
    // Whether that writer has published so many bytes in this run, in an operation of the same kind.
    bool published(std::uint32_t writer, std::uint32_t bytes) const {
        // acquire: the payload is read after the word.
        return line(writer).word.load(std::memory_order_acquire) == word(bytes);
    }

    // Of what that writer has published, which is more than a line.
    Whole whole_of(std::uint32_t writer) const {
        Whole whole;
        std::memcpy(&whole, line(writer).payload, sizeof whole);
        return whole;
    }

    // --- members that read each other's memory, of which there are kMostReaders at most
    static constexpr std::uint32_t kMostReaders = 64;
    // Runs of an operation whose blocks they read, in all of which but the first one nothing is published.
    static constexpr std::uint32_t kMostSilent = 1U << 16;
    void introduce(const Memory& memory) { places_.progress[me_].memory = memory; }
    // Of one who has published.
    const Memory& memory_of(std::uint32_t member) const { return places_.progress[member].memory; }
    // This member can read the memory of that one.
    void reads(std::uint32_t member) {
        Atom<std::uint64_t>& mine = places_.progress[me_].reads;
        mine.store(mine.load(std::memory_order_relaxed) | std::uint64_t{1} << member,
                   std::memory_order_relaxed);
    }
    // All members from `first` to before `end` can read the memory of this one.
    bool is_read_by(std::uint32_t first, std::uint32_t end) const {
        return all_others(first, end, [this](const Progress<Atom>& other) {
            return (other.reads.load(std::memory_order_relaxed) >> me_ & 1) != 0;
        });
    }
    // They have finished all runs before this one.
    bool have_finished(std::uint32_t first, std::uint32_t end) const {
        return all_others(first, end, [this](const Progress<Atom>& other) {
            // acquire: what they have read was read before it is overwritten.
            return other.finished.load(std::memory_order_acquire) >= run_;
        });
    }

    // A writer that is ahead may have published the next run, too: its line comes while this one is used.
    // What it will yet write takes the line away from here in any case, as this member has read it a window
    // ago.
    void expect_next(std::uint32_t writer) const { platform::prefetch(&line(writer, 1)); }

    // Says that this member is there, and with it that what it has published is. True for the last one, who
    // owes the others the result: to them it is the sign that all are there.
    bool arrive() {
        const std::uint32_t groups = groups_of(shape_.members), group = me_ / kCounted;
        const std::uint32_t size = std::min(kCounted, shape_.members - group * kCounted);
        if (!arrive(places_.counters[group], size)) return false;
        return groups == 1 || arrive(places_.counters[groups], groups);
    }
    // All members have published this run, so many before it at most: they have finished all before those.
    void all_are_here(std::uint32_t ahead = 0) { lowest_ = std::max(lowest_, run_ - ahead); }

    // The last: nothing of this run is read or written here any more.
    void finish() {
        ++run_;
        word_ += std::uint64_t{1} << Word::kRunAt;
        if (++line_ == shape_.window) {
            line_ = 0;
            if (run_ / Word::kForget != (run_ - shape_.window) / Word::kForget) [[unlikely]]
                forget_old_lines();
        }
        // release: nobody overwrites what this member is still reading.
        places_.progress[me_].finished.store(run_, std::memory_order_release);
    }

    // This member has found a fault, and takes no part any more.
    void end() {
        Atom<std::uint64_t>& begun = places_.progress[me_].begun;
        // release: what it has published is there.
        begun.store(begun.load(std::memory_order_relaxed) | Begun::kEnded, std::memory_order_release);
    }

    // --- for who has waited long; nothing: all is well so far

    // What no correct member writes; `bytes`: those that it is to publish.
    std::optional<Failure> fault_of(std::uint32_t writer, std::uint32_t bytes) const {
        if (auto fault = fault_of_operations()) return fault;
        const auto finished = who_has_finished(writer);  // before the word
        const std::uint64_t found = line(writer).word.load(std::memory_order_acquire);
        const std::uint64_t age = Word::age(found, run_);
        const std::uint32_t places = by_turns_ ? Shape::kTurns : shape_.window;
        if (age == 0 && (found & Word::kPublished) != 0) {
            if (found == word(bytes)) return {};
            if (Word::kind_of(found) != Signature::kind_of(signature_))
                return differs(writer, "in " + describe_kind(Word::kind_of(found)));
            return other_bytes(writer, Word::bytes_of(found), bytes);
        }
        const bool is_old = (found & Word::kPublished) != 0 && age % places == 0 && age < Word::kRuns - kNear;
        if (found != 0 && !is_old) return wrong("an impossible word in the line of " + rank(writer));
        if (finished) return differs(*finished, "in another operation before");
        return {};
    }
    static Failure other_bytes(std::uint32_t writer, std::uint64_t theirs, std::uint64_t ours) {
        return Failure(VELO_ERR_MISMATCH, rank(writer) + " has " + std::to_string(theirs) +
                                              " bytes where this rank has " + std::to_string(ours));
    }
    // A member whose progress no correct member has.
    std::optional<Failure> fault_of_progress() const {
        if (auto fault = fault_of_operations()) return fault;
        for (std::uint32_t member = 0; member < shape_.members; ++member)
            if (!plausible(places_.progress[member].finished.load(std::memory_order_acquire)))
                return wrong("an impossible position of " + rank(member));
        return {};
    }
    // Between two runs: a member that has ended before the next one.
    std::optional<Failure> fault_of_readers() const {
        for (std::uint32_t member = 0; member < shape_.members; ++member) {
            const std::uint64_t begun = places_.progress[member].begun.load(std::memory_order_acquire);
            const std::uint64_t runs = Begun::runs_of(begun);
            if (runs <= run_ && has_ended(begun)) return ended(member, runs);
        }
        return {};
    }
    struct Slowest {
        std::uint32_t member;
        std::uint64_t run;  // that it is in, or will begin next
    };
    // Whoever is behind most; of several the first.
    Slowest slowest() const {
        Slowest last{me_, run_};
        for (std::uint32_t member = 0; member < shape_.members; ++member) {
            const Progress<Atom>& at = places_.progress[member];
            const std::uint64_t finished = at.finished.load(std::memory_order_relaxed);
            const bool behind = member != me_ && finished <= run_ &&
                                Begun::runs_of(at.begun.load(std::memory_order_relaxed)) <= run_;
            if (finished < last.run || (behind && finished == last.run && last.member == me_))
                last = {member, finished};
        }
        return last;
    }

 private:
    static constexpr std::uint64_t kNear = 1U << 20;  // runs that nobody can be ahead

    // Of this run, or of one after it.
    std::uint64_t word(std::uint32_t bytes, std::uint64_t ahead = 0) const {
        return word_ + (std::uint64_t{bytes} << Word::kBytesAt) + (ahead << Word::kRunAt);
    }

    static std::string rank(std::uint32_t member) { return "rank " + std::to_string(member); }
    static Failure wrong(const std::string& what) { return Failure(VELO_ERR_PROTOCOL, what); }
    Failure differs(std::uint32_t member, const std::string& what) const {
        return wrong("this rank is in " + describe(signature_) + ", and " + rank(member) + " " + what);
    }

    // Who is in this run with another operation, or has ended in it or before.
    std::optional<Failure> fault_of_operations() const {
        for (std::uint32_t member = 0; member < shape_.members; ++member) {
            // acquire: what it has published before it has ended is there.
            const std::uint64_t begun = places_.progress[member].begun.load(std::memory_order_acquire);
            const std::uint64_t runs = Begun::runs_of(begun);
            const std::uint32_t signature = Begun::signature_of(begun);
            if (runs == run_ + 1 && signature != signature_)
                return differs(member, "in " + describe(signature));
            if (runs <= run_ + 1 && has_ended(begun)) return ended(member, runs);
        }
        return {};
    }
    static bool has_ended(std::uint64_t begun) { return (begun & Begun::kEnded) != 0; }
    static Failure ended(std::uint32_t member, std::uint64_t runs) {
        return Failure(VELO_ERR_REMOTE, rank(member) + " has found an error in run " +
                                            std::to_string(runs - 1) + ", and a line of it says which");
    }

    // The writer, if it has finished this run; of the result anybody who has.
    std::optional<std::uint32_t> who_has_finished(std::uint32_t writer) const {
        const bool is_result = writer == result();
        for (std::uint32_t member = is_result ? 0 : writer; member < shape_.members; ++member) {
            // acquire: what was published in this run is there.
            if (places_.progress[member].finished.load(std::memory_order_acquire) > run_) return member;
            if (!is_result) break;
        }
        return {};
    }

    template <typename Is>
    bool all_others(std::uint32_t first, std::uint32_t end, Is is) const {
        for (std::uint32_t member = first; member < end; ++member)
            if (member != me_ && !is(places_.progress[member])) return false;
        return true;
    }

    bool is_slip(std::uint32_t bytes) const { return bytes <= Shape::kSlipBytes && slips_ > 0; }

    // Those that this member writes, and the first one those of the result, which it may not be the one to
    // write, nor be alone with: what is no more the old word stays. Nobody is so far behind, or ahead.
    void forget_old_lines() {
        const std::uint32_t end = me_ == 0 && !shape_.exchanges() ? result() : me_;
        for (std::uint32_t writer = me_; writer <= end; writer += std::max(end - me_, 1U))
            for (std::size_t slot = 0; slot < shape_.lines(); ++slot) {
                Atom<std::uint64_t>& at = places_.lines[writer * shape_.lines() + slot].word;
                std::uint64_t word = at.load(std::memory_order_relaxed);
                const std::uint64_t age = Word::age(word, run_);
                if (word != 0 && age >= Word::kOld && age < Word::kRuns - kNear)
                    (void)at.compare_exchange_strong(word, 0, std::memory_order_relaxed,
                                                     std::memory_order_relaxed);
            }
    }

    // Of this run, or of one after it, up to `window` - 1.
    Line<Atom>& line(std::uint32_t writer, std::size_t ahead = 0) const {
        const std::size_t at = line_ + ahead;
        const std::size_t slot = by_turns_            ? shape_.window + run_ % Shape::kTurns
                                 : at < shape_.window ? at
                                                      : at - shape_.window;
        return places_.lines[writer * shape_.lines() + slot];
    }
    // A member may be ahead of another one by a window, and by the runs in which nothing is published of what
    // it needs; it does not go back.
    bool plausible(std::uint64_t finished) const {
        return finished >= lowest_ && finished <= run_ + shape_.window + kMostSilent;
    }

    bool look_for_slowest(std::uint32_t places, std::uint32_t more) {
        std::uint64_t lowest = run_;
        for (std::uint32_t member = 0; member < shape_.members; ++member) {
            if (member == me_) continue;
            // acquire: what it has read of those places was read before they are overwritten.
            const std::uint64_t finished = places_.progress[member].finished.load(std::memory_order_acquire);
            if (!plausible(finished)) return false;  // fault_of_progress says so
            lowest = std::min(lowest, finished);
        }
        lowest_ = lowest;
        return run_ + more < lowest_ + places;
    }

    // The counter is back at 0 before anybody can come to it for the next run: that is after the result.
    bool arrive(Counter<Atom>& counter, std::uint32_t all) {
        // release, acquire: the last one, and so whoever sees the result, has seen what all have done before.
        if (counter.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 != all) return false;
        counter.arrived.store(0, std::memory_order_relaxed);
        return true;
    }

    Places places_;
    Shape shape_;
    std::uint32_t slips_;  // 0, or a power of two
    std::uint32_t me_;
    std::uint64_t run_;
    std::uint64_t lowest_;  // all members have finished all runs before this one
    std::size_t line_;      // run_ % window
    std::uint64_t word_;    // of this run, without bytes
    std::uint32_t signature_ = 0;
    bool by_turns_ = false;
};

using Board = BasicBoard<>;

// In zeroed memory of Offsets::of(shape).end bytes, or in that of another one. Its creator calls `lay_out`
// first.
void lay_out(std::byte* memory, const Shape& shape, std::uint64_t first_run = 0);
// The next board of that shape in the memory of one that all members have left: lines that it has used are
// old to it, and where that could not be told any more, are forgotten.
void lay_out_again(std::byte* memory, const Shape& shape);
// Throws: it is of another build, or of another shape.
[[noreturn]] void refuse();
[[noreturn]] void refuse_shape();
// Throws Failure unless a board of that shape lies there.
Board view(std::byte* memory, std::size_t bytes, const Shape& shape, std::uint32_t me);

}  // namespace velo::board
