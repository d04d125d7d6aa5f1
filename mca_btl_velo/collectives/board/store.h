// Where the boards of communicators lie whose rank 0 is one process: a file of that process, made when it
// starts, which members map when they need the first of its boards. Whoever of a communicator comes first
// takes memory there; when all have left it rests for the next one, with its pages. Nobody sends a message.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "collectives/board/board.h"
#include "collectives/board/layout.h"
#include "platform/shared_file.h"

namespace velo::board {

// Whose board it is. Communicators that are there at the same time may have the same number, but then no
// member of one of them is yet to come to it and has been in the other.
struct Key {
    std::uint64_t members;  // a hash of them
    std::uint64_t number;

    bool operator==(const Key&) const = default;
};

// Of a board, or of those that there was no memory for, so that all members find that: they have the numbers
// from that of the key on, `more` beside it.
struct alignas(kLineBytes) Place {
    enum State : std::uint32_t { kNone, kTaken, kResting, kRefused };

    Key key;
    std::uint64_t offset, bytes;  // 0: it has none
    Shape shape;                  // of those that were refused, the first one's
    std::uint32_t state;
    std::uint32_t more;
    std::uint64_t left;  // how often a member will not come again

    bool refuses(const Key& other) const {
        return state == kRefused && key.members == other.members && other.number - key.number <= more;
    }
};

struct alignas(kSpacing) StoreHeader {
    static constexpr std::uint64_t kMagic = 0x333045524f5453;  // "STORE03": changes with the layout
    static constexpr std::uint32_t kPlaces = 65536;

    std::uint64_t magic;
    std::atomic<std::uint32_t> lock;  // of all that follows
    std::uint32_t most, taken;        // boards
    std::uint32_t used;               // places
    std::uint32_t is_closed;          // there are no places for more boards, and never will be
    std::uint64_t end;                // of the memory that boards have had so far
};
static_assert(sizeof(Place) == 64);

// Of a process that looks again and again. Time in which it did not look was none in which it waited: it has
// been suspended, and whom it waits for perhaps with it.
class Patience {
 public:
    explicit Patience(std::uint64_t ns) : left_ns_(ns) {}

    bool is_over(std::uint64_t now_ns) {
        const std::uint64_t since = looked_ns_ == 0 ? 0 : now_ns - looked_ns_;
        looked_ns_ = now_ns;
        left_ns_ -= std::min({since, kMost, left_ns_});
        return left_ns_ == 0;
    }

 private:
    static constexpr std::uint64_t kMost = 100'000'000;

    std::uint64_t left_ns_, looked_ns_ = 0;
};

class Store {
 public:
    // With room for `most` boards of that shape, or a GiB. Only what boards have used is backed by memory.
    // Throws Failure.
    static Store create(const std::string& directory, std::uint32_t most, const Shape& shape);
    static Store open(const platform::FileAddress& address);

    const platform::FileAddress& address() const { return file_.address(); }

    static constexpr std::uint32_t kNowhere = UINT32_MAX;
    struct Taken {
        std::uint32_t place;          // kNowhere: the store is closed
        std::span<std::byte> memory;  // laid out; empty: there is none for this board, at any member
    };
    // The same for all members, which each say once that they have left. Throws Failure.
    Taken take(const Key& key, const Shape& shape);
    void leave(std::uint32_t place);
    // Places of `writer` of these kinds have memory: Backing. What was not decided yet is decided now, for
    // all members. Throws Failure if the store cannot be locked.
    bool back(const Board& board, std::uint32_t writer, std::uint32_t kinds);

 private:
    explicit Store(platform::SharedFile file) : file_(std::move(file)) {}
    StoreHeader& header() { return *reinterpret_cast<StoreHeader*>(file_.data()); }
    Place* places();
    std::uint64_t end();
    bool provide(std::span<std::byte> memory);
    std::span<std::byte> memory_of(const Place& place, const Shape& shape);
    template <typename Wanted>
    Place* find(Wanted wanted);
    Place* free_place();
    Place* with_memory(const Shape& shape);
    Place* begin(const Key& key, const Shape& shape);
    Place* refuse_board(const Key& key, const Shape& shape);

    platform::SharedFile file_;
};

}  // namespace velo::board
