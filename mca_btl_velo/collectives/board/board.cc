#include "collectives/board/board.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "platform/failure.h"

namespace velo::board {
namespace {

Board::Places places(std::byte* memory, const Shape& shape) {
    const Offsets at = Offsets::of(shape);
    return {reinterpret_cast<Progress<>*>(memory + at.progress),
            reinterpret_cast<Counter<>*>(memory + at.counters), reinterpret_cast<Line<>*>(memory + at.lines),
            memory + at.chunks, memory + at.slips};
}

}  // namespace

void lay_out(std::byte* memory, const Shape& shape, std::uint64_t first_run) {
    new (memory) Header{Header::kMagic, shape, first_run};
    for (std::uint32_t member = 0; member < shape.members; ++member) {
        Progress<>& progress = places(memory, shape).progress[member];
        progress.finished.store(first_run, std::memory_order_relaxed);
        progress.begun.store(Begun::pack(first_run, 0), std::memory_order_relaxed);
        progress.reads.store(0, std::memory_order_relaxed);
        // What has memory keeps it; what was refused is asked for anew.
        for (auto* backing : {&progress.own, &progress.result})
            backing->store(Backing::granted(backing->load(std::memory_order_relaxed)),
                           std::memory_order_relaxed);
    }
    // Who has found an error may have left some behind.
    for (std::uint32_t i = 0; i <= groups_of(shape.members); ++i)
        places(memory, shape).counters[i].arrived.store(0, std::memory_order_relaxed);
}

void lay_out_again(std::byte* memory, const Shape& shape) {
    std::uint64_t last = 0;
    for (std::uint32_t member = 0; member < shape.members; ++member)
        last =
            std::max(last, places(memory, shape).progress[member].finished.load(std::memory_order_relaxed));
    std::uint64_t first = last + shape.window;  // that anybody may be ahead
    if (first >= Word::kForget) {
        const Offsets at = Offsets::of(shape);
        std::memset(memory + at.lines, 0, at.chunks - at.lines);
        first = 0;
    }
    lay_out(memory, shape, first);
}

void refuse() {
    throw Failure(VELO_ERR_MISMATCH,
                  "the board that another process has made is of another build of Velo or, for a "
                  "persistent operation, of another number of bytes");
}

void refuse_shape() {
    throw Failure(VELO_ERR_PARAMETER, "a board of an impossible shape was asked for");
}

Board view(std::byte* memory, std::size_t bytes, const Shape& shape, std::uint32_t me) {
    if (!shape.plausible() || me >= shape.members) refuse_shape();
    const auto* header = reinterpret_cast<const Header*>(memory);
    if (bytes < Offsets::of(shape).end || header->magic != Header::kMagic || header->shape != shape) refuse();
    return Board(places(memory, shape), shape, me, header->first_run);
}

}  // namespace velo::board
