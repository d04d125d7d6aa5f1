// The C interface of boards: translates handles, catches failures, says which operations are for boards.
#include "api/velo_board.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "api/handle.h"
#include "board/member.h"
#include "platform/shared_file.h"

using velo::Failure;
using velo::api::attempted;
using velo::api::guarded;
using velo::board::Member;
using velo::board::Reduction;
using velo::board::Shape;
using velo::platform::SharedFile;

struct velo_board {
    velo_board(SharedFile file, const velo_board_config& config, const Shape& shape)
        : memory(std::move(file)),
          member(
              {memory.data(), memory.bytes()}, shape, config.rank,
              {config.progress, config.log, config.context, config.name,
               std::uint64_t{config.stall_warning} * 1'000'000'000, velo::board::are_crowded(config.size)}),
          log(config.log),
          context(config.context) {}

    SharedFile memory;
    Member member;
    void (*log)(void*, const char*);
    void* context;
    bool failed = false;
};

namespace {

Shape shape_of(const velo_board_config& config) {
    const Shape shape{config.size, config.window, config.chunks, config.chunk};
    if (!shape.plausible()) throw Failure(VELO_ERR_PARAMETER, "a board of an impossible shape was asked for");
    return shape;
}

static_assert(VELO_BOARD_MOST_MEMBERS == Shape::kMostMembers);

// An operation; the log says what has gone wrong. After that the members do not agree on the run any more,
// and would wait for each other.
template <typename Action>
[[gnu::always_inline]] inline velo_status guarded(velo_board* board, Action action) {
    if (board->failed) [[unlikely]]
        return VELO_ERR_PROTOCOL;
    return velo::contained([&] { action(board->member); },
                           [board](velo_status, const char* text) {
                               board->failed = true;
                               board->log(board->context, text);
                           });
}

const std::byte* source(const void* from, const velo_goal_request* request) {
    return request->in_place ? nullptr : static_cast<const std::byte*>(from);
}
std::byte* target(void* to) {
    return static_cast<std::byte*>(to);
}

Reduction reduction_of(const velo_goal_request& request) {
    return {static_cast<velo::goal::Operator>(request.op), static_cast<velo::goal::Type>(request.type),
            request.width};
}

}  // namespace

extern "C" {

velo_status velo_board_create(const velo_board_config* config, velo_board** board, char* error,
                              size_t error_bytes) {
    *board = nullptr;
    return guarded(error, error_bytes, [&] {
        const Shape shape = shape_of(*config);
        SharedFile memory = SharedFile::create(config->directory, velo::board::Offsets::of(shape).end);
        velo::board::lay_out(memory.data(), shape);
        *board = new velo_board(std::move(memory), *config, shape);
    });
}

void velo_board_address(const velo_board* board, char address[VELO_BOARD_ADDRESS]) {
    static_assert(sizeof(velo::platform::FileAddress) <= VELO_BOARD_ADDRESS);
    std::memset(address, 0, VELO_BOARD_ADDRESS);
    attempted([&] { std::memcpy(address, &board->memory.address(), sizeof(velo::platform::FileAddress)); });
}

velo_status velo_board_open(const velo_board_config* config, const char address[VELO_BOARD_ADDRESS],
                            velo_board** board, char* error, size_t error_bytes) {
    *board = nullptr;
    return guarded(error, error_bytes, [&] {
        const Shape shape = shape_of(*config);
        velo::platform::FileAddress file;
        std::memcpy(&file, address, sizeof file);
        // Nobody gives it a name: those whom namespaces part from its owner have none.
        if (!velo::platform::openable_by_pid(file))
            throw Failure(VELO_ERR_UNREACHABLE, "the board's owner is not visible from this process");
        *board = new velo_board(SharedFile::open(file, 0), *config, shape);
    });
}

void velo_board_close(velo_board* board) {
    static_assert(std::is_nothrow_destructible_v<velo_board>);
    delete board;
}

velo_board_counts velo_board_count(void) {
    velo::board::Totals sum{};
    attempted([&] { sum = velo::board::totals(); });
    return {sum.boards, sum.published, sum.picked_up, sum.credit_waits, sum.long_waits};
}

velo_status velo_board_barrier(velo_board* board, const velo_goal_request*, const void*, void*) {
    return guarded(board, [&](Member& member) { member.barrier(); });
}

velo_status velo_board_bcast(velo_board* board, const velo_goal_request* request, const void*, void* to) {
    return guarded(board, [&](Member& member) { member.bcast(request->root, target(to), request->bytes); });
}

velo_status velo_board_reduce(velo_board* board, const velo_goal_request* request, const void* from,
                              void* to) {
    return guarded(board, [&](Member& member) {
        member.reduce(reduction_of(*request), request->root, source(from, request), target(to),
                      request->bytes);
    });
}

velo_status velo_board_allreduce(velo_board* board, const velo_goal_request* request, const void* from,
                                 void* to) {
    return guarded(board, [&](Member& member) {
        member.allreduce(reduction_of(*request), source(from, request), target(to), request->bytes);
    });
}

velo_status velo_board_scan(velo_board* board, const velo_goal_request* request, const void* from, void* to) {
    return guarded(board, [&](Member& member) {
        member.scan(reduction_of(*request), source(from, request), target(to), request->bytes);
    });
}

velo_status velo_board_exscan(velo_board* board, const velo_goal_request* request, const void* from,
                              void* to) {
    return guarded(board, [&](Member& member) {
        member.exscan(reduction_of(*request), source(from, request), target(to), request->bytes);
    });
}

velo_status velo_board_gather(velo_board* board, const velo_goal_request* request, const void* from,
                              void* to) {
    return guarded(board, [&](Member& member) {
        member.gather(request->root, source(from, request), target(to), request->bytes);
    });
}

velo_status velo_board_scatter(velo_board* board, const velo_goal_request* request, const void* from,
                               void* to) {
    return guarded(board, [&](Member& member) {
        member.scatter(request->root, static_cast<const std::byte*>(from),
                       request->in_place ? nullptr : target(to), request->bytes);
    });
}

velo_status velo_board_allgather(velo_board* board, const velo_goal_request* request, const void* from,
                                 void* to) {
    return guarded(
        board, [&](Member& member) { member.allgather(source(from, request), target(to), request->bytes); });
}

velo_status velo_board_alltoall(velo_board* board, const velo_goal_request* request, const void* from,
                                void* to) {
    return guarded(
        board, [&](Member& member) { member.alltoall(source(from, request), target(to), request->bytes); });
}

velo_status velo_board_reduce_scatter(velo_board* board, const velo_goal_request* request, const void* from,
                                      void* to) {
    return guarded(board, [&](Member& member) {
        std::uint64_t bytes = 0, begin = 0;
        for (std::uint32_t i = 0; i < request->send_count; bytes += request->sends[i++].bytes)
            if (i == member.me()) begin = bytes;
        member.reduce_scatter(reduction_of(*request), source(from, request), target(to), bytes, begin,
                              begin + request->sends[member.me()].bytes);
    });
}

velo_status velo_board_reduce_scatter_block(velo_board* board, const velo_goal_request* request,
                                            const void* from, void* to) {
    return guarded(board, [&](Member& member) {
        const std::uint64_t block = request->bytes, begin = member.me() * block;
        member.reduce_scatter(reduction_of(*request), source(from, request), target(to),
                              member.shape().members * block, begin, begin + block);
    });
}

}  // extern "C"
