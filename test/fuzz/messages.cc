// Commands: the peer stores a message of its messenger; the victim receives, probes, sends, makes progress.
#include <memory>
#include <vector>

#include "api/velo_messages.h"
#include "messaging/protocol.h"
#include "require.h"
#include "rma/message.h"
#include "victim.h"

namespace velo::fuzz {
namespace {

struct Receive {
    velo_message_receive receive{};
    std::vector<std::byte> data;
    bool done = false;
};

struct Send {
    velo_message_send send{};
    std::vector<std::byte> data;
    bool done = false;
};

template <typename Transfer, typename Member>
Transfer& owner_of(Member* member) {
    return *reinterpret_cast<Transfer*>(member);
}

class Player {
 public:
    explicit Player(Bytes bytes) : input_(bytes), victim_(input_.take<std::uint8_t>()) {
        const velo_messenger_config config{1024, 64 * 1024, 2048, 2, false};
        char error[512] = "";
        require(velo_messenger_open(victim_.engine(), &config, &messenger_, error, sizeof error) == VELO_OK,
                error);
        std::size_t address_bytes = 0;
        const void* address = velo_messenger_address(messenger_, &address_bytes);
        velo_messenger_connect(messenger_, victim_.peer(), address, address_bytes);
    }
    ~Player() { velo_messenger_close(messenger_); }
    Player(const Player&) = delete;

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
                return receive(code >> 3);
            case 2:
                return send(code >> 3);
            case 3:
                return look(code >> 3);
            case 4:
                return reply();
            default:
                return message(code >> 3);
        }
    }

    velo_key key() {
        const auto byte = input_.take<std::uint8_t>();
        return {byte & 1U, (byte >> 1 & 3) - 1, (byte >> 3) == 0 ? VELO_ANY_TAG : byte >> 3 & 3};
    }

    void prepare(Receive& receive, bool unpack) {
        receive.data.resize(input_.take<std::uint16_t>() % 8192);
        receive.receive.capacity = receive.data.size();
        receive.receive.buffer = receive.data.data();
        receive.receive.done = [](velo_message_receive* done, velo_status) {
            auto& self = owner_of<Receive>(done);
            require(!self.done, "a receive has completed twice");
            self.done = true;
        };
        if (!unpack) return;
        receive.receive.buffer = nullptr;
        receive.receive.capacity = input_.take<std::uint32_t>() % (600 * 1024);
        receive.receive.unpack = [](velo_message_receive*, const void* data, std::size_t bytes) {
            [[maybe_unused]] static volatile std::uint8_t sink;
            for (std::size_t i = 0; i < bytes; i += 64) sink = static_cast<const std::uint8_t*>(data)[i];
        };
    }

    void receive(unsigned how) {
        Receive& receive = *receives_.emplace_back(std::make_unique<Receive>());
        prepare(receive, how & 1);
        const velo_key from = key();
        velo_message_receive_start(messenger_, from.context, from.source, from.tag, &receive.receive);
        if ((how & 6) == 6) receive.done |= velo_message_cancel(messenger_, &receive.receive);
    }

    void send(unsigned how) {
        Send& send = *sends_.emplace_back(std::make_unique<Send>());
        send.data.resize(input_.take<std::uint16_t>() % 4096);
        send.send.done = [](velo_message_send* done, velo_status) {
            auto& self = owner_of<Send>(done);
            require(!self.done, "a send has completed twice");
            self.done = true;
        };
        velo_key to = key();
        if (to.tag < 0) to.tag = 0;
        const bool now = (how & 7) == 4 && velo_message_now(messenger_, victim_.peer(), to.context, to.source,
                                                            to.tag, send.data.data(), send.data.size());
        if (now) {
            send.done = true;
            return;
        }
        velo_message_start(messenger_, how & 2 ? nullptr : victim_.peer(), to.context, to.source, to.tag,
                           send.data.data(), send.data.size(),
                           how & 1 ? VELO_SEND_SYNCHRONOUS : VELO_SEND_STANDARD, &send.send);
    }

    void look(unsigned how) {
        velo_key found{};
        std::size_t bytes = 0;
        if (how % 4 == 0) return velo_message_forget(messenger_, how >> 2 & 1);
        if (how % 4 == 1) {
            velo_message_probe(messenger_, key(), &found, &bytes);
            return;
        }
        velo_message* taken = velo_message_take(messenger_, key(), &found, &bytes);
        if (taken == nullptr) return;
        Receive& receive = *receives_.emplace_back(std::make_unique<Receive>());
        prepare(receive, how & 4);
        velo_message_receive_taken(messenger_, taken, &receive.receive);
    }

    // The part of a transfer that the victim may have asked for, in one run.
    void reply() {
        rma::MessageHeader header{};
        header.operation = rma::Operation::kGetReply;
        header.id = input_.take<std::uint8_t>() % 8;
        header.bytes = input_.take<std::uint16_t>() % 200;
        header.position = input_.take<std::uint8_t>() % 2 * std::uint64_t{128} * 1024;
        std::uint8_t payload[sizeof header];
        std::memcpy(payload, &header, sizeof header);
        const auto length = static_cast<std::uint16_t>(sizeof header + header.bytes);
        victim_.store(wire::Header{wire::PacketKind::kData, wire::kInternal | wire::kFirst | wire::kLast, 0,
                                   length, 0, 0},
                      payload);
    }

    void message(unsigned how) {
        messaging::RendezvousHeader header{};
        const velo_key key = this->key();
        header.header.key = {key.context, key.source, key.tag};
        header.header.kind =
            static_cast<messaging::Kind>(how & 1 ? input_.take<std::uint8_t>() : 1 + how % 5);
        header.header.returned = input_.take<std::uint8_t>();
        // The ids that the victim gives are small numbers at first.
        header.id = how & 2 ? input_.take<std::uint64_t>() : input_.take<std::uint8_t>() % 4;
        header.bytes = how & 4 ? input_.take<std::uint64_t>() : input_.take<std::uint16_t>();
        header.address = 4096;
        std::uint8_t payload[sizeof header];
        std::memcpy(payload, &header, sizeof header);
        const auto length = static_cast<std::uint16_t>(input_.take<std::uint8_t>() % 64 + (how & 8 ? 32 : 0) +
                                                       (how & 16 ? 512 : 0));
        victim_.store(
            wire::Header{wire::PacketKind::kData, wire::kFirst | wire::kLast, engine::kSinkTag, length, 0, 0},
            payload);
    }

    Input input_;
    std::vector<std::unique_ptr<Receive>> receives_;
    std::vector<std::unique_ptr<Send>> sends_;
    Victim victim_;
    velo_messenger* messenger_ = nullptr;
};

}  // namespace

void messages(Bytes bytes) {
    Player(bytes).play();
}

}  // namespace velo::fuzz
