// A member of a board, with its way to wait: the collective operations, each until it is done here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "collectives/board/backed_places.h"
#include "collectives/board/blocks.h"
#include "collectives/board/runs.h"
#include "collectives/goal/operation.h"

namespace velo::board {

// What a reduction does to its elements.
struct Reduction {
    goal::Operator op;
    goal::Type type;
    unsigned width;  // bits
};

// All members call the same operations in the same order, with the same bytes, root and reduction. Buffers
// are as for MPI, without gaps; `from` null: what this member gives lies where its result is to be (in
// place). Throws Failure: a member has done what no correct one does, and the board is of no use any more;
// the others who wait for this one find that.
class Member {
 public:
    // `memory`: a board of that shape; lives as long as the member.
    // `store`: where it lies; null: all of its memory is there.
    Member(std::span<std::byte> memory, const Shape& shape, std::uint32_t me, const BoardContext& around,
           Store* store = nullptr, const Direct::Choice& choice = {});
    Member(const Member&) = delete;

    void barrier();
    void bcast(std::uint32_t root, std::byte* data, std::uint64_t bytes);
    void reduce(const Reduction& by, std::uint32_t root, const std::byte* from, std::byte* to,
                std::uint64_t bytes);
    void allreduce(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes);
    void scan(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes);
    void exscan(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes);
    // `block`: bytes of one.
    void gather(std::uint32_t root, const std::byte* from, std::byte* to, std::uint64_t block);
    void scatter(std::uint32_t root, const std::byte* from, std::byte* to, std::uint64_t block);
    void allgather(const std::byte* from, std::byte* to, std::uint64_t block);
    void alltoall(const std::byte* from, std::byte* to, std::uint64_t block);
    // Of the sum of vectors of `bytes` each what lies from `begin` to `end`; these are not alike.
    void reduce_scatter(const Reduction& by, const std::byte* from, std::byte* to, std::uint64_t bytes,
                        std::uint64_t begin, std::uint64_t end);

    // Before an operation, and at all members alike: the places that its writers store in have memory. Where
    // not, none of it may be called. Throws Failure.
    bool has_memory(const Stores& what) { return backed_.provide(what); }
    // Operations that nobody waits for.
    Runs& runs() { return runs_; }

    // How what a root has for each goes: blocks of so many bytes.
    Contribution giving_of_scatter(std::uint64_t block) const {
        const std::uint64_t all = block * (runs_.board().members() - 1);
        return all <= std::min<std::uint64_t>(Shape::kSlipBytes, shape().chunk) ? Contribution::kBlocks
                                                                                : Contribution::kSpread;
    }
    bool exchanges() const { return shape().exchanges(); }
    bool takes_turns(std::uint64_t bytes) const { return runs_.takes_turns(bytes); }
    const Shape& shape() const { return runs_.board().shape(); }
    std::uint32_t me() const { return runs_.board().me(); }
    Totals counted() const { return runs_.counts().counted(); }

 private:
    Board& board() { return runs_.board(); }
    void fold_lower(std::uint32_t signature, const Reduction& by, std::uint32_t end, const std::byte* from,
                    std::byte* to, std::uint64_t bytes);

    Runs runs_;
    BackedPlaces backed_;
    Blocks blocks_;
    std::unique_ptr<std::byte[]> scratch_;  // of a chunk
};

}  // namespace velo::board
