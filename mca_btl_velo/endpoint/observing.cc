// What the engine tells about itself: stalls, the warning when one lasts, the trace, its state and
// statistics.
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <mutex>

#include "endpoint/engine.h"
#include "platform/monotonic.h"
#include "platform/process_identity.h"

namespace velo::endpoint {
namespace {

std::uint64_t seconds(std::uint64_t ns) {
    return ns / 1'000'000'000;
}

// With the process id where it is known.
std::string name_of(const Peer& peer) {
    const int pid = peer.segment.address().file.pid;
    return platform::process_text(peer.name) +
           (pid > 0 ? " (process id " + std::to_string(pid) + ")" : std::string());
}

}  // namespace

void Engine::open_trace() {
    if (*config_.trace == '\0') return;
    const flow::PolicyConfig& flow = velo_.policy->config();
    trace::FileHeader header{};
    header.process_name = config_.process_name;
    header.peers = flow.peers;
    header.spare_peers = flow.spare_peers;
    const bool sized_by_slots = flow::minimum_data_slots(config_.flow_control, 1, flow.credit_slots) > 0;
    header.slots_per_peer = sized_by_slots ? slots_per_peer_ : 0;
    header.credit_slots = flow.credit_slots;
    header.mailbox_slots = velo_.reader.capacity();
    header.piggyback = flow.piggyback;
    std::snprintf(header.policy, sizeof header.policy, "%s", config_.flow_control);
    const std::uint64_t limit =
        config_.trace_limit_bytes != 0 ? config_.trace_limit_bytes : std::uint64_t{config_.trace_limit} << 20;
    trace_.open({config_.trace, limit}, header);
    sends_are_followed_ = true;
}

// In a process that fork has made the mutex may be held for ever, by a thread that is not there, and the
// buffer of the trace is its parent's.
void Engine::abandon() {
    if (getpid() != mailbox_.address().file.pid) return;
    std::lock_guard lock(mutex_);
    trace_.flush();
    mailbox_.file().unpublish();
}

void Engine::trace_board(const velo_board_event& event) {
    constexpr trace::Kind kKinds[] = {trace::Kind::kBoardBegin, trace::Kind::kBoardWait,
                                      trace::Kind::kBoardGoOn, trace::Kind::kBoardEnd};
    std::lock_guard lock(mutex_);
    trace_.board(
        kKinds[event.step], event.number,
        std::uint32_t{event.communicator} << 16 | std::uint32_t{event.is_request} << 8 | event.operation);
}

// If there is none yet.
void Engine::begin_stall(Peer& peer) {
    if (peer.stall.since_ns != 0) return;
    stalls_.begin(peer, platform::monotonic_ns());
    ++statistics_.stalls;
    trace_.stall(peer, trace::Kind::kStallBegin, peer.queue.bytes(), peer.policy().limited() ? 0 : 1);
}

// If there is one.
void Engine::end_stall(Peer& peer) {
    if (peer.stall.since_ns == 0) return;
    const std::uint64_t now = platform::monotonic_ns();
    const std::uint64_t lasted = now - peer.stall.since_ns;
    if (stalls_.warned(peer)) {
        std::string text = "all messages for process " + name_of(peer) + " have left, after " +
                           std::to_string(seconds(lasted)) + " s";
        config_.log(config_.context, 0, text.c_str());
    }
    stalls_.end(peer, now);
    trace_.stall(peer, trace::Kind::kStallEnd, lasted / 1'000'000, peer.policy().limited() ? 0 : 1);
}

void Engine::count_stalls() {
    const std::uint64_t now = platform::monotonic_ns();
    statistics_.stalled_ns = 0;
    peers_.for_each([&](const Peer& peer) { statistics_.stalled_ns += peer.stall.ns_until(now); });
}

// Called now and then by progress, under the gate only.
void Engine::look_around() {
    look_for_departed();
    if (!stalls_.any() && !trace_.on()) return;
    std::lock_guard lock(mutex_);
    const std::uint64_t now = platform::monotonic_ns();
    stalls_.check(now, [this](Peer& peer, std::uint64_t quiet_ns) { warn_of_stall(peer, quiet_ns); });
    trace_.mailbox(velo_.reader.occupancy(), velo_.reader.capacity());
    trace_.idle(now);
    if (std::string complaint = trace_.take_complaint(); !complaint.empty())
        config_.log(config_.context, 0, complaint.c_str());
}

void Engine::warn_of_stall(Peer& peer, std::uint64_t quiet_ns) {
    const flow::PeerFlow& flow = peer.counts();
    const mailbox::Reader<>& reader = peer.domain.reader;
    std::size_t waiting = peer.queue.bytes();
    for (const velo_send* held = peer.leaving.front(); held != nullptr; held = held->next)
        waiting += held->bytes[0] + held->bytes[1];
    const char* what = "a free slot";
    char numbers[320];
    if (peer.link.holds_some()) {
        what = "the network";
        std::snprintf(numbers, sizeof numbers,
                      "it holds what was sent before: the connection is not made yet, or it takes no more");
    } else if (peer.policy().limited()) {
        what = "credits";
        const std::string due = flow.threshold == UINT32_MAX || flow.threshold == 0
                                    ? "no return is due"
                                    : std::to_string(flow.retrieved) + " of the " +
                                          std::to_string(flow.threshold) +
                                          " packets that make a return have come";
        std::snprintf(numbers, sizeof numbers,
                      "%" PRIu32 " credits left; in the other direction it holds %" PRIu32
                      ", and %s; %" PRIu64 " packets wait in this process's mailbox of %" PRIu32 " slots",
                      peer.ledger().credits(peer), flow.current, due.c_str(),
                      std::uint64_t{reader.occupancy()}, reader.capacity());
    } else {
        std::snprintf(numbers, sizeof numbers, "no credits are counted on this path: its mailbox is full");
    }
    std::string text = "no progress towards process " + name_of(peer) + " for " +
                       std::to_string(seconds(quiet_ns)) + " s: " + std::to_string(waiting) +
                       " bytes wait for " + what + " (" + numbers +
                       "). That process may be computing without calling MPI, or be stopped. "
                       "btl_velo_stall_warning sets the seconds until this warning, 0 for none";
    config_.log(config_.context, 0, text.c_str());
    trace_.stall(peer, trace::Kind::kStallWarning, seconds(quiet_ns), waiting);
    trace_.flush();
}

void Engine::dump(const Peer* only, int level) {
    config_.log(config_.context, level, description_.c_str());
    peers_.for_each([&](const Peer& peer) {
        if (only != nullptr && only != &peer) return;
        const flow::PeerFlow& flow = peer.counts();
        tell(config_, level,
             "peer %" PRIu32 ": credits %" PRIu32 ", queued %zu bytes%s; as receiver: retrieved %" PRIu32
             " of threshold %" PRIu32 ", granted %" PRIu32 ", intended %" PRIu32 ", available %" PRIu32,
             peer.index, peer.ledger().credits(peer), peer.queue.bytes(),
             peer.ledger().control_waiting(peer) ? ", control packet waiting" : "", flow.retrieved,
             flow.threshold, flow.current, peer.policy().intended(peer.source()), peer.policy().available());
    });
}

void Engine::publish_statistics() {
    statistics_.flow = velo_.policy->counters();
    if (remote_) statistics_.flow += remote_->policy->counters();
    count_stalls();
    statistics_.rma_mailbox_bytes = rma_.mailbox_bytes();
    statistics_.atomics = rma_.atomics();
    statistics_.mailbox_bytes = std::uint64_t{mailbox_.header().capacity} * wire::kPacketBytes;
    statistics_.segment_bytes = mailbox_.bytes();
    statistics_.private_bytes = private_bytes();
    statistics_.peers_met = peers_.met();
    mailbox_.header().statistics = statistics_;
    mailbox_.header().statistics_final.store(1, std::memory_order_release);
}

std::size_t Engine::unmet_peer_bytes() const {
    return sizeof(fabric::shm::Directory::Entry) + kExpectedPeerBytes + velo_.policy->traits().bytes_per_peer;
}

std::size_t Engine::private_bytes() const {
    std::size_t flows = velo_.policy->config().total_peers() * velo_.policy->traits().bytes_per_peer;
    if (remote_) {
        const flow::PolicyConfig& there = remote_->policy->config();
        flows += there.total_peers() * remote_->policy->traits().bytes_per_peer +
                 remote_->policy->traits().bytes_shared +
                 std::size_t{remote_->reader.capacity()} * wire::kPacketBytes;
    }
    return sizeof(Engine) + peers_.size() * kExpectedPeerBytes +
           peers_.met() * (sizeof(Peer) + rma::Rma::kBytesPerPeer) + flows +
           velo_.policy->traits().bytes_shared + buffers_.bytes();
}

std::vector<const fabric::shm::SegmentHeader*> Engine::node_segments() const {
    std::vector<const fabric::shm::SegmentHeader*> segments{&mailbox_.header()};
    peers_.for_each([&](const Peer& peer) {
        if (peer.segment.bytes() > 0) segments.push_back(&peer.segment.header());
    });
    for (const fabric::shm::Segment& segment : segments_of_departed_) segments.push_back(&segment.header());
    std::sort(segments.begin(), segments.end(), [](auto* a, auto* b) { return a->owner < b->owner; });
    return segments;
}

}  // namespace velo::endpoint
