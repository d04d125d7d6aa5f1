// The C interface of boards: translates handles, catches failures, says which operations are for boards.
#include "api/velo_board.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "api/handle.h"
#include "collectives/board/member.h"
#include "collectives/board/requests.h"
#include "collectives/board/store.h"
#include "platform/process_identity.h"

using velo::api::attempted;
using velo::api::guarded;
using velo::board::Contribution;
using velo::board::Member;
using velo::board::Reduction;
using velo::board::Shape;
using velo::board::Step;
using velo::board::Store;
using velo::board::Stores;
using velo::board::Writers;
using velo::platform::FileAddress;

namespace {

struct Operation {
    velo_board_operation operation;
    velo_goal_request request;
    const void* from;
    void* to;
    void* context;
};

// Of the chunks of all members together, unless that is too little for each.
constexpr std::uint32_t kMostBytes = 1U << 20, kLeastBytes = 32U << 10;

Shape shape_of(const velo_board_config& config) {
    const std::uint32_t room = std::max(kMostBytes / (config.size + 1), kLeastBytes);
    const std::uint32_t chunks = std::min(config.chunks, std::max(room / std::max(config.chunk, 1U), 1U));
    return {config.size, config.window, chunks, config.chunk};
}

velo::board::BoardContext context_of(const velo_board_config& config) {
    return {config.progress,
            config.log,
            config.trace,
            config.context,
            config.name,
            std::uint64_t{config.stall_warning} * 1'000'000'000,
            config.size > config.processors,
            config.has_ended};
}

}  // namespace

struct velo_board_store {
    Store store;
};

struct velo_board {
    velo_board(Store* store, const Store::Taken& taken, const Shape& shape, const velo_board_config& config)
        : member(taken.memory, shape, config.rank, context_of(config), store,
                 {config.single_copy != nullptr ? config.single_copy : "copy", 0}),
          requests(&member.runs()),
          log(config.log),
          trace(config.trace),
          context(config.context) {}

    Member member;
    velo::board::Requests<Operation> requests;
    void (*log)(void*, int, const char*);
    void (*trace)(void*, const velo_board_event*);
    void* context;
    bool failed = false;
};

namespace {

static_assert(VELO_BOARD_MOST_MEMBERS == Shape::kMostMembers);

// An operation; the log says what has gone wrong, unless it is said already: by who has found the error, or
// of the member that has ended. After that the members do not agree on the run any more, and would wait for
// each other.
template <typename Action>
[[gnu::always_inline]] inline velo_status guarded(velo_board* board, Action action) {
    if (board->failed) [[unlikely]]
        return VELO_ERR_PROTOCOL;
    return velo::contained(action, [board](velo_status status, const char* text) {
        board->failed = true;
        board->log(board->context, status == VELO_ERR_REMOTE ? 5 : 0, text);
    });
}

[[gnu::always_inline]] inline void tell(const velo_board* board, velo_board_step step,
                                        velo_board_operation operation, bool is_request,
                                        const velo_goal_request& request) {
    if (board->trace == nullptr) [[likely]]
        return;
    const velo_board_event event{step, static_cast<std::uint8_t>(operation), is_request, 0, request.bytes};
    board->trace(board->context, &event);
}

const std::byte* source(const void* from, const velo_goal_request& request) {
    return request.in_place ? nullptr : static_cast<const std::byte*>(from);
}
std::byte* target(void* to) {
    return static_cast<std::byte*>(to);
}

Reduction reduction_of(const velo_goal_request& request) {
    return {static_cast<velo::goal::Operator>(request.op), static_cast<velo::goal::Type>(request.type),
            request.width};
}

// Of a vector, what lies from `begin` to `end` is this member's.
struct Share {
    std::uint64_t bytes, begin, end;
};
Share share_of(const velo_goal_request& request, std::uint32_t me) {
    std::uint64_t bytes = 0, begin = 0;
    for (std::uint32_t i = 0; i < request.send_count; bytes += request.sends[i++].bytes)
        if (i == me) begin = bytes;
    return {bytes, begin, begin + request.sends[me].bytes};
}
Share block_of(const velo_goal_request& request, const Member& member) {
    const std::uint64_t begin = member.me() * request.bytes;
    return {member.shape().members * request.bytes, begin, begin + request.bytes};
}

[[gnu::always_inline]] inline void perform(Member& member, velo_board_operation operation,
                                           const velo_goal_request& request, const void* from, void* to) {
    const std::uint64_t bytes = request.bytes;
    const auto reduce_scatter = [&](const Share& share) {
        member.reduce_scatter(reduction_of(request), source(from, request), target(to), share.bytes,
                              share.begin, share.end);
    };
    switch (operation) {
        case VELO_BOARD_NONE:
            return;
        case VELO_BOARD_BARRIER:
            return member.barrier();
        case VELO_BOARD_BCAST:
            return member.bcast(request.root, target(to), bytes);
        case VELO_BOARD_REDUCE:
            return member.reduce(reduction_of(request), request.root, source(from, request), target(to),
                                 bytes);
        case VELO_BOARD_ALLREDUCE:
            return member.allreduce(reduction_of(request), source(from, request), target(to), bytes);
        case VELO_BOARD_SCAN:
            return member.scan(reduction_of(request), source(from, request), target(to), bytes);
        case VELO_BOARD_EXSCAN:
            return member.exscan(reduction_of(request), source(from, request), target(to), bytes);
        case VELO_BOARD_GATHER:
            return member.gather(request.root, source(from, request), target(to), bytes);
        case VELO_BOARD_SCATTER:
            return member.scatter(request.root, static_cast<const std::byte*>(from),
                                  request.in_place ? nullptr : target(to), bytes);
        case VELO_BOARD_ALLGATHER:
            return member.allgather(source(from, request), target(to), bytes);
        case VELO_BOARD_ALLTOALL:
            return member.alltoall(source(from, request), target(to), bytes);
        case VELO_BOARD_REDUCE_SCATTER:
            return reduce_scatter(share_of(request, member.me()));
        case VELO_BOARD_REDUCE_SCATTER_BLOCK:
            return reduce_scatter(block_of(request, member));
    }
}

// What it asks of a member.
Step step_of(const Member& member, velo_board_operation operation, const velo_goal_request& request,
             const void* from, void* to) {
    const std::uint32_t me = member.me(), all = member.shape().members;
    const bool is_root = request.root == me,
               waits_for_all = operation != VELO_BOARD_EXSCAN && operation != VELO_BOARD_SCAN;
    Step step;
    step.signature =
        velo::board::Signature::of(operation, static_cast<velo::goal::Operator>(request.op), request.root);
    step.bytes = request.bytes;
    step.data = static_cast<const std::byte*>(request.in_place ? to : from);
    step.gives = true;
    step.end = waits_for_all ? all : me;
    switch (operation) {
        case VELO_BOARD_BARRIER:
            step.bytes = 0;
            step.by_turns = member.exchanges();
            step.meets = !step.by_turns;
            break;
        case VELO_BOARD_ALLREDUCE:
            step.by_turns = member.takes_turns(request.bytes);
            step.is_mutual = member.exchanges();
            step.meets = !member.exchanges();
            break;
        case VELO_BOARD_BCAST:
        case VELO_BOARD_SCATTER:
            step.gives = is_root;
            step.data = static_cast<const std::byte*>(operation == VELO_BOARD_BCAST ? to : from);
            if (operation == VELO_BOARD_SCATTER) step.giving = member.giving_of_scatter(request.bytes);
            step.first = is_root ? all : request.root;
            step.end = is_root ? all : request.root + 1;
            break;
        case VELO_BOARD_REDUCE:
        case VELO_BOARD_GATHER:
            step.gives = !is_root;
            step.end = is_root ? all : 0;
            break;
        case VELO_BOARD_ALLGATHER:
            if (request.in_place) step.data += me * request.bytes;
            step.is_mutual = true;
            step.by_turns = member.takes_turns(request.bytes);
            break;
        case VELO_BOARD_ALLTOALL:
            step.giving = Contribution::kBlocks;
            step.is_mutual = true;
            step.by_turns = member.takes_turns(request.bytes);
            break;
        case VELO_BOARD_REDUCE_SCATTER:
            step.bytes = share_of(request, me).bytes;
            if (request.sends[me].bytes == 0) step.end = 0;
            break;
        case VELO_BOARD_REDUCE_SCATTER_BLOCK:
            step.bytes *= all;
            break;
        default:
            break;
    }
    return step;
}

// Whose places it stores in.
Stores stores_of(const Member& member, velo_board_operation operation, const velo_goal_request& request) {
    const std::uint64_t bytes = request.bytes;
    switch (operation) {
        case VELO_BOARD_NONE:
        case VELO_BOARD_BARRIER:
            break;
        case VELO_BOARD_BCAST:
            return {bytes, Writers::kRoot, Contribution::kOne, request.root};
        case VELO_BOARD_SCATTER: {
            const Contribution giving = member.giving_of_scatter(bytes);
            return {bytes, giving == Contribution::kSpread ? Writers::kAllButRoot : Writers::kRoot, giving,
                    request.root};
        }
        case VELO_BOARD_REDUCE:
        case VELO_BOARD_GATHER:
            return {bytes, Writers::kAllButRoot, Contribution::kOne, request.root};
        case VELO_BOARD_ALLREDUCE:
            return {bytes, Writers::kAllAndResult};
        case VELO_BOARD_SCAN:
        case VELO_BOARD_EXSCAN:
        case VELO_BOARD_ALLGATHER:
            return {bytes, Writers::kAll};
        case VELO_BOARD_ALLTOALL:
            return {bytes, Writers::kAll, Contribution::kBlocks};
        case VELO_BOARD_REDUCE_SCATTER:
            return {share_of(request, member.me()).bytes, Writers::kAll};
        case VELO_BOARD_REDUCE_SCATTER_BLOCK:
            return {bytes * member.shape().members, Writers::kAll};
    }
    return {0, Writers::kAll};
}

// Of a chunk, for one run alone.
std::uint64_t needs_of(velo_board_operation operation, const velo_goal_request& request,
                       std::uint32_t size) noexcept {
    constexpr std::uint64_t kPart = Shape::kLeastPart;
    const std::uint64_t block = (request.bytes + kPart - 1) / kPart * kPart;
    switch (operation) {
        case VELO_BOARD_NONE:
            return UINT64_MAX;
        case VELO_BOARD_BARRIER:
            return 0;
        case VELO_BOARD_SCATTER:
            if (block * (size - 1) > Shape::kSlipBytes) return block;
            [[fallthrough]];
        case VELO_BOARD_ALLTOALL:
            return block == 0 ? UINT64_MAX : block * (size - 1);
        default:
            // Without data there is no run.
            if (request.bytes == 0) return UINT64_MAX;
            return request.bytes * (operation == VELO_BOARD_REDUCE_SCATTER_BLOCK ? size : 1);
    }
}

}  // namespace

extern "C" {

velo_status velo_board_store_create(const char* directory, uint32_t boards, const velo_board_config* config,
                                    velo_board_store** store, char* error, size_t error_bytes) {
    *store = nullptr;
    return guarded(error, error_bytes, [&] {
        *store = new velo_board_store{Store::create(directory, boards, shape_of(*config))};
    });
}

void velo_board_store_address(const velo_board_store* store, char address[VELO_BOARD_ADDRESS]) {
    static_assert(sizeof(FileAddress) <= VELO_BOARD_ADDRESS);
    std::memset(address, 0, VELO_BOARD_ADDRESS);
    attempted([&] { std::memcpy(address, &store->store.address(), sizeof(FileAddress)); });
}

bool velo_board_store_visible(const char address[VELO_BOARD_ADDRESS]) {
    bool visible = false;
    attempted([&] {
        FileAddress file;
        std::memcpy(&file, address, sizeof file);
        visible = file.bytes > 0 && file.machine == velo::platform::machine_identity() &&
                  velo::platform::reachable_by_pid(file);
    });
    return visible;
}

bool velo_board_store_is_closed(const char address[VELO_BOARD_ADDRESS]) {
    bool closed = false;
    attempted([&] {
        FileAddress file;
        std::memcpy(&file, address, sizeof file);
        closed = velo::platform::closed_by_owner(file);
    });
    return closed;
}

velo_status velo_board_store_open(const char address[VELO_BOARD_ADDRESS], velo_board_store** store,
                                  char* error, size_t error_bytes) {
    *store = nullptr;
    return guarded(error, error_bytes, [&] {
        FileAddress file;
        std::memcpy(&file, address, sizeof file);
        *store = new velo_board_store{Store::open(file)};
    });
}

void velo_board_store_close(velo_board_store* store) {
    static_assert(std::is_nothrow_destructible_v<velo_board_store>);
    delete store;
}

velo_status velo_board_open(velo_board_store* store, const velo_board_config* config, velo_board** board,
                            uint32_t* place, char* error, size_t error_bytes) {
    *board = nullptr;
    return guarded(error, error_bytes, [&] {
        const Shape shape = shape_of(*config);
        const Store::Taken taken = store->store.take({config->members, config->number}, shape);
        *place = taken.place;
        if (!taken.memory.empty()) *board = new velo_board(&store->store, taken, shape, *config);
    });
}

void velo_board_close(velo_board_store* store, velo_board* board, uint32_t place) {
    static_assert(std::is_nothrow_destructible_v<velo_board>);
    delete board;
    attempted([&] { store->store.leave(place); });
}

velo_board_counts velo_board_count(void) {
    velo::board::Totals sum{};
    attempted([&] { sum = velo::board::totals(); });
    return {sum.boards,     sum.published, sum.picked_up, sum.credit_waits,
            sum.long_waits, sum.requests,  sum.direct};
}

bool velo_board_has_memory(velo_board* board, velo_board_operation operation,
                           const velo_goal_request* request) {
    bool has_memory = true;  // with an error the operation ends, too
    (void)guarded(
        board, [&] { has_memory = board->member.has_memory(stores_of(board->member, operation, *request)); });
    return has_memory;
}

velo_status velo_board_run(velo_board* board, velo_board_operation operation,
                           const velo_goal_request* request, const void* from, void* to) {
    tell(board, VELO_BOARD_BEGINS, operation, false, *request);
    const velo_status status = guarded(board, [&] { perform(board->member, operation, *request, from, to); });
    tell(board, VELO_BOARD_ENDS, operation, false, *request);
    return status;
}

uint64_t velo_board_needs(velo_board_operation operation, const velo_goal_request* request, uint32_t size) {
    static_assert(noexcept(needs_of(operation, *request, size)));
    return needs_of(operation, *request, size);
}

velo_status velo_board_start(velo_board* board, velo_board_operation operation,
                             const velo_goal_request* request, const void* from, void* to, void*** context) {
    const Step step = step_of(board->member, operation, *request, from, to);
    *context = nullptr;
    bool over = false;
    tell(board, VELO_BOARD_BEGINS, operation, true, *request);
    const velo_status status = guarded(board, [&] {
        over = board->requests.over_at_once(step,
                                            [&] { perform(board->member, operation, *request, from, to); });
    });
    if (over && status == VELO_OK) {
        tell(board, VELO_BOARD_ENDS, operation, true, *request);
        return VELO_OK;
    }
    return velo::contained(
        [&] {
            *context = &board->requests.add(step, {operation, *request, from, to, nullptr}).context;
        },
        [](velo_status, const char*) {});
}

bool velo_board_advance(velo_board* board, void** context, velo_status* status) {
    if (board->requests.empty()) return false;
    bool over = false;
    *status = guarded(board, [&] {
        over = board->requests.advance([&](const Operation& one) {
            perform(board->member, one.operation, one.request, one.from, one.to);
        });
    });
    if (!over && *status == VELO_OK) return false;
    const Operation ended = board->requests.take_first();
    tell(board, VELO_BOARD_ENDS, ended.operation, true, ended.request);
    *context = ended.context;
    return true;
}

}  // extern "C"
