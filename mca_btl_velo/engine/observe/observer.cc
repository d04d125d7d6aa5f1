#include "engine/observe/observer.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <mutex>
#include <utility>

#include "flow/policies.h"
#include "platform/process_identity.h"
#include "rma/rma.h"
#include "types/log_line.h"

namespace velo::engine {
namespace {

std::uint64_t seconds(std::uint64_t ns) {
    return ns / 1'000'000'000;
}

// With the process id where it is known.
std::string name_of(const Peer& peer) {
    const int pid = peer.segment.address().file.pid;
    return pid > 0 ? platform::process_here(peer.name) + " (process id " + std::to_string(pid) + ")"
                   : platform::process_text(peer.name);
}

}  // namespace

Observer::Observer(const Watched& watched)
    : watched_(watched), stalls_(std::uint64_t{watched.config.stall_warning} * 1'000'000'000) {}

void Observer::log(int level, const std::string& text) const {
    watched_.config.log(watched_.config.context, level, text.c_str());
}

bool Observer::open_trace(std::uint32_t slots_per_peer) {
    const velo_config& config = watched_.config;
    if (*config.trace == '\0') return false;
    const flow::PolicyConfig& flow = watched_.velo.policy->config();
    trace::FileHeader header{};
    header.process_name = config.process_name;
    header.peers = flow.peers;
    header.spare_peers = flow.spare_peers;
    const bool sized_by_slots = flow::minimum_data_slots(config.flow_control, 1, flow.credit_slots) > 0;
    header.slots_per_peer = sized_by_slots ? slots_per_peer : 0;
    header.credit_slots = flow.credit_slots;
    header.mailbox_slots = watched_.velo.reader.capacity();
    header.piggyback = flow.piggyback;
    std::snprintf(header.policy, sizeof header.policy, "%s", config.flow_control);
    const std::uint64_t limit =
        config.trace_limit_bytes != 0 ? config.trace_limit_bytes : std::uint64_t{config.trace_limit} << 20;
    trace_.open(*watched_.velo.policy, {config.trace, limit}, header);
    return true;
}

void Observer::board(const velo_board_event& event) {
    constexpr trace::Kind kKinds[] = {trace::Kind::kBoardBegin, trace::Kind::kBoardWait,
                                      trace::Kind::kBoardGoOn, trace::Kind::kBoardEnd};
    std::lock_guard lock(watched_.mutex);
    trace_.board(
        kKinds[event.step], event.number,
        std::uint32_t{event.communicator} << 16 | std::uint32_t{event.is_request} << 8 | event.operation);
}

void Observer::stalled(Peer& peer, std::uint64_t now_ns) {
    if (peer.stall.since_ns != 0) return;
    stalls_.begin(peer, now_ns);
    ++counts.stalls;
    trace_.stall(peer, trace::Kind::kStallBegin, peer.queue.bytes(), peer.policy().limited() ? 0 : 1);
}

void Observer::resumed(Peer& peer, std::uint64_t now_ns) {
    if (peer.stall.since_ns == 0) return;
    const std::uint64_t lasted = now_ns - peer.stall.since_ns;
    if (stalls_.warned(peer))
        log(0, "all messages for " + name_of(peer) + " were sent after " + std::to_string(seconds(lasted)) +
                   " s");
    stalls_.end(peer, now_ns);
    trace_.stall(peer, trace::Kind::kStallEnd, lasted / 1'000'000, peer.policy().limited() ? 0 : 1);
}

void Observer::look(std::uint64_t now_ns) {
    stalls_.check(now_ns, [this](Peer& peer, std::uint64_t quiet_ns) { warn_of_stall(peer, quiet_ns); });
    trace_.mailbox(watched_.velo.reader.occupancy(), watched_.velo.reader.capacity());
    trace_.idle(now_ns);
    if (std::string complaint = trace_.take_complaint(); !complaint.empty()) log(0, complaint);
}

void Observer::warn_of_stall(Peer& peer, std::uint64_t quiet_ns) {
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
    std::string text = "no progress towards " + name_of(peer) + " for " + std::to_string(seconds(quiet_ns)) +
                       " s: " + std::to_string(waiting) + " bytes wait for " + what + " (" + numbers +
                       "). That process may be computing without calling MPI, or be stopped. "
                       "btl_velo_stall_warning sets the seconds until this warning, 0 for none";
    log(0, text);
    trace_.stall(peer, trace::Kind::kStallWarning, seconds(quiet_ns), waiting);
    trace_.flush();
}

void Observer::dump(const Peer* only, int level) const {
    log(level, description_);
    watched_.peers.for_each([&](const Peer& peer) {
        if (only != nullptr && only != &peer) return;
        const flow::PeerFlow& flow = peer.counts();
        log_line(watched_.config, level,
                 "peer %" PRIu32 ": credits %" PRIu32 ", queued %zu bytes%s; as receiver: retrieved %" PRIu32
                 " of threshold %" PRIu32 ", granted %" PRIu32 ", intended %" PRIu32 ", available %" PRIu32,
                 peer.index, peer.ledger().credits(peer), peer.queue.bytes(),
                 peer.ledger().control_waiting(peer) ? ", control packet waiting" : "", flow.retrieved,
                 flow.threshold, flow.current, peer.policy().intended(peer.source()),
                 peer.policy().available());
    });
}

void Observer::publish(const fabric::shm::Segment& mailbox, std::size_t own_bytes) {
    counts.flow = watched_.velo.policy->counters();
    if (watched_.remote) counts.flow += watched_.remote->policy->counters();
    counts.stalled_ns = 0;
    const std::uint64_t now = platform::monotonic_ns();
    watched_.peers.for_each([&](const Peer& peer) {
        counts.stalled_ns += peer.stall.ns_until(now);
        counts.largest_share =
            std::max<std::uint64_t>(counts.largest_share, peer.policy().intended(peer.source()));
    });
    counts.mailbox_bytes = std::uint64_t{mailbox.header().capacity} * wire::kPacketBytes;
    counts.segment_bytes = mailbox.bytes();
    counts.segment_used_bytes = mailbox.used_bytes();
    counts.private_bytes = own_bytes + private_bytes();
    counts.peers_met = watched_.peers.met();
    mailbox.header().statistics = counts;
    mailbox.header().statistics_final.store(1, std::memory_order_release);
}

std::size_t Observer::unmet_peer_bytes() const {
    return sizeof(fabric::shm::Directory::Entry) + PeerTable::kEntryBytes + rma::Rma::kBytesPerExpectedPeer +
           watched_.velo.policy->traits().bytes_per_peer;
}

std::size_t Observer::private_bytes() const {
    const PeerTable& peers = watched_.peers;
    const flow::Policy& here = *watched_.velo.policy;
    std::size_t flows =
        here.config().total_peers() * here.traits().bytes_per_peer + here.traits().bytes_shared;
    if (watched_.remote) {
        const flow::Policy& there = *watched_.remote->policy;
        flows += there.config().total_peers() * there.traits().bytes_per_peer + there.traits().bytes_shared +
                 std::size_t{watched_.remote->reader.capacity()} * wire::kPacketBytes;
    }
    return peers.size() * (PeerTable::kEntryBytes + rma::Rma::kBytesPerExpectedPeer) +
           peers.met() * (sizeof(Peer) + rma::Rma::kBytesPerPeer) + flows;
}

}  // namespace velo::engine
