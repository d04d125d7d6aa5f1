// How a member waits: it looks a while, then lets the rest of the process make progress and gives up the
// core, over and over. Where members outnumber cores a while is short: whoever is waited for needs the core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collectives/board/counts.h"
#include "platform/ticks.h"
#include "types/engine.h"

namespace velo::board {

// Whom a member waits for: in words, and as a number if it is one alone.
struct Straggler {
    static constexpr std::uint32_t kNobody = UINT32_MAX;

    std::uint32_t member;
    std::string text;
};

struct BoardContext {
    // Whatever else this process has to serve, so that what others do with it goes on.
    void (*progress)(void* context);
    void (*log)(void* context, int level, const char* line);
    void (*trace)(void* context, const velo_board_event* event);  // null: nobody wants to know
    void* context;
    std::string name;          // of the board, in messages
    std::uint64_t warning_ns;  // how long a wait takes until it is told; 0: for ever
    bool crowded;              // there are more members than processors
    bool (*has_ended)(void* context, std::uint32_t member) = nullptr;  // null: not known
};

class Waiting {
 public:
    explicit Waiting(const BoardContext& around)
        : around_(around),
          looks_(around.crowded ? kFew : kMany),
          rounds_of_progress_(around.crowded ? kFewRounds : 1) {}

    // Of those members that are not `me`; looked for ten times a second.
    [[gnu::cold]] std::optional<std::uint32_t> ended(std::uint32_t members, std::uint32_t me);

    const std::string& name() const { return around_.name; }
    const Count& long_waits() const { return long_waits_; }

    // For who does not wait: looks in vain so far, and since when.
    struct Patience {
        std::uint32_t looks = 0;
        std::uint64_t began_ns = 0, due_ns = 0;
    };
    // After a look in vain.
    template <typename Check, typename FindStraggler>
    void look_again(Patience* patience, Check check, FindStraggler straggler) {
        if (++patience->looks % kLooksOfChecks != 0) [[likely]]
            return;
        if (patience->began_ns == 0) {
            long_waits_ += 1;
            patience->due_ns = around_.warning_ns;
        }
        check();
        if (is_due(&patience->began_ns, &patience->due_ns)) warn(patience->began_ns, straggler().text);
    }

    // Until `ready`. `check` is asked now and then: it throws if that can never be. `whom`: whom it waits
    // for.
    template <typename Ready, typename Check, typename FindStraggler>
    [[gnu::always_inline]] void until(Ready ready, Check check, FindStraggler straggler) {
        if (!looks_in(ready)) [[unlikely]]
            wait_long(ready, check, straggler);
    }

 private:
    // Many: some microseconds, several times what a line takes to come.
    static constexpr std::uint32_t kFew = 4, kMany = 128;
    // Of those that wait so many times in a row one makes progress; one asks whether this can end, for which
    // it looks where all others are.
    static constexpr std::uint32_t kFewRounds = 8, kRoundsOfChecks = 64, kLooksOfChecks = 256;

    template <typename Ready, typename Check, typename FindStraggler>
    [[gnu::cold, gnu::noinline]] void wait_long(Ready ready, Check check, FindStraggler straggler) {
        long_waits_ += 1;
        std::uint64_t began_ns = 0, due_ns = around_.warning_ns;
        if (around_.trace != nullptr) tell(VELO_BOARD_WAITS, straggler().member);
        for (std::uint32_t round = 1;; ++round) {
            if (round % rounds_of_progress_ == 0) around_.progress(around_.context);
            if (round % kRoundsOfChecks == 0) {
                check();
                if (is_due(&began_ns, &due_ns)) warn(began_ns, straggler().text);
            }
            if (ready()) break;
            give_up_core();
            if (looks_in(ready)) break;
        }
        if (around_.trace != nullptr) tell(VELO_BOARD_GOES_ON, 0);
    }
    template <typename Ready>
    [[gnu::always_inline]] bool looks_in(Ready ready) const {
        for (std::uint32_t look = 0; look < looks_; ++look) {
            if (ready()) [[likely]]
                return true;
            platform::relax();
        }
        return false;
    }
    void tell(velo_board_step step, std::uint64_t number) const {
        const velo_board_event event{step, 0, false, 0, number};
        around_.trace(around_.context, &event);
    }
    static bool is_due(std::uint64_t* began_ns, std::uint64_t* due_ns);
    void warn(std::uint64_t began_ns, const std::string& whom) const;
    static void give_up_core();

    BoardContext around_;
    std::uint32_t looks_, rounds_of_progress_;
    std::uint64_t looks_for_ended_ns_ = 0;  // next
    Count long_waits_;
};

}  // namespace velo::board
