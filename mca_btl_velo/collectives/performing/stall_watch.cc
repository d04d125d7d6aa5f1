#include "collectives/performing/stall_watch.h"

#include <string>
#include <utility>

#include "collectives/algorithms/collectives.h"

namespace velo::performing {
namespace {

// Nobody is asked what he is in while all goes well.
constexpr std::uint64_t kSuspicious = 100'000'000;
// Who has not looked for so long cannot say that nothing has moved.
constexpr std::uint64_t kAway = 10'000'000'000;

std::string in_words(const LiveRun& run) {
    return goal::collectives::describe(run.compiled->signature);
}

}  // namespace

void StallWatch::look(std::uint64_t now_ns) {
    if (host_.first_run() == nullptr && !has_moved_.load(std::memory_order_relaxed)) return;
    const bool was_away = now_ns - std::exchange(looked_ns_, now_ns) > kAway;
    if (has_moved_.exchange(false, std::memory_order_relaxed) || was_away) {
        quiet_since_ns_ = now_ns;
        compare_after_ns_ = kSuspicious;
        warn_after_ns_ = std::uint64_t{config_.stall_warning} * 1'000'000'000;
        return;
    }
    const std::uint64_t quiet_ns = now_ns - quiet_since_ns_;
    const bool compares = quiet_ns >= compare_after_ns_;
    const bool warns = warn_after_ns_ != 0 && quiet_ns >= warn_after_ns_;
    for (LiveRun* run = host_.first_run(); run != nullptr; run = run->following) {
        if (!run->begun || run->concluded || run->stopped()) continue;
        if (compares) compare(*run);
        if (warns) warn(*run, quiet_ns);
    }
    if (compares) compare_after_ns_ *= 2;
    if (warns) warn_after_ns_ *= 2;
}

// A message of this run that is none of its operation says so.
void StallWatch::compare(LiveRun& run) {
    if (run.start.lane != 0 || run.compiled->signature == 0) return;
    const auto other = messenger_.unexpected(run.context, [&](const matching::Key& key) {
        return static_cast<std::uint32_t>(key.tag) / kLaneTag != run.compiled->signature &&
               static_cast<std::uint32_t>(key.source) >> kRankBits == run.round >> kRankBits;
    });
    if (!other) return;
    const auto rank = static_cast<std::uint32_t>(other->source) & ((1U << kRankBits) - 1);
    const std::string text =
        "rank " + std::to_string(run.group->rank) + " of group " + std::to_string(run.group->id) + " is in " +
        in_words(run) + ", and rank " + std::to_string(rank) + " in " +
        goal::collectives::describe(static_cast<std::uint32_t>(other->tag) / kLaneTag) + ", as run " +
        std::to_string(run.number) + ": all members have to call the same operations in the same order";
    config_.log(config_.context, 0, text.c_str());
    const goal::Vertex v = run.receives != nullptr ? run.receives->vertex : 0;
    host_.stop_mismatched(run, {VELO_ERR_PROTOCOL, v, rank, run.group->rank});
}

void StallWatch::warn(const LiveRun& run, std::uint64_t quiet_ns) const {
    const goal::Schedule& schedule = run.schedule();
    std::string text = "rank " + std::to_string(run.group->rank) + " of group " +
                       std::to_string(run.group->id) + ": no progress in " + in_words(run) + ", run " +
                       std::to_string(run.number) + ", for " + std::to_string(quiet_ns / 1'000'000'000) +
                       " s: " + std::to_string(run.finished_count()) + " of " +
                       std::to_string(schedule.count()) + " operations are over";
    if (run.receives != nullptr)
        text += "; waits at operation " + std::to_string(run.receives->vertex) + ": " +
                goal::describe(schedule.operation(run.receives->vertex), &schedule);
    text +=
        ". Another member may be computing without calling MPI, be stopped, or have called another "
        "operation. "
        "btl_velo_stall_warning sets the seconds until this warning, 0 for none";
    config_.log(config_.context, 0, text.c_str());
}

}  // namespace velo::performing
