// What a unit of a messenger says to peers, noted.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "messaging/control_channel.h"

namespace velo::test {

class FakeChannel final : public messaging::ControlChannel {
 public:
    struct Said {
        engine::Peer* to;
        messaging::Kind kind;
        std::string text;

        template <typename Message>
        Message as() const {
            Message message;
            EXPECT_EQ(text.size(), sizeof message);
            std::memcpy(&message, text.data(), sizeof message);
            return message;
        }
    };

    // The oldest, which is of that kind.
    Said take(messaging::Kind kind) {
        EXPECT_FALSE(said.empty());
        if (said.empty()) return {};
        const Said first = said.front();
        said.pop_front();
        EXPECT_EQ(first.kind, kind);
        return first;
    }

    std::deque<Said> said;
    std::vector<velo_message_send*> headers;                  // that have left
    std::vector<std::pair<std::uint64_t, velo_status>> done;  // ids
    std::vector<engine::Peer*> have_failed;
    bool crowded = false;

 private:
    void say(engine::Peer& to, messaging::Header* message, std::size_t bytes) override {
        said.push_back({&to, message->kind, std::string(reinterpret_cast<const char*>(message), bytes)});
    }
    bool is_crowded() const override { return crowded; }
    void send_header(engine::Peer&, velo_message_send* send) override { headers.push_back(send); }
    void failed(engine::Peer& peer) override { have_failed.push_back(&peer); }
    void say_done(engine::Peer&, std::uint64_t id, velo_status status) override {
        done.push_back({id, status});
    }
};

}  // namespace velo::test
