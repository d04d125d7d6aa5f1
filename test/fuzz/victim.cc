#include "victim.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "require.h"
#include "rma/message.h"
#include "wire/batch.h"

namespace velo::fuzz {
namespace {

constexpr std::uint64_t kVictim = 1, kPeer = 2, kSilentPeer = 3;
// A part of a transfer.
constexpr std::size_t kMemoryBytes = 128 * 1024;

// What peers read and write ends where this memory does: AddressSanitizer sees a byte more.
std::uint64_t end_of_memory() {
    static const auto memory = std::make_unique<std::byte[]>(kMemoryBytes);
    return reinterpret_cast<std::uint64_t>(memory.get()) + kMemoryBytes;
}

velo_config config_for(const char* policy, std::uint64_t name, const std::uint64_t* peers) {
    velo_config config = velo_default_config();
    config.flow_control = policy;
    config.slots_per_peer = 8;
    config.credit_slots = 2;
    config.piggyback = true;
    config.preposted_buffers = 6;
    config.initial_buffers = 2;
    config.growth_buffers = 1;
    config.credit_message_threshold = 2;
    config.rnr_timer_ns = 1;
    config.lazy_slots = 12;
    config.lazy_peers = 2;
    config.lazy_stealing = true;
    config.packet_trains = true;
    config.single_copy_mechanism = "copy";
    config.backing_directory = "/dev/shm";
    config.max_message_bytes = kMaxMessageBytes;
    config.process_name = name;
    config.node_peers = peers;
    config.node_peer_count = 2;
    config.message = [](void*, std::uint8_t, void* data, std::size_t bytes) {
        [[maybe_unused]] static volatile std::uint8_t sink;
        require(bytes <= kMaxMessageBytes, "a message is longer than any may be");
        for (std::size_t i = 0; i < bytes; ++i) sink = static_cast<const std::uint8_t*>(data)[i];
    };
    config.fatal = [](void* context, velo_status, const char*) {
        if (context != nullptr) *static_cast<bool*>(context) = true;
    };
    config.log = [](void*, int, const char*) {};
    return config;
}

velo_engine* open(const velo_config& config) {
    velo_engine* engine = nullptr;
    char error[512] = "";
    require(velo_engine_open(&config, &engine, error, sizeof error) == VELO_OK, error);
    return engine;
}

fabric::shm::Segment attach(velo_engine* engine) {
    fabric::shm::Address address;
    std::size_t bytes = 0;
    std::memcpy(&address, velo_engine_address(engine, &bytes), sizeof address);
    return fabric::shm::Segment::attach(address);
}

// The peers, one for each policy; opened once.
struct Partner {
    explicit Partner(const char* name) : policy(name) {
        static constexpr std::uint64_t kPeers[] = {kVictim, kSilentPeer};
        engine = open(config_for(policy, kPeer, kPeers));
        mailbox = attach(engine);
    }
    const char* policy;
    velo_engine* engine;
    fabric::shm::Segment mailbox;
};

Partner& partner(unsigned index) {
    static const auto& all = *new auto([] {
        std::vector<std::unique_ptr<Partner>> made;
        for (unsigned i = 0; velo_policy_name(i) != nullptr; ++i)
            made.push_back(std::make_unique<Partner>(velo_policy_name(i)));
        return made;
    }());
    return *all[index % all.size()];
}

// The chunks of an outbox, by number.
flow::Outbox::Chunk chunk_of(const flow::OutboxPlan& plan, std::uint32_t chunk) {
    chunk %= plan.chunks();
    std::size_t size = 0;
    for (; chunk >= plan.size(size).count; ++size) chunk -= plan.size(size).count;
    return {plan.size(size).begin + chunk * plan.size(size).room, plan.size(size).room};
}

}  // namespace

Victim::Victim(unsigned policy) : peers_(partner(policy).mailbox) {
#ifdef VELO_CHECKED
    // The counts of a peer that lies do not add up.
    engine::Engine::violations_abort = false;
#endif
    static constexpr std::uint64_t kPeers[] = {kPeer, kSilentPeer};
    Partner& from = partner(policy);
    mailbox::Pointers<>& pointers = from.mailbox.header().pointers;
    pointers.read = pointers.write = 0;  // nobody empties it
    velo_config config = config_for(from.policy, kVictim, kPeers);
    config.context = &failed_;
    engine_ = open(config);
    std::size_t bytes = 0;
    const void* address = velo_engine_address(from.engine, &bytes);
    char error[512] = "";
    require(velo_peer_connect(engine_, address, bytes, &peer_, error, sizeof error) == VELO_OK, error);
    mailbox_ = attach(engine_);
}

Victim::~Victim() {
    velo_engine_close(engine_);
}

void Victim::confine(std::byte* message, std::size_t bytes) {
    rma::MessageHeader header;
    if (bytes < sizeof header) return;
    std::memcpy(&header, message, sizeof header);
    if (header.operation == rma::Operation::kGet || header.operation == rma::Operation::kPut)
        header.address = end_of_memory() - std::min<std::uint64_t>(header.bytes, kMemoryBytes);
    if (header.operation == rma::Operation::kAtomic)
        header.address = end_of_memory() - header.width - header.address % 16;
    header.id %= 16;
    std::memcpy(message, &header, sizeof header);
}

wire::Reference Victim::allocate(std::uint32_t chunk, std::uint32_t bytes, Bytes data) {
    const auto [to, there] = fill(chunk, bytes, data);
    confine(there.data(), there.size());  // whatever the REF says that it is
    return to;
}

void Victim::confine_each(std::span<std::byte> rest) {
    while (rest.size() > sizeof(wire::Enclosed)) {
        wire::Enclosed header;
        std::memcpy(&header, rest.data(), sizeof header);
        confine(rest.data() + sizeof header, rest.size() - sizeof header);
        rest = rest.subspan(std::min(rest.size(), wire::enclosed_bytes(header.bytes)));
    }
}

wire::Reference Victim::allocate_batch(std::uint32_t chunk, std::uint32_t bytes, Bytes data) {
    const flow::Outbox::Chunk at = chunk_of(peers_.outbox_plan(), chunk);
    const wire::Reference to = fill(chunk, bytes == kWhole ? at.room : bytes, {}).first;
    batched_[at.place] = 0;
    append(chunk, data);
    return to;
}

// All of it is looked at again: where the victim looks next follows from the headers before.
void Victim::append(std::uint32_t chunk, Bytes data) {
    const flow::Outbox::Chunk at = chunk_of(peers_.outbox_plan(), chunk);
    const std::span<std::byte> batch{peers_.chunk(at.place), at.room};
    std::size_t& stored = batched_[at.place];
    const std::size_t bytes = std::min(data.size(), batch.size() - stored);
    for (std::size_t i = 0; i < bytes; ++i) batch[stored + i] = std::byte{data[i]};
    confine_each(batch);
    stored += bytes;
}

// The data, then zeros. Returns what is in the chunk of what the REF stands for.
std::pair<wire::Reference, std::span<std::byte>> Victim::fill(std::uint32_t chunk, std::uint32_t bytes,
                                                              Bytes data) {
    const flow::Outbox::Chunk at = chunk_of(peers_.outbox_plan(), chunk);
    std::byte* const there = peers_.chunk(at.place);
    std::fill_n(there, at.room, std::byte{0});
    std::transform(data.begin(), data.begin() + std::min<std::ptrdiff_t>(std::ssize(data), at.room), there,
                   [](std::uint8_t byte) { return std::byte{byte}; });
    return {{at.place, bytes}, {there, std::min(bytes, at.room)}};
}

std::uint32_t Victim::deposit(std::uint32_t ring, std::uint32_t there, std::uint64_t address,
                              std::uint32_t place, std::uint32_t bytes) {
    ring %= flow::DepositPlan::kRings;
    fabric::shm::DepositHeader& header = peers_.deposit_header(ring);
    header.number = flow::DepositPlan::number_of(ring);
    header.stored = there;
    header.taken = 0;
    header.address = address;
    header.place = place;
    header.ring = bytes;
    return header.number;
}

void Victim::store(wire::Header header, Bytes given) {
    const std::uint32_t packets = header.packets();
    auto writer = mailbox_.writer();
    const mailbox::Pointers<>& pointers = mailbox_.header().pointers;
    const std::uint32_t stored = std::min(packets, writer.capacity());
    if (pointers.write - pointers.read + stored > writer.capacity()) progress();
    if (failed_ || pointers.write - pointers.read + stored > writer.capacity()) return;

    std::vector<std::byte> payload(std::min<std::size_t>(header.length, wire::run_capacity(stored)));
    for (std::size_t i = 0; i < std::min(given.size(), payload.size()); ++i) payload[i] = std::byte{given[i]};
    if ((header.flags & wire::kInternal) != 0) confine(payload.data(), payload.size());
    const mailbox::Cursor at = writer.reserve(stored);
    const std::size_t head = std::min(payload.size(), writer.contiguous(at));
    if (head > 0) std::memcpy(writer.payload(at), payload.data(), head);
    if (payload.size() > head) std::memcpy(writer.start(), payload.data() + head, payload.size() - head);
    writer.publish(at, header);
}

}  // namespace velo::fuzz
