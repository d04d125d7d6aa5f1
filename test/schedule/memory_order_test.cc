// Every memory order of what processes share, on the memory model of C++: small programs over the engine's
// own code are right in every execution, and wrong in some as soon as any single order is taken away.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/board/board.h"
#include "fabric/shm/acceptance.h"
#include "fabric/shm/doorbell.h"
#include "mailbox/reader.h"
#include "mailbox/writer.h"
#include "memory_model.h"
#include "platform/doze.h"
#include "platform/gate.h"
#include "rma/deposit.h"
#include "rma/share.h"

namespace velo::platform {

template <>
struct DozeMachine<order::ModelAtom> {
    using Word = order::ModelAtom<std::uint32_t>;
    using Where = std::source_location;

    static void full_fence(Where where = Where::current()) { order::full_fence(where); }
    static void keep_program_order(Where where = Where::current()) { order::keep_program_order(where); }
    static void wait_for_stores(Where where = Where::current()) { order::wait_for_stores(where); }
    // Without a limit, which would only hide that a wake-up is lost.
    static void sleep(Word& word, std::uint32_t, Where where = Where::current()) {
        order::sleep(word.at(where));
    }
    static void wake_one(Word& word, Where where = Where::current()) { order::wake_one(word.at(where)); }
};

}  // namespace velo::platform

namespace velo::order {
namespace {

using Reader = mailbox::Reader<ModelAtom>;
using Writer = mailbox::Writer<ModelAtom>;

template <std::uint32_t kCapacity>
struct Mailbox {
    Writer writer() { return {&pointers, slots.data(), kCapacity}; }
    Reader reader() { return {&pointers, slots.data(), kCapacity}; }

    mailbox::Pointers<ModelAtom> pointers{};
    std::array<mailbox::Slot<ModelAtom>, kCapacity> slots{};
};

void send(Writer& writer, mailbox::Cursor at, std::uint32_t source, std::uint64_t content) {
    write(writer.payload(at), content);
    writer.publish(at, {wire::PacketKind::kData, wire::kFirst | wire::kLast, 0, sizeof content, 0, source});
}

// The header of the next run, whose content is `content`, or counted on from there for its sender.
wire::Header take(Reader& reader, std::uint64_t content) {
    const wire::Header header = wire::Header::unpack(await([&] { return reader.poll(); }));
    require(read(reader.payload()) == content, "another content than was sent");
    return header;
}
wire::Header take_of(Reader& reader, std::array<std::uint64_t, 2>& next) {
    const wire::Header header = wire::Header::unpack(await([&] { return reader.poll(); }));
    require(read(reader.payload()) == next[header.source]++, "another content than was sent");
    return header;
}

void try_send(Writer& writer, std::uint32_t source, std::uint64_t content) {
    mailbox::Cursor at{};
    await([&] { return writer.try_reserve(1, 1, &at); });
    send(writer, at, source, content);
}

// Two senders and a receiver without credits: each slot is used twice at least.
Program back_pressure() {
    auto box = std::make_shared<Mailbox<1>>();
    auto send_all = [box = box.get()](std::uint32_t source, std::uint32_t count) {
        Writer writer = box->writer();
        for (std::uint32_t i = 0; i < count; ++i) try_send(writer, source, 10 * source + i);
    };
    auto receive = [box = box.get()] {
        Reader reader = box->reader();
        std::array<std::uint64_t, 2> next{0, 10};
        for (int taken = 0; taken < 3; ++taken) {
            take_of(reader, next);
            reader.advance(1);
            reader.publish();
        }
    };
    return {"back pressure", {}, {receive, [=] { send_all(0, 2); }, [=] { send_all(1, 1); }}, {}, box};
}

// A full mailbox of two senders, and a mailbox each in which their credits come back. The one whose packet
// leaves first may come last, to the slot that was given back to the other.
Program returned_credits() {
    struct Node {
        Mailbox<2> box;
        std::array<Mailbox<1>, 2> back;
    };
    auto node = std::make_shared<Node>();
    auto fill = [node = node.get()] {
        Writer writer = node->box.writer();
        for (std::uint32_t source : {0U, 1U}) send(writer, writer.reserve(1), source, 5 + source);
    };
    auto receive = [node = node.get()] {
        Reader reader = node->box.reader();
        for (std::uint32_t source : {0U, 1U}) {
            take(reader, 5 + source);
            reader.advance(1);
            Writer writer = node->back[source].writer();
            send(writer, writer.reserve(1), 0, 1);
        }
        std::array<std::uint64_t, 2> next{7, 8};
        for (int taken = 0; taken < 2; ++taken) {
            take_of(reader, next);
            reader.advance(1);
        }
    };
    auto send_again = [node = node.get()](std::uint32_t source) {
        Reader credits = node->back[source].reader();
        take(credits, 1);
        Writer writer = node->box.writer();
        send(writer, writer.reserve(1), source, 7 + source);
    };
    return {"returned credits", fill, {receive, [=] { send_again(0); }, [=] { send_again(1); }}, {}, node};
}

// The same with a receiver that counts what it has taken of each sender, and refuses more than one packet.
Program refusals() {
    using Acceptance = fabric::shm::BasicAcceptance<ModelAtom>;
    struct Node {
        Mailbox<2> box;
        std::array<ModelAtom<std::uint32_t>, 2> retrieved;
    };
    auto node = std::make_shared<Node>();
    auto receive = [node = node.get()] {
        Reader reader = node->box.reader();
        std::array<std::uint64_t, 2> next{5, 6};
        for (int taken = 0; taken < 4; ++taken) {
            const wire::Header header = take_of(reader, next);
            reader.advance(1);
            Acceptance::count(node->retrieved[header.source], 1);
        }
    };
    auto send_two = [node = node.get()](std::uint32_t source) {
        Writer writer = node->box.writer();
        Acceptance acceptance(1, &node->retrieved[source]);
        for (std::uint32_t i = 0; i < 2; ++i) {
            await([&] { return acceptance.accept(1, 1); });
            send(writer, writer.reserve(1), source, 5 + source + i);
        }
    };
    return {"refusals", {}, {receive, [=] { send_two(0); }, [=] { send_two(1); }}, {}, node};
}

// A run of two packets, whose second slot holds what would pass for a header of the next round; then a packet
// in each of its slots.
Program train() {
    constexpr std::uint32_t kCapacity = 2;
    constexpr std::uint64_t kHead = 77;
    constexpr std::uint64_t kLikeAHeader =
        wire::Header{wire::PacketKind::kData, wire::kFirst | wire::kLast, 0, 8, 2, 1}.pack();
    auto box = std::make_shared<Mailbox<kCapacity>>();
    auto send_train = [box = box.get()] {
        Writer writer = box->writer();
        mailbox::Cursor at{};
        require(writer.try_reserve(2, 2, &at) == 2, "no room in an empty mailbox");
        mailbox::Cursor second = at;
        second.advance(kCapacity, 1);
        write(writer.slot(second), kLikeAHeader);
        write(writer.payload(at), kHead);
        writer.publish(at, {wire::PacketKind::kData, wire::kFirst | wire::kLast, 0,
                            static_cast<std::uint16_t>(wire::run_capacity(2)), 0, 0});
        for (std::uint64_t content : {1, 2}) try_send(writer, 0, content);
    };
    auto receive = [box = box.get()] {
        Reader reader = box->reader();
        require(take(reader, kHead).packets() == 2, "a train of another length than was sent");
        require(read(&box->slots[1].header) == kLikeAHeader, "another content than was sent");
        reader.advance(2);
        reader.publish();
        for (std::uint64_t content : {1, 2}) {
            take(reader, content);
            reader.advance(1);
            reader.publish();
        }
    };
    return {"train", {}, {receive, send_train}, {}, box};
}

// A receiver that sleeps when its mailbox is empty, and senders who wake it.
Program sleeper(std::uint32_t senders) {
    auto box = std::make_shared<Mailbox<2>>();
    auto receive = [box = box.get(), senders] {
        Reader reader = box->reader();
        for (std::uint32_t taken = 0; taken < senders; ++taken) {
            await([&] {
                const std::uint64_t word = reader.poll();
                if (word == 0) platform::doze(box->pointers.doze, 1, [&] { return reader.poll() == 0; });
                return word;
            });
            require(read(reader.payload()) == 1, "another content than was sent");
            reader.advance(1);
        }
    };
    auto wake = [box = box.get()](std::uint32_t source) {
        Writer writer = box->writer();
        send(writer, writer.reserve(1), source, 1);
        platform::wake_if_asleep(box->pointers.doze);
    };
    Program program{"sleeper, " + std::to_string(senders), {}, {receive}, {}, box};
    for (std::uint32_t i = 0; i < senders; ++i) program.threads.emplace_back([wake, i] { wake(i); });
    return program;
}

// Two senders who leave something, and call.
Program doorbell() {
    using Doorbell = fabric::shm::BasicDoorbell<ModelAtom>;
    struct Node {
        ModelAtom<std::uint32_t> rings;
        ModelAtom<std::uint64_t> bits;
        std::array<std::uint64_t, 2> left;

        Doorbell bell() { return {&rings, &bits, 2}; }
    };
    auto node = std::make_shared<Node>();
    auto call = [node = node.get()](std::uint32_t sender) {
        write(&node->left[sender], 5 + sender);
        node->bell().ring(sender);
    };
    auto answer = [node = node.get()] {
        Doorbell bell = node->bell();
        for (int callers = 0; callers < 2;) {
            await([&] { return bell.rung(); });
            callers += bell.answer([node](std::uint32_t sender) {
                require(read(&node->left[sender]) == 5 + sender, "another content than was left");
            });
        }
    };
    return {"doorbell", {}, {answer, [=] { call(0); }, [=] { call(1); }}, {}, node};
}

// Two threads that count what only one of them at a time may touch.
Program gate() {
    struct Node {
        platform::BasicGate<ModelAtom> gate{true};
        std::uint64_t entered = 0, refused[2] = {};
    };
    auto node = std::make_shared<Node>();
    auto pass = [node = node.get()](int self) {
        if (!node->gate.try_enter()) return write(&node->refused[self], 1);
        write(&node->entered, read(&node->entered) + 1);
        node->gate.leave();
    };
    auto count = [node = node.get()] {
        require(read(&node->entered) + read(&node->refused[0]) + read(&node->refused[1]) == 2,
                "somebody was neither let through nor turned away");
        require(node->gate.try_enter(), "the gate is left shut");
    };
    return {"gate", {}, {[=] { pass(0); }, [=] { pass(1); }}, count, node};
}

// Two shared gets one after the other in the same cell. The peer, which is asked to help with both, may come
// too late for the first, when the second is open already. `refused`: it finds that it cannot write after it
// has written something.
Program shared_get(bool refused) {
    constexpr std::uint64_t kUnit = 4096, kUnits = 5;
    using Share = rma::BasicShare<ModelAtom>;
    struct Node {
        fabric::shm::BasicShareCell<ModelAtom> cell;
        Mailbox<2> requests;
        std::array<std::uint64_t, kUnits> target;  // a word stands for a unit

        void copy(const Share::Range& range, std::uint64_t content) {
            for (std::uint64_t at = range.offset; at < range.offset + range.bytes; at += kUnit)
                write(&target[at / kUnit], content);
        }
    };
    auto node = std::make_shared<Node>();
    auto get = [node = node.get()](std::uint32_t generation) {
        Share share(&node->cell, generation, kUnits * kUnit);
        share.open();
        Writer writer = node->requests.writer();
        send(writer, writer.reserve(1), 0, generation);
        while (auto range = share.claim_front()) node->copy(*range, generation);
        // As rma::SharedGet::complete.
        const std::uint64_t theirs = share.peers_bytes();
        await([&] {
            if (share.helped() == theirs) return true;
            if (!share.failed()) return false;
            node->copy({kUnits * kUnit - theirs, theirs}, generation);
            return true;
        });
        for (std::uint64_t& word : node->target)
            require(read(&word) == generation, "another content than was copied");
    };
    auto help = [node = node.get(), refused] {
        Reader reader = node->requests.reader();
        for (std::uint32_t generation : {1, 2}) {
            take(reader, generation);
            reader.advance(1);
            Share share(&node->cell, generation, kUnits * kUnit);
            while (auto range = share.claim_back()) {
                node->copy(*range, generation);
                if (refused) {
                    share.give_up();
                    break;
                }
                share.finish(*range);
            }
        }
    };
    return {refused ? "shared get, refused" : "shared get",
            {},
            {[=] {
                 get(1);
                 get(2);
             },
             help},
            {},
            node};
}

// A get that is announced before its data are there. The peer copies first and says then that they are.
// The initiator, who may have lost patience, gets from there on what is left; or withdraws, and whatever the
// peer does, it owns its memory then.
Program announced_get(bool withdrawn) {
    constexpr std::uint64_t kUnit = 4096, kUnits = 5;
    using Share = rma::BasicShare<ModelAtom>;
    struct Node {
        fabric::shm::BasicShareCell<ModelAtom> cell;
        Mailbox<2> announcements, headers;
        std::array<std::uint64_t, kUnits> target;

        void copy(const Share::Range& range, std::uint64_t content) {
            for (std::uint64_t at = range.offset; at < range.offset + range.bytes; at += kUnit)
                write(&target[at / kUnit], content);
        }
    };
    auto node = std::make_shared<Node>();
    auto get = [node = node.get(), withdrawn] {
        Share share(&node->cell, 1, kUnits * kUnit, Share::First::kPeer);
        share.open();
        Writer writer = node->announcements.writer();
        send(writer, writer.reserve(1), 0, 1);
        Reader reader = node->headers.reader();
        if (!withdrawn) {
            take(reader, 1);
            reader.advance(1);
        }
        if (share.claim_all()) return node->copy({0, kUnits * kUnit}, 2);
        while (auto range = share.claim_front()) {
            if (!withdrawn) node->copy(*range, 2);
        }
        const std::uint64_t theirs = share.peers_bytes();
        await([&] { return share.helped() == theirs; });
        if (withdrawn) return node->copy({0, kUnits * kUnit}, 3);
        for (std::uint64_t& word : node->target) require(read(&word) == 2, "another content than was copied");
    };
    auto place = [node = node.get()] {
        Reader reader = node->announcements.reader();
        take(reader, 1);
        reader.advance(1);
        Share share(&node->cell, 1, kUnits * kUnit, Share::First::kPeer);
        const auto first = share.claim_back();
        Writer writer = node->headers.writer();
        send(writer, writer.reserve(1), 0, 1);
        for (auto range = first; range; range = share.claim_back()) {
            node->copy(*range, 2);
            share.finish(*range);
        }
    };
    return {withdrawn ? "announced get, withdrawn" : "announced get", {}, {get, place}, {}, node};
}

// Two messages whose data their sender deposits, one after the other, in the same ring, which holds half of
// them: it tells the receiver first, and stores then, as far as the receiver has made room. The receiver, who
// may lose patience at any time, says that its get is over.
Program deposits() {
    using Deposit = rma::BasicDeposit<ModelAtom>;
    constexpr std::size_t kPiece = Deposit::kPage, kPieces = 2;
    struct Node {
        Mailbox<2> headers, answers;
        ModelAtom<std::uint32_t> number{}, stored{}, taken{};
        std::uint64_t chunk;
    };
    auto node = std::make_shared<Node>();
    auto owner = [node = node.get()] {
        Writer writer = node->headers.writer();
        Reader reader = node->answers.reader();
        Deposit deposit(&node->number, &node->stored, &node->taken, Deposit::kPage, 0);
        for (std::uint64_t message = 1; message <= 2; ++message) {
            deposit.open(static_cast<std::uint32_t>(message));
            send(writer, writer.reserve(1), 0, message);
            std::size_t stored = 0;
            for (int looks = 0; looks < 2; ++looks)
                stored = deposit.fill(stored, kPieces * kPiece, Deposit::Pieces::kPages,
                                      [&](std::size_t place, std::size_t at, std::size_t bytes) {
                                          require(place == 0 && bytes == kPiece, "a piece is not a page");
                                          write(&node->chunk, 2 * message + at / kPiece);
                                      });
            take(reader, message);
            reader.advance(1);
        }
    };
    auto peer = [node = node.get()] {
        Reader reader = node->headers.reader();
        Writer writer = node->answers.writer();
        Deposit deposit(&node->number, &node->stored, &node->taken, Deposit::kPage, 0);
        for (std::uint64_t message = 1; message <= 2; ++message) {
            take(reader, message);
            reader.advance(1);
            std::size_t copied = 0;
            for (int looks = 0; looks < 2; ++looks)
                copied =
                    deposit.take(copied, kPieces * kPiece, [&](std::size_t, std::size_t at, std::size_t) {
                        require(read(&node->chunk) == 2 * message + at / kPiece,
                                "another content than was stored");
                    });
            send(writer, writer.reserve(1), 0, message);
        }
    };
    return {"deposits", {}, {owner, peer}, {}, node};
}

// The peer has been told of two deposits of one ring, the second of which has its turn once the first has
// been read. Where the peer loses patience, it takes nothing of that.
Program deposits_in_turn() {
    using Deposit = rma::BasicDeposit<ModelAtom>;
    constexpr std::size_t kPiece = Deposit::kPage;
    struct Node {
        Mailbox<2> headers;
        ModelAtom<std::uint32_t> number{}, stored{}, taken{};
        std::uint64_t chunk;
    };
    auto node = std::make_shared<Node>();
    auto owner = [node = node.get()] {
        Writer writer = node->headers.writer();
        Deposit deposit(&node->number, &node->stored, &node->taken, Deposit::kPage, 0);
        for (std::uint32_t message = 1; message <= 2; ++message) {
            deposit.open(message);
            if (message == 1)
                for (std::uint64_t told : {1, 2}) send(writer, writer.reserve(1), 0, told);
            deposit.fill(0, kPiece, Deposit::Pieces::kPages, [&](std::size_t, std::size_t, std::size_t) {
                write(&node->chunk, std::uint64_t{message});
            });
            if (message == 1) await([&] { return deposit.taken(kPiece) == kPiece; });
        }
    };
    auto peer = [node = node.get()] {
        Reader reader = node->headers.reader();
        Deposit deposit(&node->number, &node->stored, &node->taken, Deposit::kPage, 0);
        for (std::uint32_t message = 1; message <= 2; ++message) {
            take(reader, message);
            reader.advance(1);
            if (message == 2 && !deposit.is_open(message)) return;
            require(deposit.taken(kPiece) == 0, "a deposit that nobody has read is not whole");
            std::size_t copied = 0;
            const auto look = [&] {
                copied = deposit.take(copied, kPiece, [&](std::size_t, std::size_t, std::size_t) {
                    require(read(&node->chunk) == message, "another content than was stored");
                });
                return copied == kPiece;
            };
            if (message == 1)
                await(look);
            else
                look();
        }
    };
    return {"deposits in turn", {}, {owner, peer}, {}, node};
}

using Board = board::BasicBoard<ModelAtom>;

// Of up to eight members.
template <std::uint32_t kMembers, std::uint32_t kWindow>
struct BoardRoom {
    // Its run numbers pass the end of what a line says of them.
    static constexpr std::uint64_t kFirst = board::Word::kRuns - 1;

    Board member(std::uint32_t me) {
        return {{progress.data(), counters.data(), lines.data(), nullptr, nullptr},
                {kMembers, kWindow, kWindow, 64},
                me,
                kFirst};
    }

    std::array<board::Progress<ModelAtom>, kMembers> progress{};
    std::array<board::Counter<ModelAtom>, 2> counters{};
    std::array<board::Line<ModelAtom>, (kMembers + 1) * (kWindow + board::Shape::kTurns)> lines{};
    std::array<std::uint64_t, 4> shared{};  // that the program guards with its barriers

    BoardRoom() {
        for (auto& p : progress) std::construct_at(&p.finished, kFirst);
    }
};

void show(Board& board, std::uint32_t writer, std::uint64_t content) {
    write(board.place(writer, sizeof content), content);
    board.publish(writer, sizeof content);
}
void expect_of(Board& board, std::uint32_t writer, std::uint64_t content) {
    await([&] { return board.published(writer, sizeof content); });
    require(read(board.place(writer, sizeof content)) == content, "another content than was published");
}

// One root, which is ahead as far as the window lets it: its slots are used again.
template <std::uint32_t kMembers, std::uint32_t kWindow>
Program board_broadcasts(std::uint32_t runs) {
    auto room = std::make_shared<BoardRoom<kMembers, kWindow>>();
    auto publish = [room = room.get(), runs] {
        Board board = room->member(0);
        for (std::uint32_t run = 0; run < runs; ++run) {
            await([&] { return board.may_publish(8); });
            show(board, 0, 5 + run);
            board.finish();
        }
    };
    auto pick_up = [room = room.get(), runs](std::uint32_t me) {
        Board board = room->member(me);
        for (std::uint32_t run = 0; run < runs; ++run) {
            expect_of(board, 0, 5 + run);
            board.finish();
        }
    };
    std::vector<std::function<void()>> threads{publish};
    for (std::uint32_t me = 1; me < kMembers; ++me) threads.emplace_back([=] { pick_up(me); });
    return {"board, broadcasts", {}, threads, {}, room};
}

// Everybody gives, the last to arrive adds up, everybody gets the sum. With a window of one run the others
// may be reading the last sum yet; with more nobody has to look where they are.
template <std::uint32_t kMembers, std::uint32_t kWindow>
Program board_sums(std::uint32_t runs) {
    auto room = std::make_shared<BoardRoom<kMembers, kWindow>>();
    auto sum = [room = room.get(), runs](std::uint32_t me) {
        Board board = room->member(me);
        for (std::uint32_t run = 0; run < runs; ++run) {
            if (kWindow == 1)
                await([&] { return board.may_publish(8); });
            else
                require(board.may_publish(8), "a slot is not free when all have been there");
            show(board, me, 10 * run + me);
            std::uint64_t all = 0;
            for (std::uint32_t i = 0; i < kMembers; ++i) all += 10 * run + i;
            if (board.arrive()) {
                std::uint64_t found = 0;
                for (std::uint32_t i = 0; i < kMembers; ++i) {
                    require(board.published(i, sizeof found), "a contribution is missing when all are there");
                    found += read(board.place(i, sizeof found));
                }
                show(board, board.result(), found);
                require(found == all, "another sum");
            } else {
                expect_of(board, board.result(), all);
            }
            board.all_are_here();
            board.finish();
        }
    };
    std::vector<std::function<void()>> threads;
    for (std::uint32_t me = 0; me < kMembers; ++me) threads.emplace_back([=] { sum(me); });
    return {"board, sums", {}, threads, {}, room};
}

// Everybody gives and picks up what all others give. Two lines of each writer take turns, whatever the
// window.
Program board_turns(std::uint32_t runs) {
    auto room = std::make_shared<BoardRoom<2, 1>>();
    auto exchange = [room = room.get(), runs](std::uint32_t me) {
        Board board = room->member(me);
        for (std::uint32_t run = 0; run < runs; ++run) {
            board.begin(0, true);
            require(board.may_publish(8), "a line is not free when all have been there");
            show(board, me, 10 * run + me);
            expect_of(board, 1 - me, 10 * run + 1 - me);
            board.all_are_here();
            board.finish();
        }
    };
    return {"board, turns", {}, {[=] { exchange(0); }, [=] { exchange(1); }}, {}, room};
}

// What one has written before a barrier, the others read after it, and one of them writes after the next.
Program board_barriers() {
    auto room = std::make_shared<BoardRoom<3, 1>>();
    auto cross = [room = room.get()](std::uint32_t me) {
        Board board = room->member(me);
        if (me == 0) write(&room->shared[0], 3);
        for (int run = 0; run < 2; ++run) {
            if (board.arrive())
                board.publish(board.result(), 0);
            else
                await([&] { return board.published(board.result(), 0); });
            board.all_are_here();
            board.finish();
            if (run == 0) require(read(&room->shared[0]) == 3, "a barrier has let something pass");
        }
        if (me == 1) write(&room->shared[0], 4);
    };
    return {"board, barriers", {}, {[=] { cross(0); }, [=] { cross(1); }, [=] { cross(2); }}, {}, room};
}

// The quick ones first.
std::vector<Program> programs() {
    return {gate(),
            train(),
            doorbell(),
            sleeper(1),
            returned_credits(),
            refusals(),
            back_pressure(),
            board_broadcasts<2, 1>(3),
            board_broadcasts<3, 1>(2),
            board_broadcasts<2, 2>(4),
            board_sums<2, 1>(2),
            board_sums<2, 2>(3),
            board_sums<3, 1>(1),
            board_turns(4),
            board_barriers(),
            shared_get(true),
            shared_get(false),
            announced_get(false),
            announced_get(true),
            deposits(),
            deposits_in_turn(),
            sleeper(2)};
}

struct Explored {
    Program program;
    Verdict verdict;
};
const std::vector<Explored>& explored() {
    static const std::vector<Explored> all = [] {
        std::vector<Explored> result;
        for (Program& program : programs()) {
            Verdict verdict = explore(program);
            result.push_back({std::move(program), std::move(verdict)});
        }
        return result;
    }();
    return all;
}

// What each order is for: an execution without it.
const std::map<std::string, const char*> kOrders{
    {"acceptance.h accept, load: acquire", "a slot is overwritten before it has been read"},
    {"acceptance.h count, store: release", "the same"},
    {"board.h arrive, fetch_add: acquire", "a contribution is not there when all are"},
    {"board.h arrive, fetch_add: release", "the same"},
    {"board.h finish, store: release", "a slot is overwritten before it has been read"},
    {"board.h look_for_slowest, load: acquire", "the same"},
    {"board.h publish, store: release", "a payload is read before it is there"},
    {"board.h published, load: acquire", "the same"},
    {"deposit.h open, store: release", "what the ring held before passes for the next deposit"},
    {"deposit.h is_open, load: acquire", "the same"},
    {"deposit.h fill, store: release", "a piece is read before it is there"},
    {"deposit.h take, load: acquire", "the same"},
    {"deposit.h take, store: release", "a piece is overwritten before it has been read"},
    {"deposit.h taken, load: acquire", "the same"},
    {"doorbell.h answer, exchange: acquire", "a caller whose ring is not counted yet has left nothing"},
    {"doorbell.h answer, load: acquire", "a ring is counted, its bit is not seen and never looked for again"},
    {"doorbell.h ring, fetch_add: release", "the same"},
    {"doorbell.h ring, fetch_or: release", "a caller whose ring is not counted yet has left nothing"},
    {"doze.h doze_by, full fence: seq_cst", "a sender does not see that the owner is about to sleep"},
    {"doze.h doze_by, full fence: seq_cst #2", "the owner looks before the wait has ended"},
    {"doze.h doze_by, wait: arrival", "the owner does not see what a sender has in its store buffer"},
    {"doze.h wake_if_asleep, compiler's fence: program order", "the sender looks before it has stored"},
    {"gate.h leave, store: release", "two threads are in the gate at once, as far as memory goes"},
    {"gate.h try_enter, exchange: acquire", "the same"},
    {"reader.h word, load: acquire", "a packet is read before it is there"},
    {"reader.h publish, store: release", "a slot is overwritten before it has been read"},
    {"share.h failed, load: acquire", "a part that is copied again is overwritten by the first copy"},
    {"share.h finish, fetch_add: release", "the peer's part is used before it is there"},
    {"share.h give_up, store: release", "a part that is copied again is overwritten by the first copy"},
    {"share.h helped, load: acquire", "the peer's part is used before it is there"},
    {"writer.h publish, store: release", "a packet is read before it is there"},
    {"writer.h reserve, fetch_add: acquire", "a slot whose credit went to another is overwritten early"},
    {"writer.h reserve, fetch_add: release", "the same"},
    {"writer.h try_reserve, load: acquire", "a slot is overwritten before it has been read"},
};

TEST(MemoryOrderTest, what_processes_share_is_right_in_every_execution) {
    for (const auto& [program, verdict] : explored()) {
        EXPECT_EQ(verdict.fault, "") << program.name << ":\n" << verdict.execution;
        EXPECT_GT(verdict.endings, 0U) << program.name;
    }
}

TEST(MemoryOrderTest, every_order_is_known_and_none_is_more_than_is_needed) {
    std::map<std::string, std::string> faults;  // by order: what its absence leads to
    for (const auto& [program, verdict] : explored()) {
        for (const std::string& site : verdict.sites)
            if (std::string& fault = faults[site]; fault.empty()) fault = explore(program, site).fault;
    }
    for (const auto& [site, fault] : faults) {
        EXPECT_TRUE(kOrders.contains(site)) << site << " is not in the list";
        EXPECT_NE(fault, "") << "nothing goes wrong without " << site;
    }
    for (const auto& [site, reason] : kOrders)
        EXPECT_TRUE(faults.contains(site)) << "no program has met " << site << ", without which " << reason;
}

}  // namespace
}  // namespace velo::order
