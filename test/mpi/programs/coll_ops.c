/* Reductions by operations that no schedule knows: the program's own, commuting and not, of elements with and without gaps,
 * and those of MPI on pairs and the like; verified against products that each rank computes by itself.
 * coll_ops check ROUNDS | freed */
#include <complex.h>
#include <pthread.h>

#include "common.h"
#include "persistent.h"

/* Matrices of 2 x 2: their product depends on the order, and wraps. */
typedef struct matrix {
    uint32_t at[4];
} matrix;

enum form { kPlain, kGaps, kInPlace, kGapsInPlace, kForms };
static enum form form;
enum way { kBlocking, kRequest, kPersistent, kWays };
static enum way way;
static bool commutes;
static MPI_Datatype types[2];
static MPI_Op products, sums;
static MPI_Request request;
static pthread_t in_mpi;
static unsigned long calls; /* not those of nothing, which Open MPI may answer by itself */

static bool has_gaps(void) { return form == kGaps || form == kGapsInPlace; }
static bool in_place(void) { return form >= kInPlace; }
static MPI_Datatype type(void) { return types[has_gaps()]; }

/* With gaps a matrix begins after a word, has one between its rows, and two behind it. */
enum { kStride = 8 };
static int position(int word) { return has_gaps() ? 1 + word + word / 2 : word; }
static int stride(void) { return has_gaps() ? kStride : 4; }

static matrix value(int round, int rank, int block, int i) {
    matrix m;
    const uint64_t word = pattern_word(seed_of(rank, (uint64_t)round, block), (uint64_t)i);
    for (int k = 0; k < 4; ++k) m.at[k] = (uint32_t)(word >> 8 * k) | 1;
    return m;
}

static matrix combined(matrix a, matrix b) {
    matrix c;
    for (int k = 0; k < 4; ++k)
        c.at[k] = commutes ? a.at[k] + b.at[k] : a.at[k & 2] * b.at[k & 1] + a.at[(k & 2) + 1] * b.at[(k & 1) + 2];
    return c;
}

static void get(matrix* m, const uint32_t* data, int i) {
    for (int k = 0; k < 4; ++k) m->at[k] = data[i * stride() + position(k)];
}
static void put(const matrix* m, uint32_t* data, int i) {
    for (int k = 0; k < 4; ++k) data[i * stride() + position(k)] = m->at[k];
}

static void combine(void* in, void* inout, int* count, MPI_Datatype* asked) {
    CHECK(pthread_equal(in_mpi, pthread_self()), "called by another thread");
    CHECK(*asked == type(), "called with another type");
    for (int i = 0; i < *count; ++i) {
        matrix a, b;
        get(&a, in, i), get(&b, inout, i);
        a = combined(a, b);
        put(&a, inout, i);
    }
}

/* Ranks `first` to `last`. */
static matrix expected(int round, int first, int last, int block, int i) {
    matrix m = value(round, first, block, i);
    for (int rank = first + 1; rank <= last; ++rank) m = combined(m, value(round, rank, block, i));
    return m;
}

static uint32_t* buffer(int elements) {
    uint32_t* data = allocate(sizeof *data * kStride * (size_t)elements + 8);
    for (int i = 0; i < kStride * elements; ++i) data[i] = 0xabababab;
    return data;
}
static void fill(uint32_t* data, int at, int round, int block, int count) {
    for (int i = 0; i < count; ++i) {
        const matrix m = value(round, my_rank, block, i);
        put(&m, data, at + i);
    }
}
static void expect(const char* what, const uint32_t* data, int round, int last, int block, int count) {
    for (int i = 0; i < count; ++i) {
        const matrix right = expected(round, 0, last, block, i);
        matrix found;
        get(&found, data, i);
        CHECK(memcmp(&found, &right, sizeof right) == 0, "%s, form %d, way %d, commutes %d: element %d of %d", what, form, way, commutes,
              i, count);
        for (int k = 0; has_gaps() && k < kStride; ++k)
            CHECK((k != 0 && k != 3 && k < 6) || data[i * kStride + k] == 0xabababab, "%s: a gap was written", what);
    }
}

#define CALL(name, iname, ...)                                              \
    if (way == kBlocking) {                                                 \
        MPI_##name(__VA_ARGS__), ++calls;                                   \
    } else if (way == kRequest) {                                           \
        MPI_##iname(__VA_ARGS__, &request), ++calls;                        \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                              \
    } else {                                                                \
        PERSISTENT_INIT(name)(__VA_ARGS__, MPI_INFO_NULL, &request);        \
        for (int starts = in_place() ? 1 : 2; starts > 0; --starts) {       \
            MPI_Start(&request), ++calls;                                   \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                          \
        }                                                                   \
        MPI_Request_free(&request);                                         \
    }

static void each(int round, int count) {
    const int root = round % ranks;
    const bool at_root = my_rank == root;
    const MPI_Op op = commutes ? sums : products;
    const unsigned long before = calls;
    uint32_t *one = buffer(count), *many = buffer(ranks * count), *result = buffer(count);
    fill(one, 0, round, 0, count);

    fill(result, 0, round, 0, count);
    CALL(Allreduce, Iallreduce, in_place() ? MPI_IN_PLACE : one, result, count, type(), op, MPI_COMM_WORLD);
    expect("allreduce", result, round, ranks - 1, 0, count);

    fill(result, 0, round, 0, count);
    CALL(Reduce, Ireduce, in_place() && at_root ? MPI_IN_PLACE : one, result, count, type(), op, root, MPI_COMM_WORLD);
    expect("reduce", at_root ? result : one, round, at_root ? ranks - 1 : 0, 0, at_root || my_rank == 0 ? count : 0);

    fill(result, 0, round, 0, count);
    CALL(Scan, Iscan, in_place() ? MPI_IN_PLACE : one, result, count, type(), op, MPI_COMM_WORLD);
    expect("scan", result, round, my_rank, 0, count);

    fill(result, 0, round, 0, count);
    CALL(Exscan, Iexscan, in_place() ? MPI_IN_PLACE : one, result, count, type(), op, MPI_COMM_WORLD);
    expect("exscan", result, round, my_rank > 0 ? my_rank - 1 : 0, 0, count); /* rank 0 keeps what it had */

    for (int rank = 0; rank < ranks; ++rank) fill(many, rank * count, round, rank, count);
    free(result), result = buffer(ranks * count);
    for (int rank = 0; in_place() && rank < ranks; ++rank) fill(result, rank * count, round, rank, count);
    CALL(Reduce_scatter_block, Ireduce_scatter_block, in_place() ? MPI_IN_PLACE : many, result, count, type(), op, MPI_COMM_WORLD);
    expect("reduce_scatter_block", result, round, ranks - 1, my_rank, count);

    /* Rank r gets `count` if r and the round are both even or odd, else nothing. */
    int *counts = allocate(sizeof *counts * (size_t)ranks), at = 0;
    free(result), result = buffer(ranks * count);
    for (int rank = 0; rank < ranks; ++rank) {
        counts[rank] = (rank + round) % 2 == 0 ? count : 0;
        fill(in_place() ? result : many, at, round, rank, counts[rank]);
        at += counts[rank];
    }
    CALL(Reduce_scatter, Ireduce_scatter, in_place() ? MPI_IN_PLACE : many, result, counts, type(), op, MPI_COMM_WORLD);
    expect("reduce_scatter", result, round, ranks - 1, my_rank, counts[my_rank]);
    free(one), free(many), free(result), free(counts);
    if (count == 0) calls = before;
}

/* Those of MPI on types that schedules do not know. */
static void of_mpi(void) {
    struct {
        double value;
        int rank;
    } mine = {.value = -my_rank, .rank = my_rank}, least = {.value = 0};
    const bool odd = my_rank % 2 != 0;
    bool any = false;
    double complex z = my_rank + 1.0 * I, sum = 0;
    long double one = my_rank, most = -1;
    CALL(Allreduce, Iallreduce, &mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    CHECK(least.rank == ranks - 1 && least.value == 1 - ranks, "minloc");
    CALL(Allreduce, Iallreduce, &odd, &any, 1, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD);
    CHECK(any == (ranks > 1), "or");
    CALL(Allreduce, Iallreduce, &z, &sum, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
    CHECK(creal(sum) == ranks * (ranks - 1) / 2 && cimag(sum) == ranks, "sum of complex numbers");
    CALL(Scan, Iscan, &one, &most, 1, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    CHECK(most == my_rank, "max of long numbers");
}

static void check(int rounds) {
    static const int kCounts[] = {0, 1, 3, 700, 12000};
    for (int round = 0; round < rounds; ++round)
        for (way = 0; way < kWays; ++way) {
            form = kPlain;
            of_mpi();
            for (form = 0; form < kForms; ++form)
                for (int both = 0; both < 2; ++both) {
                    commutes = both;
                    for (size_t i = 0; i < sizeof kCounts / sizeof kCounts[0]; ++i) each(round, kCounts[i]);
                }
        }
}

/* The operation and its type are the requests' alone when they are started. */
static void freed(void) {
    MPI_Request requests[3];
    uint32_t *one, *results[3];
    for (form = kPlain; form <= kGaps; ++form) {
        MPI_Op op;
        MPI_Datatype own = types[form];
        MPI_Op_create(combine, false, &op);
        one = buffer(100);
        fill(one, 0, 0, 0, 100);
        for (int i = 0; i < 3; ++i) results[i] = buffer(100);
        PERSISTENT_INIT(Allreduce)(one, results[0], 100, own, op, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
        PERSISTENT_INIT(Scan)(one, results[1], 100, own, op, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
        MPI_Iallreduce(one, results[2], 100, own, op, MPI_COMM_WORLD, &requests[2]);
        MPI_Op_free(&op);
        MPI_Type_free(&types[form]);
        types[form] = own; /* by which the function is called */
        MPI_Start(&requests[1]), MPI_Start(&requests[0]), calls += 3;
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        expect("allreduce", results[0], 0, ranks - 1, 0, 100);
        expect("scan", results[1], 0, my_rank, 0, 100);
        expect("iallreduce", results[2], 0, ranks - 1, 0, 100);
        MPI_Request_free(&requests[0]), MPI_Request_free(&requests[1]);
        for (int i = 0; i < 3; ++i) free(results[i]);
        free(one);
    }
}

int main(int argc, char** argv) {
    const char* mode = argc > 1 ? argv[1] : "check";
    MPI_Datatype pairs;
    start(&argc, &argv);
    in_mpi = pthread_self();
    MPI_Type_contiguous(4, MPI_UINT32_T, &types[0]);
    MPI_Type_create_indexed_block(2, 2, (int[]){1, 4}, MPI_UINT32_T, &pairs);
    MPI_Type_create_resized(pairs, 0, kStride * sizeof(uint32_t), &types[1]);
    MPI_Type_free(&pairs);
    MPI_Type_commit(&types[0]), MPI_Type_commit(&types[1]);
    if (strcmp(mode, "check") == 0) {
        MPI_Op_create(combine, false, &products);
        MPI_Op_create(combine, true, &sums);
        check((int)argument(argc, argv, 2, 1));
        MPI_Op_free(&products), MPI_Op_free(&sums);
        MPI_Type_free(&types[0]), MPI_Type_free(&types[1]);
    }
    if (strcmp(mode, "freed") == 0) freed();
    if (my_rank == 0) printf("calls=%lu\n", calls);
    MPI_Finalize();
    return 0;
}
