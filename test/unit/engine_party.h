// Several engines in one process, driven in turn: what a job of N processes does, but deterministic.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/handle.h"
#include "api/velo.h"
#include "fabric/shm/segment.h"

namespace velo::test {

struct Received {
    std::uint8_t tag;
    std::string data;
    const void* place = nullptr;  // where it lay then
};

// One process of the party.
struct Member {
    velo_engine* engine = nullptr;
    std::vector<velo_peer*> peers;  // by rank; null for itself
    std::deque<Received> received;
    std::vector<std::string> fatal;
    std::vector<std::string> log;
    std::vector<std::uint64_t> gone;  // names of processes of other jobs
    // Called for each message, before it is stored; may send.
    std::function<void(const Received&)> on_message;
    // Called for each failure and for each line of the log, before it is stored.
    std::function<void()> on_fatal, on_log;

    ~Member() { velo_engine_close(engine); }
};

// Of the counters that can be watched from outside.
inline unsigned counter_index(const std::string& name) {
    for (unsigned index = 0; velo_counter_at(index) != nullptr; ++index) {
        if (velo_counter_at(index)->name == name) return index;
    }
    ADD_FAILURE() << "no counter " << name;
    return UINT_MAX;
}
inline std::uint64_t counter(Member& member, const std::string& name) {
    return velo_counter_value(member.engine, counter_index(name));
}

struct PartyConfig {
    std::size_t size = 2;
    std::size_t absent = 0;  // more peers, which are expected and never come
    const char* flow_control = "dynamic";
    std::uint32_t slots_per_peer = 8;
    std::uint32_t credit_slots = 2;
    bool piggyback = true;
    // Tiny, so that every limit is met.
    std::uint32_t preposted_buffers = 6;
    std::uint32_t initial_buffers = 2;
    std::uint32_t growth_buffers = 1;
    std::uint32_t credit_message_threshold = 5;
    std::uint64_t rnr_timer_ns = 1;
    std::uint32_t lazy_slots = 12;
    std::uint32_t lazy_peers = 2;
    bool lazy_stealing = true;
    std::uint32_t lazy_ahead = 4;
    bool delay_credits = true;
    bool packet_trains = true;
    const char* by_reference = "auto";
    const char* routes = "reference 512 staged 67108864";  // whatever the processor
    std::size_t outbox = std::size_t{1} << 18;
    bool describe_locality = false;
    std::size_t ranks_per_node = 0;  // size of a virtual node; 0: no LiMIC-like path
    const char* single_copy = "auto";
    std::uint32_t spare_peers = 0;
    std::uint64_t first_name = 100;  // of its processes; those of different parties are of different jobs
    std::size_t max_message_bytes = 32 * 1024;
    std::uint32_t idle_sleep_us = 0;
    const char* report = "none";
    std::uint32_t stall_warning_seconds = 0;
    std::string trace = "";
    std::uint64_t trace_limit_bytes = 0;
    bool threads = false;  // several threads call each engine
};

class Party {
 public:
    explicit Party(const PartyConfig& config, bool connected = true) : config_(config) {
        for (std::size_t rank = 0; rank < config.size; ++rank) members_.push_back(open(rank));
        if (connected) connect_all();
    }

    // What a lost credit holds up never leaves.
    ~Party() {
        members_.clear();
        for (Message* message : waiting_) delete message;
    }
    Party(const Party&) = delete;

    Member& operator[](std::size_t rank) { return *members_[rank]; }
    std::size_t size() const { return members_.size(); }

    void connect(std::size_t from, std::size_t to) {
        std::size_t bytes = 0;
        const void* address = velo_engine_address(members_[to]->engine, &bytes);
        char error[512] = "";
        ASSERT_EQ(velo_peer_connect(members_[from]->engine, address, bytes, &members_[from]->peers[to], error,
                                    sizeof error),
                  VELO_OK)
            << error;
    }

    // A message of the given contents from one member to another, queued if necessary; copies the contents.
    velo_status send(std::size_t from, std::size_t to, std::uint8_t tag, std::string contents) {
        auto* message = new Message{{}, std::move(contents), this};
        message->send.part[0] = message->contents.data();
        message->send.bytes[0] = std::min<std::size_t>(message->contents.size(), 14);
        message->send.part[1] = message->contents.data() + message->send.bytes[0];
        message->send.bytes[1] = message->contents.size() - message->send.bytes[0];
        message->send.tag = tag;
        message->send.collectable = true;
        message->send.done = [](velo_send* send, velo_status status) {
            auto* done = reinterpret_cast<Message*>(send);
            EXPECT_EQ(status, VELO_OK);
            ++done->party->completed_;
            done->party->waiting_.erase(done);
            delete done;
        };
        velo_status status =
            velo_send_start(members_[from]->engine, members_[from]->peers[to], &message->send);
        if (status != VELO_QUEUED) delete message;
        if (status == VELO_QUEUED) ++queued_;
        if (status == VELO_QUEUED) waiting_.insert(message);
        return status;
    }

    // Lets every member make progress until nothing moves any more.
    void settle() {
        for (int idle = 0; idle < 3;) idle = step() == 0 ? idle + 1 : 0;
    }
    int step() {
        int events = 0;
        for (auto& member : members_) events += velo_progress(member->engine);
        return events;
    }

    std::size_t queued() const { return queued_; }
    std::size_t completed() const { return completed_; }

 private:
    struct Message {
        velo_send send;
        std::string contents;
        Party* party;
    };

    std::unique_ptr<Member> open(std::size_t rank) {
        auto member = std::make_unique<Member>();
        member->peers.resize(config_.size);
        std::vector<std::uint64_t> names;
        std::vector<std::uint64_t> local;
        for (std::size_t peer = 0; peer < config_.size; ++peer) {
            if (peer == rank) continue;
            bool here =
                config_.ranks_per_node != 0 && peer / config_.ranks_per_node == rank / config_.ranks_per_node;
            (here ? local : names).push_back(config_.first_name + peer);
        }
        for (std::size_t peer = 0; peer < config_.absent; ++peer) names.push_back(100 + config_.size + peer);
        velo_config config = velo_default_config();
        config.flow_control = config_.flow_control;
        config.slots_per_peer = config_.slots_per_peer;
        config.credit_slots = config_.credit_slots;
        config.piggyback = config_.piggyback;
        config.preposted_buffers = config_.preposted_buffers;
        config.initial_buffers = config_.initial_buffers;
        config.growth_buffers = config_.growth_buffers;
        config.credit_message_threshold = config_.credit_message_threshold;
        config.rnr_timer_ns = config_.rnr_timer_ns;
        config.lazy_slots = config_.lazy_slots;
        config.lazy_peers = config_.lazy_peers;
        config.lazy_stealing = config_.lazy_stealing;
        config.lazy_ahead = config_.lazy_ahead;
        config.delay_credits = config_.delay_credits;
        config.packet_trains = config_.packet_trains;
        config.by_reference = config_.by_reference;
        config.routes = config_.routes;
        config.outbox = config_.outbox;
        config.describe_locality = config_.describe_locality;
        config.single_copy_mechanism = config_.single_copy;
        config.backing_directory = "/dev/shm";
        config.spare_peers = config_.spare_peers;
        config.max_message_bytes = config_.max_message_bytes;
        config.idle_sleep = static_cast<int>(config_.idle_sleep_us);
        config.report = config_.report;
        config.stall_warning = config_.stall_warning_seconds;
        config.trace = config_.trace.c_str();
        config.trace_limit_bytes = config_.trace_limit_bytes;
        config.process_name = config_.first_name + rank;
        config.node_peers = names.data();
        config.node_peer_count = static_cast<std::uint32_t>(names.size());
        config.limic_peers = local.data();
        config.limic_peer_count = static_cast<std::uint32_t>(local.size());
        config.limic = config_.ranks_per_node != 0;
        config.ranks_per_node = static_cast<std::uint32_t>(config_.ranks_per_node);
        config.threads = config_.threads;
        config.context = member.get();
        config.message = [](void* context, std::uint8_t tag, void* data, std::size_t bytes) {
            auto* self = static_cast<Member*>(context);
            Received message{tag, std::string(static_cast<char*>(data), bytes), data};
            if (self->on_message) self->on_message(message);
            self->received.push_back(std::move(message));
        };
        config.fatal = [](void* context, velo_status, const char* text) {
            auto* self = static_cast<Member*>(context);
            if (self->on_fatal) self->on_fatal();
            self->fatal.emplace_back(text);
        };
        config.gone = [](void* context, std::uint32_t, std::uint64_t name) {
            static_cast<Member*>(context)->gone.push_back(name);
        };
        config.log = [](void* context, int, const char* text) {
            auto* self = static_cast<Member*>(context);
            if (self->on_log) self->on_log();
            self->log.emplace_back(text);
        };
        char error[512] = "";
        EXPECT_EQ(velo_engine_open(&config, &member->engine, error, sizeof error), VELO_OK) << error;
        return member;
    }

    void connect_all() {
        for (std::size_t from = 0; from < size(); ++from) {
            for (std::size_t to = 0; to < size(); ++to) {
                if (from != to) connect(from, to);
            }
        }
    }

    PartyConfig config_;
    std::set<Message*> waiting_;
    std::vector<std::unique_ptr<Member>> members_;
    std::size_t queued_ = 0;
    std::size_t completed_ = 0;
};

// The peer that `member` of one party sees in `other`, of another one.
inline velo_peer* meet(Member& member, Member& other) {
    std::size_t bytes = 0;
    const void* address = velo_engine_address(other.engine, &bytes);
    velo_peer* peer = nullptr;
    char error[512] = "";
    EXPECT_EQ(velo_peer_connect(member.engine, address, bytes, &peer, error, sizeof error), VELO_OK) << error;
    return peer;
}

// As looks at a peer show that is far, and as the engine does then; 1000 messages later looks of its own may
// show that it is near.
inline void move_far(Member& member, std::size_t peer) {
    velo_peer& there = *member.peers[peer];
    for (std::uint32_t look = 1; look <= engine::CacheProximity::kLooks; ++look)
        there.proximity.record(look, 500);
    ASSERT_TRUE(there.proximity.far());
    there.reference_from = static_cast<std::uint32_t>(
        std::min<std::size_t>(member.engine->engine.routes().row(true).reference_from, ~0U));
}

// The segment of an engine, as its peers see it.
inline fabric::shm::Segment segment_of(velo_engine* engine) {
    fabric::shm::Address address;
    std::size_t bytes = 0;
    std::memcpy(&address, velo_engine_address(engine, &bytes), sizeof address);
    return fabric::shm::Segment::attach(address);
}

// Every policy that the engine offers.
inline std::vector<std::string> policies() {
    std::vector<std::string> names;
    for (unsigned i = 0; velo_policy_name(i) != nullptr; ++i) names.emplace_back(velo_policy_name(i));
    return names;
}

// Contents that tell position and message apart, from bytes that are made once.
inline std::string pattern(std::size_t bytes, unsigned seed) {
    static const std::string all = [] {
        std::string text;
        for (unsigned i = 0; i < 65'536; ++i) text.push_back(static_cast<char>((i * 131 + (i >> 8)) & 0xff));
        return text;
    }();
    std::string text;
    text.reserve(bytes);
    for (std::size_t at = std::size_t{seed} * 17 * 256 % all.size(); text.size() < bytes; at = 0)
        text.append(all, at, bytes - text.size());
    return text;
}

// What became of a transfer or an atomic; `done` is the callback, with an Outcome as its argument.
struct Outcome {
    int calls = 0;
    velo_status status = VELO_ERR_PROTOCOL;
    std::uint64_t result = 0;

    static void done(void* argument, velo_status status, std::uint64_t result) {
        auto* self = static_cast<Outcome*>(argument);
        ++self->calls;
        self->status = status;
        self->result = result;
    }
};

inline std::uint64_t address_of(const void* memory) {
    return reinterpret_cast<std::uint64_t>(memory);
}

// Mappings of files without a name: segments.
inline std::size_t mapped_segments() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.find("/dev/shm/#") != std::string::npos ? 1 : 0;
    return count;
}

}  // namespace velo::test
