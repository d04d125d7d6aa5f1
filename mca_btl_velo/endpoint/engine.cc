// Set-up: the mailbox, the policies, and what all of the engine needs.
#include "endpoint/engine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "endpoint/sizing.h"
#include "parameters/table.h"
#include "platform/failure.h"
#include "platform/locality.h"

namespace velo::endpoint {

Engine::Engine(const velo_config& config)
    : Engine(config, open_policy(config.flow_control, flow_config(config, Nodes::kOwn))) {}

Engine::Engine(const velo_config& config, std::unique_ptr<flow::Policy> policy)
    : config_(config),
      texts_(parameters::keep_texts(config_)),
      slots_per_peer_(slots_for_each(config, Nodes::kOwn)),
      mutex_(config.threads),
      gate_(config.threads),
      sleep_us_(longest_sleep(config)),
      probe_(std::make_unique<std::uint64_t>(0)),
      mechanisms_(config.single_copy_mechanism),
      mailbox_(open_mailbox(config, policy->config(), probe_.get(), mechanisms_.xpmem_segment())),
      in_turn_(mailbox_.outbox_plan().in_turn_bytes(), least_in_turn()),
      outbox_(mailbox_.outbox_plan(), &in_turn_),
      most_enclosed_(std::min<std::size_t>(config.max_message_bytes, outbox_.plan().size(1).room())),
      velo_(*this, std::move(policy), config.delay_credits, mailbox_.reader(), 0, &statistics_.data_packets,
            &statistics_.mailbox_high_water),
      routes_(config, outbox_.plan().chunks() > 0),
      peers_(mailbox_.directory_entries()),
      trace_(*velo_.policy),
      stalls_(std::uint64_t{config.stall_warning} * 1'000'000'000),
      rma_(mechanisms_, mailbox_.directory_entries(), *this),
      share_cells_(mailbox_.header().shares),
      deposits_(mutex_, mailbox_, in_turn_, outbox_, config_),
      buffers_(config.max_message_bytes),
      first_node_peer_(config.node_peer_count > 0 ? config.node_peers[0] : config.process_name),
      single_copy_only_(shares_processors(config) || mechanisms_.forced()) {
    mailbox_.header().may_doze = sleep_us_ > 0;
    const flow::PolicyConfig& flow = velo_.policy->config();
    if (velo_.ledger.on_demand()) {
        doorbell_ = mailbox_.doorbell();
        housekeeping_ = Housekeeping::kListen;
    }
    if (config.limic_peer_count > 0) {
        flow::PolicyConfig local{};
        local.peers = config.limic_peer_count;
        local.data_slots = mailbox_.limic_slots();
        limic_.emplace(*this, flow::make_policy("none", local, nullptr), false, mailbox_.limic_reader(),
                       flow.total_peers(), &statistics_.limic_packets, &statistics_.limic_high_water);
        sends_are_followed_ = true;
    }
    const fabric::shm::Address& own = mailbox_.address();
    address_.resize(sizeof own);
    std::memcpy(address_.data(), &own, sizeof own);
    open_remote(flow_config(config, Nodes::kOther));
    open_nowhere();
    if (remote_) {
        remote_slots_per_peer_ = slots_for_each(config, Nodes::kOther);
        remote_->always_in_packets = UINT32_MAX;
    }
    description_ = "flow_control " + std::string(velo_.policy->name()) + ", slots_per_peer " +
                   std::to_string(slots_per_peer_) + (config.slots_per_peer == 0 ? " (automatic)" : "") +
                   ", delay_credits " + (velo_.ledger.delays() ? "true" : "false") + ", peers " +
                   std::to_string(flow.peers) + " + " + std::to_string(flow.spare_peers) +
                   " spare, mailbox " + std::to_string(velo_.reader.capacity()) + " slots, limic " +
                   (limic_ ? std::to_string(config.limic_peer_count) + " peers with " +
                                 std::to_string(mailbox_.limic_slots()) + " slots"
                           : std::string("off")) +
                   ", segment " + std::to_string(mailbox_.bytes()) + " bytes in " + config.backing_directory +
                   ", single copy " + mechanisms_.description() + ", eager_limit " +
                   (config.eager_limit == 0 ? "automatic" : std::to_string(config.eager_limit));
    description_ += ", routes " + routes_.source();
    if (config.describe_locality) description_ += ", " + platform::describe_locality();
    if (remote_) {
        const flow::PolicyConfig& there = remote_->policy->config();
        description_ += ", other nodes: " + std::to_string(there.peers) + " peers, mailbox " +
                        std::to_string(remote_->reader.capacity()) + " slots, through UCX";
    }
    description_ += "; set: " + parameters::values_text(config);
    if (config.process_name <= first_node_peer_) log_routes();
    open_trace();
}

Engine::~Engine() {
    if (companion_ != nullptr) {
        if (companion_->config_.idle_sleep == 0) companion_->sleep_us_ = 0;
        companion_->companion_ = nullptr;
    }
    if (interceptor_.active())
        config_.log(config_.context, 1, ("intercepted: " + interceptor_.text()).c_str());
}

void Engine::sleep_with(Engine& other) {
    sleep_us_ = config_.threads ? 0 : other.sleep_us_;
    other.sleep_us_ = sleep_us_;
    mailbox_.header().may_doze = sleep_us_ > 0;
    if (sleep_us_ == 0) return;
    companion_ = &other;
    other.companion_ = this;
}

// Once for a node.
void Engine::log_routes() const {
    if (routes_.source().find("is ignored") != std::string::npos)
        config_.log(config_.context, 0, ("routes: " + routes_.source()).c_str());
    if (single_copy_only_)
        config_.log(
            config_.context, 5,
            "route: the reader copies long messages, as btl_velo_single_copy_mechanism names who, or as "
            "there are more processes than processors; the table is not asked for them");
    if (outbox_.plan().chunks() == 0)
        config_.log(config_.context, 5, "route: without an outbox nothing goes by reference or is staged");
    const std::string ranges = routes_.table().ranges(
        config_.eager_limit == 0 ? routes::kUsualEagerBytes : static_cast<std::size_t>(config_.eager_limit));
    for (std::size_t at = 0; at < ranges.size();) {
        const std::size_t end = ranges.find('\n', at);
        config_.log(config_.context, 5, ("route " + ranges.substr(at, end - at)).c_str());
        at = end + 1;
    }
}

void Engine::open_nowhere() {
    flow::PolicyConfig one{};
    one.peers = one.data_slots = 1;
    const auto index = static_cast<flow::PeerIndex>(peers_.size());
    nowhere_.emplace(*this, flow::make_policy("none", one, nullptr), false, mailbox_.reader(), index,
                     &lost_packets_, &lost_packets_);
    nobody_ = std::make_unique<Peer>(index, *nowhere_);
    nobody_->departed = true;
}

void Engine::fail(velo_status status, const char* text) {
    failed_ = true;
    config_.fatal(config_.context, status, text);
}

void Engine::refuse(const char* what, const wire::Header& header) {
    throw Failure(VELO_ERR_PROTOCOL, what + (": " + wire::to_string(header)));
}

void Engine::abort_on_violation() {
    std::string violation = velo_.policy->violation();
    // With several threads the one in the gate is moving the read position.
    bool bounded = !config_.threads && (velo_.policy->limited() || velo_.refusal != nullptr);
    if (violation.empty() && bounded && velo_.reader.occupancy() > velo_.reader.capacity()) {
        violation = "I4: more packets than slots in the mailbox";
    }
    if (violation.empty()) violation = outbox_.violation();
    if (violation.empty()) violation = deposits_.violation();
    if (violation.empty() && remote_) violation = remote_->policy->violation();
    if (violation.empty()) return;
    std::fprintf(stderr, "velo: flow control invariant violated: %s\n", violation.c_str());
    std::abort();
}

}  // namespace velo::endpoint
