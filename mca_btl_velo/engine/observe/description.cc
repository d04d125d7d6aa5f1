#include "engine/observe/description.h"

#include "engine/peers/peer.h"
#include "parameters/table.h"
#include "platform/locality.h"
#include "platform/process_identity.h"

namespace velo::engine {

std::string description_of(const Described& engine) {
    const velo_config& config = engine.config;
    const flow::PolicyConfig& flow = engine.velo.policy->config();
    std::string text =
        "flow_control " + std::string(engine.velo.policy->name()) + ", slots_per_peer " +
        std::to_string(engine.slots_per_peer) + (config.slots_per_peer == 0 ? " (automatic)" : "") +
        ", delay_credits " + (engine.velo.ledger.delays() ? "true" : "false") + ", peers " +
        std::to_string(flow.peers) + " + " + std::to_string(flow.spare_peers) + " spare, mailbox " +
        std::to_string(engine.velo.reader.capacity()) + " slots, limic " +
        (config.limic_peer_count > 0 ? std::to_string(config.limic_peer_count) + " peers with " +
                                           std::to_string(engine.mailbox.limic_slots()) + " slots"
                                     : std::string("off")) +
        ", segment " + std::to_string(engine.mailbox.bytes()) + " bytes in " + config.backing_directory +
        ", single copy " + engine.mechanisms.description() + ", eager_limit " +
        (config.eager_limit == 0 ? "automatic" : std::to_string(config.eager_limit));
    text += ", routes " + engine.routes.source();
    if (engine.remote) {
        text += ", other nodes: " + std::to_string(engine.remote->policy->config().peers) +
                " peers, mailbox " + std::to_string(engine.remote->reader.capacity()) + " slots, through UCX";
    }
    if (const std::string set = parameters::set_text(config); !set.empty()) text += "; set: " + set;
    if (!config.describe_locality) return text;
    // The values are those of the whole node; each process has processors of its own.
    return (engine.first_on_node ? text + "; " : platform::process_text(config.process_name) + ": ") +
           platform::describe_locality();
}

void log_routes(const Described& engine) {
    const velo_config& config = engine.config;
    if (engine.routes.source().find("is ignored") != std::string::npos)
        config.log(config.context, 0, ("routes: " + engine.routes.source()).c_str());
    if (engine.single_copy_only)
        config.log(
            config.context, 5,
            "route: the receiver copies long messages, as btl_velo_single_copy_mechanism names who, or as "
            "there are more processes than processors; the table is not asked for them");
    if (engine.mailbox.outbox_plan().chunks() == 0)
        config.log(config.context, 5, "route: without an outbox nothing goes by reference or is staged");
    if (config.by_reference != std::string_view("auto"))
        config.log(config.context, 5,
                   config.by_reference == std::string_view("always")
                       ? "route: btl_velo_by_reference always sends what takes several packets by reference, "
                         "whatever the table says"
                       : "route: btl_velo_by_reference never sends everything in packets that goes at once, "
                         "whatever the table says");
    const std::string ranges = engine.routes.table().ranges(routes::eager_bytes(config.eager_limit));
    for (std::size_t at = 0; at < ranges.size();) {
        const std::size_t end = ranges.find('\n', at);
        config.log(config.context, 5, ("route " + ranges.substr(at, end - at)).c_str());
        at = end + 1;
    }
}

}  // namespace velo::engine
