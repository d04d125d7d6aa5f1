// Commands: the peer stores a run; the victim makes progress, starts a transfer or sends a message.
#include <algorithm>
#include <memory>
#include <vector>

#include "require.h"
#include "rma/message.h"
#include "victim.h"
#include "wire/batch.h"

namespace velo::fuzz {
namespace {

constexpr std::size_t kLongestTransfer = 300 * 1024;

void count(void* argument, velo_status, std::uint64_t) {
    require(++*static_cast<int*>(argument) == 1, "a transfer has completed twice");
}

struct Message {
    velo_send send{};
    std::vector<char> data;
};

class PacketPlayer {
 public:
    explicit PacketPlayer(Bytes bytes) : input_(bytes), victim_(input_.take<std::uint8_t>()) {}

    void play() {
        while (!input_.empty() && !victim_.failed()) command(input_.take<std::uint8_t>());
        victim_.progress();
    }

 private:
    void command(std::uint8_t code) {
        switch (code % 8) {
            case 0:
                return victim_.progress();
            case 1:
                return transfer(code >> 3);
            case 2:
                return send();
            case 3:
                return control();
            case 4:
                return rma();
            case 6:
                return batch(code >> 3);
            case 7:
                return reference(code >> 3);
            default:
                return run(code);
        }
    }

    void transfer(unsigned kind) {
        done_.push_back(std::make_unique<int>(0));
        const std::size_t bytes = input_.take<std::uint16_t>() * std::size_t{8} % kLongestTransfer;
        std::byte* memory = memory_.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
        if (kind >= 24) return deposited(memory, bytes);
        if (kind % 3 == 0)
            velo_get(victim_.engine(), victim_.peer(), memory, 4096, bytes, count, done_.back().get());
        if (kind % 3 == 1)
            velo_put(victim_.engine(), victim_.peer(), memory, 4096, bytes, count, done_.back().get());
        if (kind % 3 == 2)
            velo_atomic_start(victim_.engine(), victim_.peer(), VELO_ATOMIC_ADD, 8, 4096, 1, 0, count,
                              done_.back().get());
    }

    // From a ring in which as much is there as the input says, at such a place, or from what it takes for
    // one.
    void deposited(std::byte* memory, std::size_t bytes) {
        constexpr std::uint64_t kRemote = 4096;
        const auto ring = input_.take<std::uint8_t>();
        const auto there = input_.take<std::uint32_t>();
        const std::uint32_t place = input_.take<std::uint8_t>() * flow::DepositPlan::kGrain;
        const auto length = input_.take<std::uint32_t>();
        const std::uint32_t told = victim_.deposit(ring, there, kRemote, place, length);
        const std::uint32_t number = ring & 128 ? input_.take<std::uint32_t>() : told;
        velo_get_deposited(victim_.engine(), victim_.peer(), number, memory, kRemote, bytes, count,
                           done_.back().get());
    }

    void send() {
        Message& message = *messages_.emplace_back(std::make_unique<Message>());
        message.data.resize(input_.take<std::uint16_t>() % kMaxMessageBytes);
        message.send.part[0] = message.data.data();
        message.send.bytes[0] = message.data.size();
        message.send.tag = 33;
        message.send.done = [](velo_send*, velo_status) {};
        velo_send_start(victim_.engine(), victim_.peer(), &message.send);
    }

    void control() {
        wire::Header header{};
        header.kind = static_cast<wire::PacketKind>(input_.take<std::uint8_t>() % 16);
        header.flags = wire::kFirst | wire::kLast;
        header.length = sizeof(std::uint32_t);
        std::uint32_t value = input_.take<std::uint8_t>();
        if (value & 0x80) value = input_.take<std::uint32_t>();
        std::uint8_t payload[sizeof value];
        std::memcpy(payload, &value, sizeof value);
        victim_.store(header, payload);
    }

    void rma() {
        rma::MessageHeader message = input_.take<rma::MessageHeader>();
        wire::Header header{};
        header.kind = wire::PacketKind::kData;
        header.flags = wire::kInternal | wire::kFirst | (input_.take<std::uint8_t>() & 7);
        header.length = sizeof message;
        if (header.flags & wire::kPiggyback) header.length += input_.take<std::uint16_t>() % 4096;
        std::uint8_t payload[sizeof message];
        std::memcpy(payload, &message, sizeof message);
        victim_.store(header, payload);
    }

    // A REF to a chunk, or to any place that the input names.
    void reference(unsigned how) {
        wire::Reference to{};
        const std::uint32_t bytes = input_.take<std::uint16_t>() % (how & 1 ? 64 : 40'000);
        if (how & 16) {
            to = input_.take<wire::Reference>();
        } else {
            const auto chunk = input_.take<std::uint8_t>();
            to = victim_.allocate(chunk, bytes, input_.take_bytes(sizeof(rma::MessageHeader)));
        }
        refer(how, to, how & 4 ? wire::kInternal : 0);
    }

    // A batch, or more of the last one: messages, whose lengths and kinds are right or what the input says,
    // and perhaps an end, behind which there may be more.
    void batch(unsigned how) {
        std::vector<std::uint8_t> data;
        const auto append = [&data](wire::Enclosed header, Bytes bytes, std::size_t length) {
            const std::size_t end = data.size() + length;
            const auto* const begin = reinterpret_cast<const std::uint8_t*>(&header);
            data.insert(data.end(), begin, begin + sizeof header);
            data.insert(data.end(), bytes.begin(), bytes.end());
            data.resize(std::max(end, data.size()));
        };
        for (unsigned messages = input_.take<std::uint8_t>() % 16; messages > 0; --messages) {
            const auto length = input_.take<std::uint8_t>();
            auto header = input_.take<wire::Enclosed>();
            if (length < 0xf0) header.bytes = length;
            if (length % 16 != 0) header.kind = wire::Enclosed::kMessage;
            append(header, input_.take_bytes(std::min<std::size_t>(length, sizeof(rma::MessageHeader))),
                   wire::enclosed_bytes(length));
        }
        if (how & 16) append({0, 0, 0, wire::Enclosed::kEnd}, {}, sizeof(wire::Enclosed));
        const auto chunk = input_.take<std::uint8_t>();
        if (how & 8) return victim_.append(chunk, data);
        const std::uint32_t bytes = how & 1 ? input_.take<std::uint16_t>() : Victim::kWhole;
        refer(how & ~8U, victim_.allocate_batch(chunk, bytes, data),
              wire::kBatch | (how & 4 ? wire::kInternal : 0));
    }

    void refer(unsigned how, const wire::Reference& to, unsigned flags) {
        wire::Header header{};
        header.kind = how & 2 ? wire::PacketKind::kBackloggedData : wire::PacketKind::kData;
        flags |= wire::kReference | (how & 8 ? input_.take<std::uint8_t>() & 7 : wire::kFirst | wire::kLast);
        header.flags = static_cast<std::uint8_t>(flags);
        header.length = sizeof to;
        std::uint8_t payload[sizeof to];
        std::memcpy(payload, &to, sizeof to);
        victim_.store(header, payload);
    }

    void run(std::uint8_t code) {
        wire::Header header = wire::Header::unpack(input_.take<std::uint64_t>());
        if (code & 8) header.source = 0;
        if (code & 16) header.kind = wire::PacketKind::kData;
        if (code & 32) header.length %= 256;
        victim_.store(header, input_.take_bytes(code >> 6 ? 8 : 56));
    }

    Input input_;
    std::vector<std::unique_ptr<int>> done_;
    std::vector<std::unique_ptr<std::byte[]>> memory_;  // of transfers: each is exactly so long
    std::vector<std::unique_ptr<Message>> messages_;
    Victim victim_;
};

}  // namespace

void packets(Bytes bytes) {
    PacketPlayer(bytes).play();
}

}  // namespace velo::fuzz
