// RMA with peers that lie: about lengths and places, about whose transfer it is, and by saying things twice.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "engine_party.h"
#include "exact_memory.h"
#include "lying_peer.h"
#include "rma/rma.h"

namespace velo::test {
namespace {

using rma::Completion;
using rma::Direction;
using rma::MessageHeader;
using rma::Operation;
using rma::Placement;
using rma::Rma;

constexpr std::uint64_t kPart = 128UL * 1024;

// What Rma sends is sent at once.
struct FakePoster final : rma::Poster {
    struct Request {
        flow::PeerIndex to;
        MessageHeader header;
    };
    std::deque<Request> posted;

    void post(flow::PeerIndex to, velo_send* message) override {
        Request& request = posted.emplace_back();
        request.to = to;
        std::memcpy(&request.header, message->part[0], sizeof request.header);
        message->done(message, VELO_OK);
    }
    Request take() {
        Request first = posted.front();
        posted.pop_front();
        return first;
    }
};

class RmaLies : public ::testing::Test {
 protected:
    std::byte* start(Direction direction, flow::PeerIndex peer, std::uint64_t bytes, int* completed) {
        std::byte* memory = memory_.emplace_back(std::make_unique<ExactMemory>(bytes))->data();
        const auto done = [](void* argument, velo_status, std::uint64_t) { ++*static_cast<int*>(argument); };
        rma_.start(direction, peer, memory, 4096, bytes, {done, completed});
        return memory;
    }
    static MessageHeader answer(const MessageHeader& request) {
        MessageHeader reply = request;
        reply.operation = request.operation == Operation::kGet   ? Operation::kGetReply
                          : request.operation == Operation::kPut ? Operation::kPutReply
                                                                 : Operation::kAtomicReply;
        return reply;
    }
    bool begins(flow::PeerIndex from, const MessageHeader& header) {
        return rma_.begin(from, header, &placement_);
    }
    void finish(flow::PeerIndex from, const MessageHeader& header) {
        const Completion completion = rma_.finish(from, header);
        if (completion.done != nullptr) completion.done(completion.argument, VELO_OK, completion.result);
    }

    singlecopy::Mechanisms mechanisms_{"copy"};
    FakePoster poster_;
    Rma rma_{mechanisms_, 3, poster_};
    Placement placement_;
    std::vector<std::unique_ptr<ExactMemory>> memory_;
};

TEST_F(RmaLies, a_reply_of_another_length_than_was_asked_for_is_refused) {
    for (std::uint64_t bytes : {1UL, 200UL, kPart, kPart + 1, 3 * kPart}) {
        int completed = 0;
        std::byte* memory = start(Direction::kGet, 1, bytes, &completed);
        while (completed == 0) {
            const MessageHeader right = answer(poster_.take().header);
            for (std::uint64_t length :
                 {right.bytes + 1, right.bytes - 1, std::uint64_t{0}, ~std::uint64_t{0}}) {
                MessageHeader wrong = right;
                wrong.bytes = length;
                EXPECT_FALSE(begins(1, wrong)) << length << " of " << bytes;
            }
            ASSERT_TRUE(begins(1, right));
            EXPECT_EQ(placement_.data, memory + right.position);
            EXPECT_EQ(placement_.bytes, right.bytes);
            EXPECT_LE(right.position + right.bytes, bytes);
            finish(1, right);
        }
    }
}

TEST_F(RmaLies, a_reply_at_another_place_than_was_asked_for_is_refused) {
    int completed = 0;
    start(Direction::kGet, 1, 4 * kPart, &completed);
    MessageHeader reply = answer(poster_.take().header);
    for (std::uint64_t position : {std::uint64_t{1}, kPart - 1, 2 * kPart, 4 * kPart, ~std::uint64_t{0}}) {
        reply.position = position;
        EXPECT_FALSE(begins(1, reply)) << position;
    }
}

// Otherwise repeated parts would make up for missing ones, and the memory would go back to its owner while
// some of it is still waited for.
TEST_F(RmaLies, a_reply_that_comes_twice_is_refused_while_the_first_arrives_and_afterwards) {
    for (Direction direction : {Direction::kGet, Direction::kPut}) {
        int completed = 0;
        start(direction, 1, 3 * kPart, &completed);
        const MessageHeader first = answer(poster_.take().header), second = answer(poster_.take().header);
        ASSERT_TRUE(begins(1, first));
        EXPECT_FALSE(begins(1, first)) << "while it arrives";
        finish(1, first);
        EXPECT_FALSE(begins(1, first)) << "afterwards";
        ASSERT_TRUE(begins(1, second));
        finish(1, second);
        EXPECT_EQ(completed, 0);
        const MessageHeader third = answer(poster_.take().header);
        ASSERT_TRUE(begins(1, third));
        finish(1, third);
        EXPECT_EQ(completed, 1);
        for (const MessageHeader& reply : {first, second, third})
            EXPECT_FALSE(begins(1, reply)) << "at the end";
        EXPECT_TRUE(poster_.posted.empty());
    }
}

TEST_F(RmaLies, a_put_is_not_complete_before_each_of_its_parts_is_acknowledged) {
    int completed = 0;
    start(Direction::kPut, 1, 2 * kPart, &completed);
    MessageHeader reply = answer(poster_.take().header);
    reply.bytes = 2 * kPart;
    EXPECT_FALSE(begins(1, reply));
    reply.bytes = kPart;
    ASSERT_TRUE(begins(1, reply));
    finish(1, reply);
    EXPECT_EQ(completed, 0);
}

TEST_F(RmaLies, a_peer_cannot_answer_for_another_one_nor_with_another_operation) {
    int completed = 0;
    start(Direction::kGet, 0, 100, &completed);
    start(Direction::kPut, 1, 100, &completed);
    rma_.start_atomic(
        2, VELO_ATOMIC_ADD, 8, 4096, 1, 0,
        {[](void* argument, velo_status, std::uint64_t) { ++*static_cast<int*>(argument); }, &completed});
    const std::deque<FakePoster::Request> requests = poster_.posted;
    ASSERT_EQ(requests.size(), 3U);
    for (const FakePoster::Request& request : requests) {
        const MessageHeader right = answer(request.header);
        for (flow::PeerIndex peer = 0; peer < 3; ++peer) {
            for (Operation operation :
                 {Operation::kGetReply, Operation::kPutReply, Operation::kAtomicReply}) {
                if (peer == request.to && operation == right.operation) continue;
                MessageHeader wrong = right;
                wrong.operation = operation;
                EXPECT_FALSE(begins(peer, wrong)) << peer << " with " << static_cast<int>(operation);
            }
        }
    }
    for (const FakePoster::Request& request : requests) {
        const MessageHeader right = answer(request.header);
        ASSERT_TRUE(begins(request.to, right));
        finish(request.to, right);
        EXPECT_FALSE(begins(request.to, right)) << "twice";
    }
    EXPECT_EQ(completed, 3);
}

TEST_F(RmaLies, requests_that_no_correct_peer_makes_are_refused) {
    const auto request = [](Operation operation) {
        MessageHeader header{};
        header.operation = operation;
        header.address = 4096;
        return header;
    };
    for (Operation operation : {Operation::kGet, Operation::kPut}) {
        MessageHeader header = request(operation);
        header.bytes = kPart + 1;
        EXPECT_FALSE(begins(0, header));
        header.bytes = kPart;
        EXPECT_TRUE(begins(0, header));
        EXPECT_EQ(placement_.bytes, operation == Operation::kPut ? kPart : 0);
    }
    MessageHeader help = request(Operation::kHelp);
    help.compare = fabric::shm::kShareCells;
    EXPECT_FALSE(begins(0, help));
    help.compare = fabric::shm::kShareCells - 1;
    EXPECT_TRUE(begins(0, help));
    MessageHeader atomic = request(Operation::kAtomic);
    atomic.width = 8;
    atomic.atomic = VELO_ATOMIC_ADD;
    EXPECT_TRUE(begins(0, atomic));
    atomic.address = 4097;
    EXPECT_FALSE(begins(0, atomic));
    atomic.address = 4096;
    atomic.width = 3;
    EXPECT_FALSE(begins(0, atomic));
    EXPECT_FALSE(begins(0, request(static_cast<Operation>(0))));
    EXPECT_FALSE(begins(0, request(static_cast<Operation>(8))));
}

// Two peers, whose answers come in any order, and between them answers that are wrong in one field or come
// from the other one: each transfer completes once, with its own parts.
TEST_F(RmaLies, transfers_of_two_peers_complete_once_whatever_lies_come_between) {
    std::mt19937 random(31);
    int refused = 0;
    for (int round = 0; round < 200; ++round) {
        std::vector<std::unique_ptr<int>> completed;
        for (int i = 0; i < 6; ++i) {
            completed.push_back(std::make_unique<int>(0));
            start(random() % 2 == 0 ? Direction::kGet : Direction::kPut, random() % 2,
                  1 + random() % (5 * kPart), completed.back().get());
        }
        std::vector<FakePoster::Request> told;
        while (!poster_.posted.empty()) {
            std::swap(poster_.posted[0], poster_.posted[random() % poster_.posted.size()]);
            const FakePoster::Request request = poster_.take();
            for (const FakePoster::Request& old : told) {
                if (random() % 4 != 0) continue;
                ASSERT_FALSE(begins(old.to, answer(old.header)));
            }
            const MessageHeader right = answer(request.header);
            for (int lie = 0; lie < 6; ++lie) {
                MessageHeader wrong = right;
                if (lie == 0) wrong.bytes ^= 1ULL << random() % 20;
                if (lie == 1) wrong.position += 1 + random() % (kPart - 1);
                if (lie == 2) wrong.id += 100;
                if (lie == 3) wrong.operation = Operation::kAtomicReply;
                if (lie == 4) wrong.position -= 1 + random() % (kPart - 1);
                refused += !begins(lie == 5 ? 1 - request.to : request.to, wrong);
            }
            ASSERT_TRUE(begins(request.to, right));
            if (right.operation == Operation::kGetReply) std::memset(placement_.data, 7, placement_.bytes);
            finish(request.to, right);
            told.push_back(request);
        }
        for (const auto& count : completed) ASSERT_EQ(*count, 1);
        memory_.clear();
    }
    EXPECT_GT(refused, 10'000);
}

// Through the mailbox of an engine.
class EngineRmaLies : public ::testing::Test {
 protected:
    EngineRmaLies() : party_(config()), liar_(party_[0].engine) {}

    static PartyConfig config() {
        PartyConfig config;
        config.single_copy = "copy";
        config.slots_per_peer = 64;
        return config;
    }
    // Of this process's first transfer.
    static MessageHeader reply(std::uint64_t bytes) {
        MessageHeader header{};
        header.operation = Operation::kGetReply;
        header.id = 1;
        header.bytes = bytes;
        return header;
    }
    void get(std::uint64_t bytes) {
        local_ = std::make_unique<ExactMemory>(bytes);
        const auto done = [](void* argument, velo_status, std::uint64_t) { ++*static_cast<int*>(argument); };
        ASSERT_EQ(
            velo_get(party_[0].engine, party_[0].peers[1], local_->data(), 4096, bytes, done, &completed_),
            VELO_QUEUED);
    }
    // The first answer ends a poll.
    void expect_refusal() {
        for (int poll = 0; poll < 2; ++poll) velo_progress(party_[0].engine);
        EXPECT_EQ(party_[0].fatal.size(), 1U);
        EXPECT_EQ(completed_, 0);
    }

    Party party_;
    LyingPeer liar_;
    std::unique_ptr<ExactMemory> local_;
    int completed_ = 0;
};

TEST_F(EngineRmaLies, the_right_answer_would_be_taken) {
    get(200);
    liar_.store(reply(200), 200);
    velo_progress(party_[0].engine);
    EXPECT_EQ(completed_, 1);
    EXPECT_EQ((*local_)[199], std::byte{'L'});
    EXPECT_TRUE(party_[0].fatal.empty());
}

TEST_F(EngineRmaLies, an_answer_whose_header_announces_one_byte_more_is_refused) {
    get(200);
    liar_.store(reply(201), 201);
    expect_refusal();
}

TEST_F(EngineRmaLies, an_answer_with_one_byte_more_than_its_header_announces_is_refused) {
    get(200);
    liar_.store(reply(200), 201);
    expect_refusal();
}

TEST_F(EngineRmaLies, an_answer_with_one_byte_less_is_refused) {
    get(200);
    liar_.store(reply(200), 199);
    expect_refusal();
}

TEST_F(EngineRmaLies, a_run_after_the_last_byte_is_refused) {
    get(200);
    const MessageHeader header = reply(200);
    std::string text(reinterpret_cast<const char*>(&header), sizeof header);
    liar_.store(wire::kInternal | wire::kFirst, 0, text + std::string(150, 'L'));
    liar_.store(wire::kInternal, 0, std::string(50, 'L'));
    liar_.store(wire::kInternal | wire::kLast, 0, "x");
    expect_refusal();
}

TEST_F(EngineRmaLies, a_header_that_is_cut_off_is_refused) {
    get(200);
    liar_.store(reply(200), 0, sizeof(MessageHeader) - 1);
    expect_refusal();
}

TEST_F(EngineRmaLies, an_answer_to_nobodys_question_is_refused) {
    liar_.store(reply(200), 200);
    expect_refusal();
}

}  // namespace
}  // namespace velo::test
