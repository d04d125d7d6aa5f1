// The C interface of boards: translates handles, catches failures, says which operations are for boards.
#include "api/velo_board.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "api/handle.h"
#include "board/beginning.h"
#include "board/requests.h"
#include "platform/shared_file.h"

using velo::Failure;
using velo::api::attempted;
using velo::api::guarded;
using velo::board::Beginning;
using velo::board::Member;
using velo::board::Offsets;
using velo::board::Reduction;
using velo::board::Shape;
using velo::board::Step;
using velo::platform::SharedFile;

namespace {

struct Operation {
    velo_board_operation operation;
    velo_goal_request request;
    const void* from;
    void* to;
    void* context;
};

// The file: a board for those that wait, one for requests, and from which request on.
struct Parts {
    static constexpr std::uint32_t kMostWindow = 64,
                                   kMostChunks = 8;  // of requests, which are waited for soon
    // Of the chunks of all members together, unless that is too little for each.
    static constexpr std::uint32_t kMostBytes = 1U << 20, kLeastBytes = 32U << 10;

    Shape waiting, requests;
    std::size_t second, beginning, end;

    explicit Parts(const velo_board_config& config)
        : waiting{config.size, config.window, chunks_of(config), config.chunk}, requests(waiting) {
        if (!waiting.plausible())
            throw Failure(VELO_ERR_PARAMETER, "a board of an impossible shape was asked for");
        requests.window = std::min(requests.window, kMostWindow);
        requests.chunks = std::min({requests.chunks, requests.window, kMostChunks});
        second = aligned(Offsets::of(waiting).end);
        beginning = aligned(second + Offsets::of(requests).end);
        end = beginning + sizeof(Beginning<>);
    }
    static std::uint32_t chunks_of(const velo_board_config& config) {
        const std::uint32_t room = std::max(kMostBytes / (config.size + 1), kLeastBytes);
        return std::min(config.chunks, std::max(room / std::max(config.chunk, 1U), 1U));
    }
    static std::size_t aligned(std::size_t offset) {
        return (offset + velo::board::kSpacing - 1) / velo::board::kSpacing * velo::board::kSpacing;
    }
};

}  // namespace

struct velo_board {
    velo_board(SharedFile file, const velo_board_config& config, const Parts& parts)
        : memory(large_enough(std::move(file), parts)),
          member({memory.data(), parts.second}, parts.waiting, config.rank, surroundings(config, "")),
          of_requests({memory.data() + parts.second, parts.beginning - parts.second}, parts.requests,
                      config.rank, surroundings(config, ", requests"), true),
          requests(&of_requests),
          beginning(reinterpret_cast<Beginning<>*>(memory.data() + parts.beginning)),
          log(config.log),
          trace(config.trace),
          context(config.context) {}

    static SharedFile large_enough(SharedFile file, const Parts& parts) {
        if (file.bytes() < parts.end) velo::board::refuse();
        return file;
    }
    static velo::board::Surroundings surroundings(const velo_board_config& config, const char* which) {
        return {config.progress,
                config.log,
                config.trace,
                config.context,
                std::string(config.name) + which,
                std::uint64_t{config.stall_warning} * 1'000'000'000,
                velo::board::are_crowded(config.size)};
    }

    SharedFile memory;
    Member member, of_requests;
    velo::board::Requests<Operation> requests;
    velo::board::BasicBeginning<> beginning;
    void (*log)(void*, const char*);
    void (*trace)(void*, const velo_board_event*);
    void* context;
    bool failed = false, requests_failed = false;
};

namespace {

static_assert(VELO_BOARD_MOST_MEMBERS == Shape::kMostMembers);

// An operation; the log says what has gone wrong. After that the members do not agree on the run any more,
// and would wait for each other.
template <typename Action>
[[gnu::always_inline]] inline velo_status guarded(velo_board* board, bool* failed, Action action) {
    if (*failed) [[unlikely]]
        return VELO_ERR_PROTOCOL;
    return velo::contained(action, [board, failed](velo_status, const char* text) {
        *failed = true;
        board->log(board->context, text);
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

bool is_of_blocks(velo_board_operation operation) {
    return operation == VELO_BOARD_SCATTER || operation == VELO_BOARD_ALLTOALL;
}

static_assert(static_cast<int>(velo::board::Operation::kBarrier) == VELO_BOARD_BARRIER &&
              static_cast<int>(velo::board::Operation::kReduceScatter) == VELO_BOARD_REDUCE_SCATTER);

// As the member has it, for which both ways to scatter are the same.
std::uint32_t signature_of(velo_board_operation operation, const velo_goal_request& request) {
    return velo::board::Signature::of(
        static_cast<velo::board::Operation>(std::min(operation, VELO_BOARD_REDUCE_SCATTER)),
        static_cast<velo::goal::Operator>(request.op), request.root);
}

// What it asks of a member in its run.
Step step_of(const Member& member, velo_board_operation operation, const velo_goal_request& request,
             const void* from, void* to) {
    const std::uint32_t me = member.me(), all = member.shape().members;
    const bool is_root = request.root == me,
               waits_for_all = operation != VELO_BOARD_EXSCAN && operation != VELO_BOARD_SCAN;
    Step step;
    step.signature = signature_of(operation, request);
    step.bytes = static_cast<std::uint32_t>(request.bytes);
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
            step.meets = !member.exchanges();
            break;
        case VELO_BOARD_BCAST:
        case VELO_BOARD_SCATTER:
            step.gives = is_root;
            step.data = static_cast<const std::byte*>(operation == VELO_BOARD_BCAST ? to : from);
            step.in_blocks = operation == VELO_BOARD_SCATTER;
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
            step.by_turns = member.takes_turns(request.bytes);
            break;
        case VELO_BOARD_ALLTOALL:
            step.in_blocks = true;
            step.by_turns = member.takes_turns(request.bytes);
            break;
        case VELO_BOARD_REDUCE_SCATTER:
            step.bytes = static_cast<std::uint32_t>(share_of(request, me).bytes);
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

}  // namespace

extern "C" {

velo_status velo_board_create(const velo_board_config* config, velo_board** board, char* error,
                              size_t error_bytes) {
    *board = nullptr;
    return guarded(error, error_bytes, [&] {
        const Parts parts(*config);
        SharedFile memory = SharedFile::create(config->directory, parts.end);
        velo::board::lay_out(memory.data(), parts.waiting);
        velo::board::lay_out(memory.data() + parts.second, parts.requests);
        *board = new velo_board(std::move(memory), *config, parts);
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
        const Parts parts(*config);
        velo::platform::FileAddress file;
        std::memcpy(&file, address, sizeof file);
        // Nobody gives it a name: those whom namespaces part from its owner have none.
        if (!velo::platform::openable_by_pid(file))
            throw Failure(VELO_ERR_UNREACHABLE, "the board's owner is not visible from this process");
        *board = new velo_board(SharedFile::open(file, 0), *config, parts);
    });
}

void velo_board_close(velo_board* board) {
    static_assert(std::is_nothrow_destructible_v<velo_board>);
    delete board;
}

velo_board_counts velo_board_count(void) {
    velo::board::Totals sum{};
    attempted([&] { sum = velo::board::totals(); });
    return {sum.boards, sum.published, sum.picked_up, sum.credit_waits, sum.long_waits, sum.requests};
}

velo_status velo_board_run(velo_board* board, velo_board_operation operation,
                           const velo_goal_request* request, const void* from, void* to) {
    tell(board, VELO_BOARD_BEGINS, operation, false, *request);
    const velo_status status =
        guarded(board, &board->failed, [&] { perform(board->member, operation, *request, from, to); });
    tell(board, VELO_BOARD_ENDS, operation, false, *request);
    return status;
}

bool velo_board_serves(velo_board* board, uint64_t request) {
    static_assert(noexcept(board->beginning.serves(request)));
    return board->beginning.serves(request);
}

void velo_board_settle(velo_board* board) {
    static_assert(noexcept(board->beginning.settle()));
    board->beginning.settle();
}

bool velo_board_takes(const velo_board* board, velo_board_operation operation,
                      const velo_goal_request* request) {
    bool takes = false;
    attempted([&] {
        const std::uint64_t bytes = operation == VELO_BOARD_REDUCE_SCATTER_BLOCK
                                        ? block_of(*request, board->member).bytes
                                        : request->bytes;
        // Without data there is no run.
        takes = operation != VELO_BOARD_NONE && bytes <= board->of_requests.most(is_of_blocks(operation)) &&
                (bytes > 0 || operation == VELO_BOARD_BARRIER);
    });
    return takes;
}

velo_status velo_board_start(velo_board* board, velo_board_operation operation,
                             const velo_goal_request* request, const void* from, void* to, void*** context) {
    const Step step = step_of(board->of_requests, operation, *request, from, to);
    *context = nullptr;
    bool over = false;
    tell(board, VELO_BOARD_BEGINS, operation, true, *request);
    const velo_status status = guarded(board, &board->requests_failed, [&] {
        over = board->requests.over_at_once(
            step, [&] { perform(board->of_requests, operation, *request, from, to); });
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
    *status = guarded(board, &board->requests_failed, [&] {
        over = board->requests.advance([&](const Operation& one) {
            perform(board->of_requests, one.operation, one.request, one.from, one.to);
        });
    });
    if (!over && *status == VELO_OK) return false;
    const Operation ended = board->requests.take_first();
    tell(board, VELO_BOARD_ENDS, ended.operation, true, ended.request);
    *context = ended.context;
    return true;
}

}  // extern "C"
