// Several performers in one process, driven in turn: a job whose processes run schedules together.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/velo_goal.h"
#include "engine_party.h"

namespace velo::test {

struct PerformerPartyConfig {
    std::uint32_t size = 2;
    const char* flow_control = "dynamic";
    std::uint32_t slots_per_peer = 8;
    std::size_t eager_limit = 1024;
    std::size_t pool = std::size_t{1} << 16;
    std::size_t headers = std::size_t{1} << 16;
    bool threads = false;
    std::uint32_t stall_warning = 0;
    const char* single_copy = "auto";
    std::uint64_t helper = 0;
};

class PerformerParty {
 public:
    explicit PerformerParty(const PerformerPartyConfig& config) : config_(config) {
        for (std::uint32_t rank = 0; rank < config.size; ++rank) open(rank);
        for (std::uint32_t rank = 0; rank < config.size; ++rank) groups_.push_back(group(rank, 0));
    }
    ~PerformerParty() {
        for (std::uint32_t rank = 0; rank < size(); ++rank) close(rank);
    }
    PerformerParty(const PerformerParty&) = delete;

    std::uint32_t size() const { return config_.size; }
    velo_performer* at(std::uint32_t rank) const { return members_[rank]->performer; }
    // Of all members, with id 0.
    velo_goal_group* operator[](std::uint32_t rank) const { return groups_[rank]; }
    velo_goal_group* group(std::uint32_t rank, std::uint32_t id) {
        velo_goal_group* group = nullptr;
        EXPECT_EQ(velo_goal_group_open(at(rank), id, rank, size(), reach, members_[rank].get(), &group),
                  VELO_OK);
        return group;
    }
    const std::vector<std::string>& fatal(std::uint32_t rank) const { return members_[rank]->fatal; }
    const std::vector<std::string>& logged(std::uint32_t rank) const { return members_[rank]->logged; }
    // As a process that ends.
    void close(std::uint32_t rank) {
        velo_goal_group_close(std::exchange(groups_[rank], nullptr));
        velo_performer_close(std::exchange(members_[rank]->performer, nullptr));
    }
    // Nobody can reach that one.
    void hide(std::uint32_t rank) { hidden_ = rank; }

    velo_performer_state state(std::uint32_t rank) const {
        velo_performer_state state;
        velo_performer_observe(at(rank), &state);
        return state;
    }
    int step() {
        int events = 0;
        for (std::uint32_t rank = 0; rank < size(); ++rank)
            if (at(rank) != nullptr) events += velo_goal_progress(at(rank));
        return events;
    }
    // Until nothing moves any more.
    void settle() {
        for (int idle = 0; idle < 100;) idle = step() == 0 ? idle + 1 : 0;
    }
    // False: it does not come.
    bool until(const std::function<bool()>& there) {
        for (int idle = 0; idle < 100000; ++idle) {
            if (there()) return true;
            if (step() > 0) idle = 0;
        }
        return there();
    }

 private:
    struct Member {
        PerformerParty* party;
        std::uint32_t rank;
        velo_performer* performer = nullptr;
        std::vector<std::string> fatal, logged;

        // A helper calls nothing of the program's.
        void check_thread() const {
            if (party->config_.helper > 0) {
                EXPECT_EQ(std::this_thread::get_id(), party->thread_);
            }
        }
    };

    void open(std::uint32_t rank) {
        Member& member =
            *members_.emplace_back(std::make_unique<Member>(Member{this, rank, nullptr, {}, {}}));
        velo_performer_config config = velo_default_performer_config();
        std::vector<std::uint64_t> others;
        for (std::uint32_t other = 0; other < config_.size; ++other)
            if (other != rank) others.push_back(500 + other);
        config.engine.flow_control = config_.flow_control;
        config.engine.slots_per_peer = config_.slots_per_peer;
        config.engine.preposted_buffers = 6;
        config.engine.initial_buffers = 2;
        config.engine.rnr_timer_ns = 1;
        config.engine.lazy_slots = 12;
        config.engine.lazy_peers = 2;
        config.engine.spare_peers = 0;
        config.engine.idle_sleep = 0;
        config.engine.max_message_bytes = 32 * 1024;
        config.engine.process_name = 500 + rank;
        config.engine.node_peers = others.data();
        config.engine.node_peer_count = static_cast<std::uint32_t>(others.size());
        config.engine.threads = config_.threads;
        config.engine.single_copy_mechanism = config_.single_copy;
        config.engine.context = &member;
        config.engine.fatal = [](void* context, velo_status, const char* text) {
            static_cast<Member*>(context)->check_thread();
            static_cast<Member*>(context)->fatal.emplace_back(text);
        };
        config.engine.stall_warning = config_.stall_warning;
        config.engine.log = [](void* context, int, const char* text) {
            static_cast<Member*>(context)->check_thread();
            static_cast<Member*>(context)->logged.emplace_back(text);
        };
        config.messages = {config_.eager_limit, config_.pool, config_.headers, config_.size, false};
        config.helper = config_.helper;
        char error[512] = "";
        EXPECT_EQ(velo_performer_open(&config, &member.performer, error, sizeof error), VELO_OK) << error;
    }

    static velo_peer* reach(void* context, std::uint32_t rank) {
        auto& self = *static_cast<Member*>(context);
        self.check_thread();
        EXPECT_NE(rank, self.rank);
        if (rank == self.party->hidden_) return nullptr;
        std::size_t bytes = 0;
        const void* address = velo_performer_address(self.party->at(rank), &bytes);
        velo_peer* peer = nullptr;
        char error[512] = "";
        EXPECT_EQ(velo_performer_connect(self.performer, address, bytes, &peer, error, sizeof error), VELO_OK)
            << error;
        return peer;
    }

    PerformerPartyConfig config_;
    const std::thread::id thread_ = std::this_thread::get_id();
    std::uint32_t hidden_ = UINT32_MAX;
    std::vector<std::unique_ptr<Member>> members_;
    std::vector<velo_goal_group*> groups_;
};

}  // namespace velo::test
