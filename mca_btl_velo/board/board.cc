#include "board/board.h"

#include <new>

#include "platform/failure.h"

namespace velo::board {
namespace {

Board::Places places(std::byte* memory, const Shape& shape) {
    const Offsets at = Offsets::of(shape);
    return {reinterpret_cast<Progress<>*>(memory + at.progress),
            reinterpret_cast<Counter<>*>(memory + at.counters), reinterpret_cast<Line<>*>(memory + at.lines),
            memory + at.chunks};
}

}  // namespace

void lay_out(std::byte* memory, const Shape& shape, std::uint64_t first_run) {
    new (memory) Header{Header::kMagic, shape, first_run};
    for (std::uint32_t member = 0; member < shape.members; ++member) {
        Progress<>& progress = places(memory, shape).progress[member];
        progress.finished.store(first_run, std::memory_order_relaxed);
        progress.begun.store(Begun::pack(first_run, 0), std::memory_order_relaxed);
    }
}

void refuse() {
    throw Failure(VELO_ERR_MISMATCH,
                  "the board that another process has made is of another build of Velo, or of another shape");
}

Board view(std::byte* memory, std::size_t bytes, const Shape& shape, std::uint32_t me) {
    if (!shape.plausible() || me >= shape.members)
        throw Failure(VELO_ERR_PARAMETER, "a board of an impossible shape was asked for");
    const auto* header = reinterpret_cast<const Header*>(memory);
    if (bytes < Offsets::of(shape).end || header->magic != Header::kMagic || header->shape != shape) refuse();
    return Board(places(memory, shape), shape, me, header->first_run);
}

}  // namespace velo::board
