// Several engines with messengers in one process, driven in turn.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/velo_messages.h"
#include "engine_party.h"

namespace velo::test {

// A send or receive of a test, with its memory.
struct Transfer {
    velo_message_send send{};
    velo_message_receive receive{};
    std::string data;
    std::string parts;  // what unpack was given
    bool done = false;
    velo_status status = VELO_OK;

    // Of a receive.
    std::string text() const { return data.substr(0, std::min(receive.bytes, receive.capacity)); }
};

class MessengerParty {
 public:
    explicit MessengerParty(const PartyConfig& config, velo_messenger_config messages = kRoomy)
        : party(config) {
        for (std::size_t rank = 0; rank < config.size; ++rank) {
            velo_messenger* messenger = nullptr;
            char error[512] = "";
            EXPECT_EQ(velo_messenger_open(party[rank].engine, &messages, &messenger, error, sizeof error),
                      VELO_OK)
                << error;
            messengers_.emplace_back(messenger, velo_messenger_close);
        }
        for (std::size_t from = 0; from < config.size; ++from) {
            for (std::size_t to = 0; to < config.size; ++to) {
                std::size_t bytes = 0;
                const void* address = velo_messenger_address(at(to), &bytes);
                if (from == to) continue;
                EXPECT_EQ(velo_messenger_connect(at(from), party[from].peers[to], address, bytes), VELO_OK);
            }
        }
    }

    // The engine stays.
    void close(std::size_t rank) { messengers_[rank].reset(); }
    velo_messenger* at(std::size_t rank) const { return messengers_[rank].get(); }

    // The transfers live until the party ends; pointers to them stay valid.
    Transfer& send(std::size_t from, std::size_t to, std::int32_t tag, std::string data,
                   velo_send_mode mode = VELO_SEND_STANDARD, std::uint32_t context = 0) {
        Transfer& transfer = *transfers_.emplace_back(std::make_unique<Transfer>());
        transfer.data = std::move(data);
        transfer.send.done = [](velo_message_send* send, velo_status status) {
            finish(reinterpret_cast<Transfer*>(send), status);
        };
        const auto source = static_cast<std::int32_t>(from);
        const char* data_at = transfer.data.data();
        const std::size_t bytes = transfer.data.size();
        // Like the glue, but each other one by the long way.
        const bool now =
            mode == VELO_SEND_STANDARD && from != to && transfers_.size() % 2 == 0 &&
            velo_message_now(at(from), party[from].peers[to], context, source, tag, data_at, bytes);
        const velo_status status = now ? VELO_OK
                                       : velo_message_start(at(from), party[from].peers[to], context, source,
                                                            tag, data_at, bytes, mode, &transfer.send);
        if (status != VELO_QUEUED) finish(&transfer, status);
        return transfer;
    }

    Transfer& prepare(std::size_t capacity, bool unpack = false) {
        Transfer& transfer = *transfers_.emplace_back(std::make_unique<Transfer>());
        transfer.data.resize(capacity);
        transfer.receive.buffer = unpack ? nullptr : transfer.data.data();
        transfer.receive.capacity = capacity;
        if (unpack) {
            transfer.receive.unpack = [](velo_message_receive* receive, const void* data, std::size_t bytes) {
                owner_of(receive)->parts.append(static_cast<const char*>(data), bytes);
            };
        }
        transfer.receive.done = [](velo_message_receive* receive, velo_status status) {
            finish(owner_of(receive), status);
        };
        return transfer;
    }

    Transfer& receive(std::size_t at_rank, std::int32_t source, std::int32_t tag,
                      std::size_t capacity = 1 << 16, bool unpack = false, std::uint32_t context = 0) {
        Transfer& transfer = prepare(capacity, unpack);
        velo_message_receive_start(at(at_rank), context, source, tag, &transfer.receive);
        return transfer;
    }

    velo_messenger_state state(std::size_t rank) const {
        velo_messenger_state state;
        velo_messenger_observe(at(rank), &state);
        return state;
    }
    void settle() { party.settle(); }
    void step() { party.step(); }

    static constexpr velo_messenger_config kRoomy{8192, 1 << 20, 1 << 20, 4, false};
    Party party;

 private:
    static Transfer* owner_of(velo_message_receive* receive) {
        return reinterpret_cast<Transfer*>(reinterpret_cast<char*>(receive) - offsetof(Transfer, receive));
    }
    static void finish(Transfer* transfer, velo_status status) {
        EXPECT_FALSE(transfer->done) << "completed twice";
        transfer->done = true;
        transfer->status = status;
    }

    std::vector<std::unique_ptr<Transfer>> transfers_;
    std::vector<std::unique_ptr<velo_messenger, decltype(&velo_messenger_close)>> messengers_;
};

}  // namespace velo::test
