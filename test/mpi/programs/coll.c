/* Every collective operation with equal blocks, blocking, as a request or persistent, with contiguous data and with gaps, in
 * place or not, verified element by element.
 * coll check ROUNDS | many COUNT | communicators COUNT | idup ROUNDS | halves | reductions | mixed ROUNDS | threads ROUNDS |
 *      mismatch COUNT | disagree | gather_alone COUNT | differ | endless
 *      between_calls COUNT: requests among calls that wait, ended by each rank in another order
 *      boards COUNT | endless_board: blocking operations, which go over boards */
#include <pthread.h>

#include "common.h"
#include "persistent.h"

enum { kLargest = 40000 };
static const int kCounts[] = {0, 1, 3, 700, kLargest};

enum form { kPlain, kGaps, kInPlace, kForms };
static enum form form;
enum way { kBlocking, kRequest, kPersistent, kWays };
static enum way way;

static uint32_t element(int round, int from, int to, int index) {
    return (uint32_t)pattern_word(seed_of(from, (uint64_t)round, to), (uint64_t)index);
}

/* With gaps every second element of memory belongs to the data. */
static MPI_Datatype gapped;
static MPI_Datatype type_of(void) { return form == kGaps ? gapped : MPI_UINT32_T; }
static int stride(void) { return form == kGaps ? 2 : 1; }

static uint32_t* buffer(int elements) {
    uint32_t* data = allocate(sizeof *data * 2 * (size_t)elements + 8);
    for (int i = 0; i < 2 * elements; ++i) data[i] = 0xabababab;
    return data;
}

/* The gaps too. */
static void expect(const char* what, const uint32_t* data, int at, int count, uint32_t (*value)(int, int), int block) {
    for (int i = 0; i < count; ++i) {
        const uint32_t* found = data + (size_t)stride() * (size_t)(at + i);
        CHECK(*found == value(block, i), "%s, form %d: element %d of %d in block %d is %x, not %x", what, form, i, count, block,
              *found, value(block, i));
        CHECK(stride() == 1 || found[1] == 0xabababab, "%s: gap %d of %d was written", what, i, count);
    }
}

static void fill(uint32_t* data, int at, int count, uint32_t (*value)(int, int), int block) {
    for (int i = 0; i < count; ++i) data[(size_t)stride() * (size_t)(at + i)] = value(block, i);
}

static int round_now, root;
static uint32_t of_root(int block, int i) { return (void)block, element(round_now, root, 0, i); }
static uint32_t own(int block, int i) { return (void)block, element(round_now, my_rank, 0, i); }
static uint32_t own_for(int block, int i) { return element(round_now, my_rank, block, i); }
static uint32_t of_rank(int block, int i) { return element(round_now, block, 0, i); }
static uint32_t of_rank_for_me(int block, int i) { return element(round_now, block, my_rank, i); }
static uint32_t of_root_for_me(int block, int i) { return (void)block, element(round_now, root, my_rank, i); }
static uint32_t sum_to(int last, int i) {
    uint32_t sum = 0;
    for (int rank = 0; rank <= last; ++rank) sum += element(round_now, rank, 0, i);
    return sum;
}
static uint32_t sum_of_all(int block, int i) { return (void)block, sum_to(ranks - 1, i); }
static uint32_t sum_for_me(int block, int i) {
    uint32_t sum = 0;
    (void)block;
    for (int rank = 0; rank < ranks; ++rank) sum += element(round_now, rank, my_rank, i);
    return sum;
}

static MPI_Request request;
/* What is in place is started once: its operands are gone. */
#define CALL(name, iname, ...)                                              \
    if (way == kBlocking) {                                                 \
        MPI_##name(__VA_ARGS__);                                            \
    } else if (way == kRequest) {                                           \
        MPI_##iname(__VA_ARGS__, &request);                                 \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                              \
    } else {                                                                \
        PERSISTENT_INIT(name)(__VA_ARGS__, MPI_INFO_NULL, &request);        \
        for (int starts = form == kInPlace ? 1 : 2; starts > 0; --starts) { \
            MPI_Start(&request);                                            \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                          \
        }                                                                   \
        MPI_Request_free(&request);                                         \
    }

static void each(int count) {
    const bool in_place = form == kInPlace, at_root = my_rank == root;
    const int all = ranks * count;
    uint32_t *one = buffer(count), *many = buffer(all), *result = buffer(count), *results = buffer(all);

    CALL(Barrier, Ibarrier, MPI_COMM_WORLD);

    if (at_root) fill(result, 0, count, of_root, 0);
    CALL(Bcast, Ibcast, result, count, type_of(), root, MPI_COMM_WORLD);
    expect("bcast", result, 0, count, of_root, 0);

    fill(one, 0, count, own, 0);
    if (in_place) fill(results, my_rank * count, count, own, 0);
    CALL(Allgather, Iallgather, in_place ? MPI_IN_PLACE : one, count, type_of(), results, count, type_of(), MPI_COMM_WORLD);
    for (int rank = 0; rank < ranks; ++rank) expect("allgather", results, rank * count, count, of_rank, rank);

    free(results), results = buffer(all);
    if (in_place && at_root) fill(results, my_rank * count, count, own, 0);
    CALL(Gather, Igather, in_place && at_root ? MPI_IN_PLACE : one, count, type_of(), results, count, type_of(), root, MPI_COMM_WORLD);
    for (int rank = 0; at_root && rank < ranks; ++rank) expect("gather", results, rank * count, count, of_rank, rank);

    free(result), result = buffer(count);
    for (int rank = 0; rank < ranks; ++rank) fill(many, rank * count, count, own_for, rank);
    CALL(Scatter, Iscatter, many, count, type_of(), in_place && at_root ? MPI_IN_PLACE : result, count, type_of(), root, MPI_COMM_WORLD);
    if (!in_place || !at_root) expect("scatter", result, 0, count, of_root_for_me, 0);

    free(results), results = buffer(all);
    for (int rank = 0; in_place && rank < ranks; ++rank) fill(results, rank * count, count, own_for, rank);
    CALL(Alltoall, Ialltoall, in_place ? MPI_IN_PLACE : many, count, type_of(), results, count, type_of(), MPI_COMM_WORLD);
    for (int rank = 0; rank < ranks; ++rank) expect("alltoall", results, rank * count, count, of_rank_for_me, rank);

    if (form != kGaps) {
        fill(result, 0, count, own, 0);
        CALL(Allreduce, Iallreduce, in_place ? MPI_IN_PLACE : one, result, count, type_of(), MPI_SUM, MPI_COMM_WORLD);
        expect("allreduce", result, 0, count, sum_of_all, 0);

        fill(result, 0, count, own, 0);
        CALL(Reduce, Ireduce, in_place && at_root ? MPI_IN_PLACE : one, result, count, type_of(), MPI_SUM, root, MPI_COMM_WORLD);
        if (at_root) expect("reduce", result, 0, count, sum_of_all, 0);

        fill(result, 0, count, own, 0);
        CALL(Scan, Iscan, in_place ? MPI_IN_PLACE : one, result, count, type_of(), MPI_SUM, MPI_COMM_WORLD);
        expect("scan", result, 0, count, sum_to, my_rank);

        fill(result, 0, count, own, 0);
        CALL(Exscan, Iexscan, in_place ? MPI_IN_PLACE : one, result, count, type_of(), MPI_SUM, MPI_COMM_WORLD);
        if (my_rank > 0) expect("exscan", result, 0, count, sum_to, my_rank - 1);

        for (int rank = 0; rank < ranks; ++rank) fill(results, rank * count, count, own_for, rank);
        free(result), result = buffer(count);
        CALL(Reduce_scatter_block, Ireduce_scatter_block, in_place ? MPI_IN_PLACE : many, in_place ? results : result, count, type_of(), MPI_SUM,
             MPI_COMM_WORLD);
        expect("reduce_scatter_block", in_place ? results : result, 0, count, sum_for_me, 0);
    }
    free(one), free(many), free(result), free(results);
}

static void check(int rounds) {
    for (round_now = 0; round_now < rounds; ++round_now) {
        root = round_now % ranks;
        for (form = 0; form < kForms; ++form) {
            for (size_t i = 0; i < sizeof kCounts / sizeof kCounts[0]; ++i) {
                for (way = 0; way < kWays; ++way) each(kCounts[i]);
            }
        }
    }
}

/* So many requests at once, completed in another order than they were started in. */
static void many(int count) {
    MPI_Request* requests = allocate(sizeof *requests * (size_t)count);
    uint32_t(*data)[4] = allocate(sizeof *data * (size_t)count);
    for (int i = 0; i < count; ++i) {
        data[i][0] = element(i, my_rank, 0, 0);
        data[i][2] = my_rank == i % ranks ? element(i, my_rank, 0, 2) : 0;
        switch (i % 3) {
            case 0:
                MPI_Iallreduce(&data[i][0], &data[i][1], 1, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
                break;
            case 1:
                MPI_Ibcast(&data[i][2], 1, MPI_UINT32_T, i % ranks, MPI_COMM_WORLD, &requests[i]);
                break;
            default:
                MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]);
        }
    }
    for (int i = count - 1; i >= 0; i -= 7) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; ++i) {
        uint32_t sum = 0;
        for (int rank = 0; rank < ranks; ++rank) sum += element(i, rank, 0, 0);
        CHECK(i % 3 != 0 || data[i][1] == sum, "request %d: %x, not %x", i, data[i][1], sum);
        CHECK(i % 3 != 1 || data[i][2] == element(i, i % ranks, 0, 2), "request %d: a wrong word", i);
    }
    free(requests), free(data);
}

/* Lines, chunks and schedules; the same sequence everywhere. */
static void between_calls(int count) {
    enum { kSlots = 12, kMost = 3000 };
    static uint32_t in[kSlots + 1][kMost], out[kSlots + 1][kMost];
    MPI_Request requests[kSlots + 1];
    int began[kSlots + 1];
    for (int i = 0; i <= kSlots; ++i) requests[i] = MPI_REQUEST_NULL, began[i] = -1;
    for (int i = 0; i < count; ++i) {
        const uint32_t chance = element(i, 0, 0, 0), of_mine = element(i, my_rank, 1, 1);
        const bool waits = chance % 4 == 0;
        const int slot = waits ? kSlots : i % kSlots, words = (int[]){1, 14, 15, 1000, kMost}[chance / 4 % 5], to = i % ranks;
        /* Whoever is in this slot ends, and perhaps another one, which another rank leaves for later. */
        for (int round = 0, one = slot; round < 2; ++round, one = (int)(of_mine % kSlots)) {
            MPI_Wait(&requests[one], MPI_STATUS_IGNORE);
            const int was = began[one];
            began[one] = -1;
            if (was < 0) continue;
            const int had = (int[]){1, 14, 15, 1000, kMost}[element(was, 0, 0, 0) / 4 % 5];
            for (int at = 0; at < had; at += had > 14 ? 97 : 1) {
                uint32_t sum = 0;
                for (int rank = 0; rank < ranks; ++rank) sum += element(was, rank, 0, at);
                CHECK(was % 3 != 0 || out[one][at] == sum, "sum %d, word %d", was, at);
                CHECK(was % 3 != 1 || out[one][at] == element(was, was % ranks, 0, at), "broadcast %d, word %d", was, at);
            }
        }
        for (int at = 0; at < words; ++at) in[slot][at] = element(i, my_rank, 0, at);
        memcpy(out[slot], in[slot], sizeof(uint32_t) * (size_t)words);
        began[slot] = i;
        if (i % 3 == 0 && waits) MPI_Allreduce(in[slot], out[slot], words, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
        if (i % 3 == 0 && !waits) MPI_Iallreduce(in[slot], out[slot], words, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD, &requests[slot]);
        if (i % 3 == 1 && waits) MPI_Bcast(out[slot], words, MPI_UINT32_T, to, MPI_COMM_WORLD);
        if (i % 3 == 1 && !waits) MPI_Ibcast(out[slot], words, MPI_UINT32_T, to, MPI_COMM_WORLD, &requests[slot]);
        if (i % 3 == 2 && waits) MPI_Barrier(MPI_COMM_WORLD);
        if (i % 3 == 2 && !waits) MPI_Ibarrier(MPI_COMM_WORLD, &requests[slot]);
    }
    MPI_Waitall(kSlots, requests, MPI_STATUSES_IGNORE);
}

static void communicators(int count) {
    MPI_Comm half;
    for (int i = 0; i < count; ++i) {
        MPI_Comm_split(MPI_COMM_WORLD, ranks > 2 ? (my_rank + i) % 2 : 0, -my_rank, &half);
        int rank, size, sum = 0;
        MPI_Comm_rank(half, &rank);
        MPI_Comm_size(half, &size);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
        CHECK(sum == size * (size - 1) / 2, "communicator %d: %d", i, sum);
        /* Under way when it is freed. */
        MPI_Request last;
        int out = i + rank, in = -1;
        MPI_Iallreduce(&out, &in, 1, MPI_INT, MPI_MAX, half, &last);
        MPI_Comm_free(&half);
        MPI_Wait(&last, MPI_STATUS_IGNORE);
        CHECK(in == i + size - 1, "communicator %d: %d after it was freed", i, in);
    }
}

/* MPI_Comm_idup asks for reductions of its own within progress: here after another number of calls at each rank. */
static void idup(int rounds) {
    for (int round = 0; round < rounds; ++round) {
        MPI_Comm copy;
        MPI_Request of_copy;
        MPI_Comm_idup(MPI_COMM_WORLD, &copy, &of_copy);
        for (int i = 0; i < 5; ++i) {
            int in = my_rank + round * i, sum = -1, is_over;
            for (int looks = (3 * my_rank + round) % 5; looks > 0; --looks) MPI_Test(&of_copy, &is_over, MPI_STATUS_IGNORE);
            MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            CHECK(sum == ranks * (ranks - 1) / 2 + ranks * round * i, "round %d sum %d: %d", round, i, sum);
        }
        MPI_Wait(&of_copy, MPI_STATUS_IGNORE);
        MPI_Barrier(copy);
        MPI_Comm_free(&copy);
    }
}

/* Between two groups no schedule serves; within the one that both become it does. */
static void halves(void) {
    const bool high = my_rank >= ranks / 2;
    MPI_Comm half, other, merged;
    MPI_Comm_split(MPI_COMM_WORLD, high, my_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, high ? 0 : ranks / 2, 0, &other);
    int others, in = my_rank, sum = 0, expected = 0, parts[64], part = -1;
    MPI_Request late;
    MPI_Comm_remote_size(other, &others);
    for (int i = 0; i < others; ++i) expected += (high ? 0 : ranks / 2) + i;
    MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, other);
    CHECK(sum == expected, "between groups: %d, not %d", sum, expected);
    sum = 0;
    MPI_Iallreduce(&in, &sum, 1, MPI_INT, MPI_SUM, other, &late);
    MPI_Wait(&late, MPI_STATUS_IGNORE);
    CHECK(sum == expected, "between groups, as a request: %d, not %d", sum, expected);
    for (int i = 0; i < 64; ++i) parts[i] = 5 * i;
    int rank;
    MPI_Comm_rank(half, &rank);
    MPI_Scatter(parts, 1, MPI_INT, &part, 1, MPI_INT, high ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, other);
    CHECK(!high || part == 5 * rank, "scattered: %d", part);
    MPI_Intercomm_merge(other, high, &merged);
    MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, merged);
    CHECK(sum == ranks * (ranks - 1) / 2, "merged: %d", sum);
    MPI_Comm_free(&merged), MPI_Comm_free(&other), MPI_Comm_free(&half);
}

static void first_of_them(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    memcpy(inout, in, sizeof(int) * (size_t)*count);
}

/* Those that a schedule knows, and others, side by side. */
static void reductions(void) {
    struct {
        double value;
        int rank;
    } mine = {.value = -my_rank, .rank = my_rank}, least = {.value = 0};
    MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    CHECK(least.rank == ranks - 1 && least.value == 1 - ranks, "minloc");
    int both[] = {my_rank, my_rank + 1}, out[2] = {0};
    MPI_Allreduce(both, out, 2, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    CHECK(out[0] == 0 && out[1] == 1, "land");
    MPI_Op first;
    MPI_Op_create(first_of_them, false, &first);
    MPI_Request requests[2];
    int of_first[2] = {0};
    MPI_Iallreduce(both, of_first, 2, MPI_INT, first, MPI_COMM_WORLD, &requests[0]);
    int8_t small = (int8_t)(100 + my_rank), sum = 0;
    MPI_Iallreduce(&small, &sum, 1, MPI_INT8_T, MPI_MAX, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    /* Persistent, and with counts. */
    int again[2] = {-1, -1}, part = -1, counts[64] = {0};
    counts[ranks - 1] = 1;
    PERSISTENT_INIT(Allreduce)(both, again, 2, MPI_INT, first, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    for (int starts = 0; starts < 2; ++starts) {
        MPI_Start(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK(again[0] == 0 && again[1] == 1, "persistent, an operation that does not commute: %d %d", again[0], again[1]);
        again[0] = again[1] = -1;
    }
    MPI_Request_free(&requests[0]);
    MPI_Reduce_scatter(both, &part, counts, MPI_INT, first, MPI_COMM_WORLD);
    CHECK(part == (my_rank == ranks - 1 ? 0 : -1), "reduce_scatter with an operation that does not commute: %d", part);
    CHECK(of_first[0] == 0 && of_first[1] == 1, "an operation that does not commute: %d %d", of_first[0], of_first[1]);
    CHECK(sum == 100 + ranks - 1, "max of bytes: %d", sum);
    MPI_Op_free(&first);
    const double half = 0.5 * (my_rank + 1);
    double product = 0, expected = 1;
    for (int rank = 0; rank < ranks; ++rank) expected *= 0.5 * (rank + 1);
    MPI_Allreduce(&half, &product, 1, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD);
    CHECK(product == expected, "product %g, not %g", product, expected);
    float f = (float)my_rank, g = -1;
    MPI_Reduce(&f, &g, 1, MPI_FLOAT, MPI_MAX, ranks - 1, MPI_COMM_WORLD);
    CHECK(my_rank != ranks - 1 || g == (float)(ranks - 1), "max of floats: %g", (double)g);
    uint8_t bits = (uint8_t)(1 << my_rank % 8), all = 0;
    MPI_Allreduce(&bits, &all, 1, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    CHECK(all == (uint8_t)((1 << (ranks < 8 ? ranks : 8)) - 1), "bits %x", all);
}

/* Beside messages, in and out of collective operations. */
static void mixed(int rounds) {
    const int to = (my_rank + 1) % ranks, from = (my_rank + ranks - 1) % ranks;
    for (int round = 0; round < rounds; ++round) {
        MPI_Request requests[4];
        uint32_t in[500], out[500], sum[500], sums[500];
        for (int i = 0; i < 500; ++i) {
            out[i] = element(round, my_rank, 1, i);
            sum[i] = element(round, my_rank, 2, i);
        }
        MPI_Iallreduce(sum, sums, 500, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in, 500, MPI_UINT32_T, from, round, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(out, 500, MPI_UINT32_T, to, round, MPI_COMM_WORLD, &requests[2]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 500; ++i) {
            uint32_t expected = 0;
            for (int rank = 0; rank < ranks; ++rank) expected += element(round, rank, 2, i);
            CHECK(sums[i] == expected && in[i] == element(round, from, 1, i), "round %d element %d", round, i);
        }
    }
}

/* Rank 1 expects less than the root sends. It is told so, and what follows is not concerned. */
static void mismatch(int count) {
    uint32_t* data = buffer(count);
    MPI_Request late;
    MPI_Status status = {.MPI_ERROR = MPI_SUCCESS};
    const int expected = my_rank == 1 ? count / 2 : count, error = my_rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int found = MPI_Bcast(data, expected, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    CHECK(found == error, "bcast: %d, not %d", found, error);
    MPI_Ibcast(data, expected, MPI_UINT32_T, 0, MPI_COMM_WORLD, &late);
    found = MPI_Waitall(1, &late, &status);
    CHECK(found == (my_rank == 1 ? MPI_ERR_IN_STATUS : MPI_SUCCESS), "ibcast: %d", found);
    CHECK(status.MPI_ERROR == error && late == MPI_REQUEST_NULL, "ibcast: %d in the status, not %d", status.MPI_ERROR, error);
    int mine = my_rank, sum = -1;
    CHECK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS && sum == ranks * (ranks - 1) / 2,
          "a sum after it: %d", sum);
    free(data);
}

/* Rank 0 calls another operation than the others, of the same size; what follows is not concerned. */
static void disagree(void) {
    int words[2] = {my_rank, 1}, sums[2] = {-1, -1}, sum = -1;
    MPI_Request late;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD); /* requests after it have a board */
    if (my_rank == 0) {
        MPI_Ibcast(words, 2, MPI_INT, 0, MPI_COMM_WORLD, &late);
    } else {
        MPI_Iallreduce(words, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &late);
    }
    const int found = MPI_Wait(&late, MPI_STATUS_IGNORE);
    CHECK(my_rank == 0 || found != MPI_SUCCESS, "the sum of a broadcast: %d", sums[0]);
    CHECK(MPI_Allreduce(&my_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS && sum == ranks * (ranks - 1) / 2,
          "a sum after it: %d", sum);
}

/* Rank 0 broadcasts, and the others gather with gaps: they are told so, and get nothing that nobody has sent. */
static void gather_alone(int count) {
    uint32_t *mine = buffer(count), *all = buffer(ranks * count);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int found = my_rank == 0 ? MPI_Bcast(mine, count, MPI_UINT32_T, 0, MPI_COMM_WORLD)
                                   : MPI_Allgather(mine, count, gapped, all, count, gapped, MPI_COMM_WORLD);
    CHECK(my_rank == 0 || found != MPI_SUCCESS, "%d blocks of a broadcast", ranks);
    for (int i = 0; i < 2 * ranks * count; ++i) CHECK(all[i] == 0xabababab, "word %d is %x", i, all[i]);
    free(mine), free(all);
}

/* The same with calls that wait, which have a board. */
static void differ(void) {
    int mine = my_rank, result = -1, error_class;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int found = my_rank == 0 ? MPI_Reduce(&mine, &result, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD)
                                   : MPI_Bcast(&mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Error_class(found, &error_class);
    CHECK(error_class == MPI_ERR_OTHER, "%d, not %d", error_class, MPI_ERR_OTHER);
}

/* Each of them in a communicator of its own. */
enum { kThreads = 3 };
static MPI_Comm of_thread[kThreads];
static int rounds_of_threads;
static void* one_thread(void* argument) {
    const int number = (int)(intptr_t)argument;
    for (int round = 0; round < rounds_of_threads; ++round) {
        MPI_Request own;
        int mine = my_rank + round + number, sum = -1;
        if (round % 2 == 0) {
            MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, of_thread[number]);
        } else {
            MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, of_thread[number], &own);
            MPI_Wait(&own, MPI_STATUS_IGNORE);
        }
        CHECK(sum == ranks * (round + number) + ranks * (ranks - 1) / 2, "thread %d round %d: %d", number, round, sum);
    }
    return NULL;
}

static void threads(int rounds) {
    pthread_t all[kThreads];
    rounds_of_threads = rounds;
    for (intptr_t i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &of_thread[i]);
    for (intptr_t i = 0; i < kThreads; ++i) CHECK(pthread_create(&all[i], NULL, one_thread, (void*)i) == 0, "no thread");
    for (int i = 0; i < kThreads; ++i) pthread_join(all[i], NULL);
    for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&of_thread[i]);
}

/* So many at a time, of which each is used before the oldest is freed. */
static void boards(int count) {
    enum { kAtOnce = 5 };
    MPI_Comm open[kAtOnce];
    for (int i = 0; i < count; ++i) {
        MPI_Comm* one = &open[i % kAtOnce];
        if (i >= kAtOnce) MPI_Comm_free(one);
        MPI_Comm_dup(MPI_COMM_WORLD, one);
        for (int call = 0; call < 8; ++call) {
            int mine = my_rank + i, sum = 0, root = i % ranks, word = my_rank == root ? i : -1;
            MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, *one);
            CHECK(sum == ranks * i + ranks * (ranks - 1) / 2, "communicator %d: %d", i, sum);
            MPI_Bcast(&word, 1, MPI_INT, root, *one);
            CHECK(word == i, "communicator %d: %d", i, word);
        }
    }
    for (int i = 0; i < kAtOnce; ++i) MPI_Comm_free(&open[i]);
}

int main(int argc, char** argv) {
    const char* mode = argc > 1 ? argv[1] : "check";
    (strcmp(mode, "threads") == 0 ? start_threads : start)(&argc, &argv);
    const int count = (int)argument(argc, argv, 2, 1);
    MPI_Type_create_resized(MPI_UINT32_T, 0, 8, &gapped);
    MPI_Type_commit(&gapped);
    if (strcmp(mode, "check") == 0) check(count);
    if (strcmp(mode, "many") == 0) many(count);
    if (strcmp(mode, "between_calls") == 0) between_calls(count);
    if (strcmp(mode, "communicators") == 0) communicators(count);
    if (strcmp(mode, "idup") == 0) idup(count);
    if (strcmp(mode, "halves") == 0) halves();
    if (strcmp(mode, "reductions") == 0) reductions();
    if (strcmp(mode, "mixed") == 0) mixed(count);
    if (strcmp(mode, "threads") == 0) threads(count);
    if (strcmp(mode, "mismatch") == 0) mismatch(count);
    if (strcmp(mode, "disagree") == 0) disagree();
    if (strcmp(mode, "gather_alone") == 0) gather_alone(count);
    if (strcmp(mode, "differ") == 0) differ();
    if (strcmp(mode, "boards") == 0) boards(count);
    if (strcmp(mode, "endless_board") == 0) {
        for (int i = 0; i < 8; ++i) MPI_Barrier(MPI_COMM_WORLD);
        printf("rank %d pid=%d\n", my_rank, (int)getpid());
        fflush(stdout);
        for (;;) MPI_Barrier(MPI_COMM_WORLD);
    }
    if (strcmp(mode, "endless") == 0) {
        mixed(1);
        MPI_Barrier(MPI_COMM_WORLD); /* everybody has opened whatever it needs of the others */
        printf("rank %d pid=%d\n", my_rank, (int)getpid());
        fflush(stdout);
        for (;;) mixed(10);
    }
    MPI_Type_free(&gapped);
    if (my_rank == 0) printf("rounds=%d\n", count);
    MPI_Finalize();
    return 0;
}
