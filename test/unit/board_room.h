// Boards of tests: members as threads over one memory, and words that each rank gives.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collectives/board/member.h"

namespace velo::board {

struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{kSpacing}); }
};

class Room {
 public:
    explicit Room(const Shape& shape, std::uint64_t first_run = 0)
        : shape_(shape),
          bytes_(Offsets::of(shape).end),
          memory_(static_cast<std::byte*>(::operator new[](bytes_, std::align_val_t{kSpacing}))) {
        std::memset(memory_.get(), 0, bytes_);
        lay_out(memory_.get(), shape, first_run);
    }

    // Of members that come later.
    void choose(const Direct::Choice& choice) { choice_ = choice; }
    std::unique_ptr<Member> member(std::uint32_t me, std::uint64_t warning_ns = 0) {
        return std::make_unique<Member>(
            memory(), shape_, me,
            BoardContext{[](void*) {}, &Room::hear, nullptr, this, "board " + std::to_string(me), warning_ns,
                         true, has_ended},
            nullptr, choice_);
    }
    bool (*has_ended)(void*, std::uint32_t) = nullptr;  // of members that come later
    std::span<std::byte> memory() { return {memory_.get(), bytes_}; }
    const Shape& shape() const { return shape_; }
    Line<>& line(std::uint32_t writer, std::uint32_t slot) {
        return reinterpret_cast<Line<>*>(memory_.get() +
                                         Offsets::of(shape_).lines)[writer * shape_.lines() + slot];
    }
    Progress<>& progress(std::uint32_t member) {
        return reinterpret_cast<Progress<>*>(memory_.get() + Offsets::of(shape_).progress)[member];
    }
    // What has been logged first; empty: nothing.
    std::string said() const { return has_said_.load() ? said_ : std::string(); }

    // Each in a thread of its own.
    void all(const std::function<void(Member&, std::uint32_t)>& body) {
        std::vector<std::thread> threads;
        for (std::uint32_t me = 0; me < shape_.members; ++me)
            threads.emplace_back([&, me] { body(*member(me), me); });
        for (std::thread& thread : threads) thread.join();
    }

 private:
    static void hear(void* context, int, const char* line) {
        auto& room = *static_cast<Room*>(context);
        if (room.has_said_.load()) return;
        room.said_ = line;
        room.has_said_.store(true);
    }

    Shape shape_;
    std::size_t bytes_;
    std::unique_ptr<std::byte, Free> memory_;
    std::string said_;
    std::atomic<bool> has_said_{false};
    Direct::Choice choice_;
};

using Words = std::vector<std::uint32_t>;

// What a rank gives in a round: known to all.
inline std::uint32_t word(std::uint32_t round, std::uint32_t rank, std::uint32_t index) {
    return (round * 2654435761U) ^ (rank * 40503U + index * 97U);
}
inline Words words(std::uint32_t round, std::uint32_t rank, std::uint32_t count) {
    Words all(count);
    for (std::uint32_t i = 0; i < count; ++i) all[i] = word(round, rank, i);
    return all;
}
inline std::byte* bytes(Words& words) {
    return reinterpret_cast<std::byte*>(words.data());
}
inline Words slice(const Words& all, std::uint32_t block, std::uint32_t count) {
    return {all.begin() + block * count, all.begin() + (block + 1) * count};
}

inline constexpr Reduction kSum{goal::Operator::kAdd, goal::Type::kUint, 32};

constexpr std::uint64_t word_of_bcast(std::uint64_t run, std::uint32_t bytes) {
    return Word::pack(run, bytes, Signature::kind_of(Signature::of(VELO_BOARD_BCAST, {}, 0)));
}

}  // namespace velo::board
