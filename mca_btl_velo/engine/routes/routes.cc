#include "engine/routes/routes.h"

#include <atomic>
#include <stdexcept>

#include "platform/failure.h"
#include "platform/process_identity.h"
#include "types/log_line.h"

namespace velo::engine {

routes::Table Routes::choose(const velo_config& config, std::string* source) {
    try {
        return routes::Table::choose(config.routes, routes::calibration_file(), routes::processor_name(),
                                     source);
    } catch (const std::invalid_argument& objection) {
        throw Failure(VELO_ERR_PARAMETER, "btl_velo_routes is \"" + std::string(config.routes) +
                                              "\": " + objection.what() +
                                              ". Set it to auto, safe, or what velo-info --routes prints");
    }
}

// The line is one that the peer stores into whenever it has read messages, and that nobody else loads.
void Routes::look_at_distance(Peer& peer) noexcept {
    if (peer.segment.bytes() == 0) return;
    const fabric::shm::SegmentHeader& its = peer.segment.header();
    const auto& line = (peer.domain.kind == Domain::Kind::kVelo ? its.pointers : its.limic_pointers).read;
    std::uint64_t position = 0;
    const std::uint64_t ticks = platform::ticks_of([&] { position = line.load(std::memory_order_relaxed); });
    const std::uint64_t ns = platform::now_ns() - opened_ns_, all = platform::ticks() - opened_ticks_;
    if (!peer.proximity.record(position, ticks * ns / all)) return;
    apply_to(peer);
    log_line(config_, 20, "%s is %s", platform::process_array(peer.name).data(),
             peer.proximity.far() ? "far: it shares no cache with this one" : "near");
}

}  // namespace velo::engine
