/* Collective operations whose blocks differ, with contiguous data and with gaps, in place or not: blocking, as requests and
 * persistent. All of a buffer is compared, what lies between the blocks too.
 * coll_blocks check ROUNDS | neighbours ROUNDS | persistent ROUNDS | offsets | large */
#include "common.h"
#include "persistent.h"

enum { kMost = 64, kGap = 3 };
enum form { kPlain, kGaps, kInPlace, kForms };
enum way { kBlocking, kRequest, kPersistent, kWays };
static enum form form;
static enum way way;
static int round_now, root;
static MPI_Request request;

#define CALL(name, iname, ...)                                                                             \
    if (way == kBlocking) {                                                                                \
        MPI_##name(__VA_ARGS__);                                                                           \
    } else if (way == kRequest) {                                                                          \
        MPI_##iname(__VA_ARGS__, &request);                                                                \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                             \
    } else {                                                                                               \
        if (request == MPI_REQUEST_NULL) PERSISTENT_INIT(name)(__VA_ARGS__, MPI_INFO_NULL, &request);      \
        MPI_Start(&request);                                                                               \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                             \
    }
/* A persistent one is started twice, with data that is there anew. */
#define EACH_START for (int starts = way == kPersistent ? 2 : 1; starts > 0; --starts)

static uint32_t element(int from, int to, int index) {
    return (uint32_t)pattern_word(seed_of(from, (uint64_t)round_now, to), (uint64_t)index);
}

/* Elements from one rank to another, the same at both: every third time none, sometimes many packets. */
static int count_of(int from, int to) {
    uint64_t state = (uint64_t)round_now * 1000003 + (uint64_t)from * 1009 + (uint64_t)to * 31 + (uint64_t)form;
    next_random(&state);
    const uint32_t random = next_random(&state);
    return (int)(random % 3 == 0 ? 0 : random % 7 == 0 ? 3000 + random / 8 % 9000 : random / 8 % 200);
}

/* With gaps every second element of memory belongs to the data. */
static MPI_Datatype gapped;
static MPI_Datatype type_of(void) { return form == kGaps ? gapped : MPI_UINT32_T; }
static int stride(void) { return form == kGaps ? 2 : 1; }

/* A buffer in blocks, the last one first, with something between them. */
struct side {
    int blocks, counts[kMost], offsets[kMost];
    size_t words;
    uint32_t *data, *expected;
};

static struct side side_of(int blocks, const int* counts) {
    struct side side = {.blocks = blocks};
    int at = kGap;
    for (int i = blocks - 1; i >= 0; --i) {
        side.counts[i] = counts[i];
        side.offsets[i] = at;
        at += counts[i] + kGap;
    }
    side.words = 2 * (size_t)at;
    side.data = allocate(side.words * sizeof *side.data);
    side.expected = allocate(side.words * sizeof *side.data);
    return side;
}

static void clear(struct side* side) {
    for (size_t i = 0; i < side->words; ++i) side->data[i] = side->expected[i] = 0xabababab;
}

static void put(const struct side* side, uint32_t* data, int block, int from, int to) {
    for (int i = 0; i < side->counts[block]; ++i)
        data[(size_t)stride() * (size_t)(side->offsets[block] + i)] = element(from, to, i);
}

/* What is sent stays as it is. */
static void put_both(const struct side* side, int block, int from, int to) {
    put(side, side->data, block, from, to);
    put(side, side->expected, block, from, to);
}

static void verify(const char* what, const struct side* side) {
    for (size_t i = 0; i < side->words; ++i)
        CHECK(side->data[i] == side->expected[i], "%s, round %d, form %d, way %d: word %zu of %zu is %x, not %x", what,
              round_now, form, way, i, side->words, side->data[i], side->expected[i]);
}

static void* first(const struct side* side) { return side->data + (size_t)stride() * (size_t)side->offsets[0]; }

static void finish(struct side* side) { free(side->data), free(side->expected); }

static void finish_both(struct side* out, struct side* in) {
    finish(out), finish(in);
    if (way == kPersistent) MPI_Request_free(&request);
}

static void gatherv(void) {
    const bool at_root = my_rank == root, in_place = form == kInPlace && at_root;
    int counts[kMost];
    for (int rank = 0; rank < ranks; ++rank) counts[rank] = count_of(rank, root);
    struct side out = side_of(1, &counts[my_rank]), in = side_of(ranks, counts);
    EACH_START {
        clear(&out), clear(&in);
        put_both(&out, 0, my_rank, root);
        if (in_place) put(&in, in.data, my_rank, my_rank, root);
        for (int rank = 0; at_root && rank < ranks; ++rank) put(&in, in.expected, rank, rank, root);
        CALL(Gatherv, Igatherv, in_place ? MPI_IN_PLACE : first(&out), out.counts[0], type_of(), in.data, in.counts, in.offsets,
             type_of(), root, MPI_COMM_WORLD);
        verify("gatherv", &in), verify("gatherv, sent", &out);
    }
    finish_both(&out, &in);
}

static void scatterv(void) {
    const bool at_root = my_rank == root, in_place = form == kInPlace && at_root;
    int counts[kMost];
    for (int rank = 0; rank < ranks; ++rank) counts[rank] = count_of(root, rank);
    struct side out = side_of(ranks, counts), in = side_of(1, &counts[my_rank]);
    EACH_START {
        clear(&out), clear(&in);
        for (int rank = 0; at_root && rank < ranks; ++rank) put_both(&out, rank, root, rank);
        if (!in_place) put(&in, in.expected, 0, root, my_rank);
        CALL(Scatterv, Iscatterv, out.data, out.counts, out.offsets, type_of(), in_place ? MPI_IN_PLACE : first(&in), in.counts[0],
             type_of(), root, MPI_COMM_WORLD);
        verify("scatterv", &in), verify("scatterv, sent", &out);
    }
    finish_both(&out, &in);
}

static void allgatherv(void) {
    const bool in_place = form == kInPlace;
    int counts[kMost];
    for (int rank = 0; rank < ranks; ++rank) counts[rank] = count_of(rank, 0);
    struct side out = side_of(1, &counts[my_rank]), in = side_of(ranks, counts);
    EACH_START {
        clear(&out), clear(&in);
        put_both(&out, 0, my_rank, 0);
        if (in_place) put(&in, in.data, my_rank, my_rank, 0);
        for (int rank = 0; rank < ranks; ++rank) put(&in, in.expected, rank, rank, 0);
        CALL(Allgatherv, Iallgatherv, in_place ? MPI_IN_PLACE : first(&out), out.counts[0], type_of(), in.data, in.counts,
             in.offsets, type_of(), MPI_COMM_WORLD);
        verify("allgatherv", &in), verify("allgatherv, sent", &out);
    }
    finish_both(&out, &in);
}

/* In place both ways are equally long. */
static int count_between(int from, int to) {
    return form == kInPlace ? count_of(from < to ? from : to, from < to ? to : from) : count_of(from, to);
}

static void alltoallv(bool by_types) {
    const bool in_place = form == kInPlace;
    int from_me[kMost] = {0}, to_me[kMost] = {0};
    for (int rank = 0; rank < ranks; ++rank) from_me[rank] = count_between(my_rank, rank), to_me[rank] = count_between(rank, my_rank);
    struct side out = side_of(ranks, from_me), in = side_of(ranks, to_me);
    /* The same elements, as bytes too where they lie together; what a block has none of needs no type. */
    int from_bytes[kMost], to_bytes[kMost];
    MPI_Datatype types[2][kMost];
    for (int rank = 0; rank < ranks; ++rank) {
        from_bytes[rank] = out.offsets[rank] * 4 * stride(), to_bytes[rank] = in.offsets[rank] * 4 * stride();
        const bool as_bytes = by_types && form != kGaps && rank % 2 == 1 && !in_place;
        types[0][rank] = types[1][rank] = as_bytes ? MPI_BYTE : type_of();
        if (as_bytes) from_me[rank] *= 4, to_me[rank] *= 4;
    }
    EACH_START {
        clear(&out), clear(&in);
        for (int rank = 0; rank < ranks; ++rank) {
            put_both(&out, rank, my_rank, rank);
            if (in_place) put(&in, in.data, rank, my_rank, rank);
            put(&in, in.expected, rank, rank, my_rank);
        }
        void* const from = in_place ? MPI_IN_PLACE : out.data;
        if (by_types) {
            CALL(Alltoallw, Ialltoallw, from, from_me, from_bytes, types[0], in.data, to_me, to_bytes, types[1], MPI_COMM_WORLD);
        } else {
            CALL(Alltoallv, Ialltoallv, from, out.counts, out.offsets, type_of(), in.data, in.counts, in.offsets, type_of(),
                 MPI_COMM_WORLD);
        }
        verify(by_types ? "alltoallw" : "alltoallv", &in), verify("alltoall, sent", &out);
    }
    finish_both(&out, &in);
}

static void reduce_scatter(void) {
    const bool in_place = form == kInPlace;
    int counts[kMost], before[kMost], all = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        counts[rank] = count_of(0, rank);
        before[rank] = all;
        all += counts[rank];
    }
    struct side out = side_of(1, &all), in = side_of(1, in_place ? &all : &counts[my_rank]);
    EACH_START {
        clear(&out), clear(&in);
        put_both(&out, 0, my_rank, 0);
        if (in_place) put(&in, in.data, 0, my_rank, 0);
        CALL(Reduce_scatter, Ireduce_scatter, in_place ? MPI_IN_PLACE : first(&out), first(&in), counts, MPI_UINT32_T, MPI_SUM,
             MPI_COMM_WORLD);
        for (int i = 0; i < counts[my_rank]; ++i) {
            uint32_t sum = 0;
            for (int rank = 0; rank < ranks; ++rank) sum += element(rank, 0, before[my_rank] + i);
            CHECK(((uint32_t*)first(&in))[i] == sum, "reduce_scatter, form %d, way %d: element %d of %d", form, way, i,
                  counts[my_rank]);
        }
        if (!in_place) CHECK(((uint32_t*)first(&in))[counts[my_rank]] == 0xabababab, "reduce_scatter wrote behind its block");
        verify("reduce_scatter, sent", &out);
    }
    finish_both(&out, &in);
}

static void check(int rounds) {
    for (round_now = 0; round_now < rounds; ++round_now) {
        root = round_now % ranks;
        for (form = 0; form < kForms; ++form) {
            for (way = 0; way < kWays; ++way) {
                gatherv();
                scatterv();
                allgatherv();
                alltoallv(false);
                alltoallv(true);
                if (form != kGaps) reduce_scatter();
            }
        }
    }
}

/* --- neighbours: by `from` of whom each block comes, and which of theirs it is */
struct topology {
    MPI_Comm comm;
    int sources, targets, from[kMost], block[kMost], to[kMost];
};

static void neighbours(const struct topology* t, bool equal, bool to_all) {
    const int same = count_of(99, 0);
    int from_me[kMost], to_me[kMost];
    for (int i = 0; i < t->targets; ++i) from_me[i] = equal ? same : count_of(my_rank, to_all ? 0 : i);
    for (int i = 0; i < t->sources; ++i)
        to_me[i] = equal ? same : t->from[i] == MPI_PROC_NULL ? 5 : count_of(t->from[i], to_all ? 0 : t->block[i]);
    int own = equal ? same : count_of(my_rank, 0);
    struct side out = to_all ? side_of(1, &own) : side_of(t->targets, from_me), in = side_of(t->sources, to_me);
    if (equal) { /* one after the other */
        for (int i = 0; i < t->sources; ++i) in.offsets[i] = i * same;
        for (int i = 0; i < t->targets && !to_all; ++i) out.offsets[i] = i * same;
    }
    MPI_Datatype types[kMost];
    MPI_Aint from_bytes[kMost], to_bytes[kMost];
    for (int i = 0; i < kMost; ++i) types[i] = type_of();
    for (int i = 0; i < t->targets && !to_all; ++i) from_bytes[i] = out.offsets[i] * 4 * stride();
    for (int i = 0; i < t->sources; ++i) to_bytes[i] = in.offsets[i] * 4 * stride();
    for (int by_types = 0; by_types < (equal || to_all ? 1 : 2); ++by_types) {
        EACH_START {
            clear(&out), clear(&in);
            for (int i = 0; i < (to_all ? 1 : t->targets); ++i)
                if (to_all || t->to[i] != MPI_PROC_NULL) put_both(&out, i, my_rank, i);
            for (int i = 0; i < t->sources; ++i)
                if (t->from[i] != MPI_PROC_NULL) put(&in, in.expected, i, t->from[i], to_all ? 0 : t->block[i]);
            if (equal && to_all) {
                CALL(Neighbor_allgather, Ineighbor_allgather, first(&out), same, type_of(), in.data, same, type_of(), t->comm);
            } else if (equal) {
                CALL(Neighbor_alltoall, Ineighbor_alltoall, out.data, same, type_of(), in.data, same, type_of(), t->comm);
            } else if (to_all) {
                CALL(Neighbor_allgatherv, Ineighbor_allgatherv, first(&out), own, type_of(), in.data, in.counts, in.offsets,
                     type_of(), t->comm);
            } else if (by_types) {
                CALL(Neighbor_alltoallw, Ineighbor_alltoallw, out.data, out.counts, from_bytes, types, in.data, in.counts,
                     to_bytes, types, t->comm);
            } else {
                CALL(Neighbor_alltoallv, Ineighbor_alltoallv, out.data, out.counts, out.offsets, type_of(), in.data, in.counts,
                     in.offsets, type_of(), t->comm);
            }
            verify(equal ? "neighbours, equal blocks" : "neighbours", &in), verify("neighbours, sent", &out);
        }
        if (way == kPersistent) MPI_Request_free(&request);
    }
    finish(&out), finish(&in);
}

/* What I send up along a dimension comes from below there, also where both are the same process, or I am. */
static struct topology grid(int dimensions, bool periodic) {
    struct topology t = {.sources = 2 * dimensions, .targets = 2 * dimensions};
    int sizes[kMost] = {0}, wraps[kMost];
    for (int d = 0; d < dimensions; ++d) wraps[d] = periodic;
    MPI_Dims_create(ranks, dimensions, sizes);
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, sizes, wraps, false, &t.comm);
    for (int d = 0; d < dimensions; ++d) {
        MPI_Cart_shift(t.comm, d, 1, &t.from[2 * d], &t.from[2 * d + 1]);
        t.block[2 * d] = 2 * d + 1, t.block[2 * d + 1] = 2 * d;
    }
    memcpy(t.to, t.from, sizeof t.to);
    return t;
}

/* Everybody's list of those it sends to: several times to some, to itself, to nobody. */
static int targets_of(int rank, bool symmetric, int* to) {
    int count = 0;
    if (symmetric) {
        to[count++] = (rank + ranks - 1) % ranks;
        to[count++] = (rank + 1) % ranks;
        return count;
    }
    for (int i = 0; i < rank % 4; ++i) to[count++] = (rank * 3 + i * i) % ranks;
    return count;
}

/* The n-th block from a rank to me is the n-th one that I have from it. */
static void find_blocks(struct topology* t, bool symmetric) {
    for (int i = 0; i < t->sources; ++i) {
        int to[kMost], before = 0;
        for (int k = 0; k < i; ++k) before += t->from[k] == t->from[i];
        const int count = targets_of(t->from[i], symmetric, to);
        for (int k = 0; k < count; ++k)
            if (to[k] == my_rank && before-- == 0) t->block[i] = k;
    }
}

static struct topology graph(void) {
    struct topology t = {.sources = 2, .targets = 2};
    int ends[kMost], edges[2 * kMost];
    for (int rank = 0; rank < ranks; ++rank) {
        targets_of(rank, true, &edges[2 * rank]);
        ends[rank] = 2 * (rank + 1);
    }
    MPI_Graph_create(MPI_COMM_WORLD, ranks, ends, edges, false, &t.comm);
    targets_of(my_rank, true, t.to);
    memcpy(t.from, t.to, sizeof t.to);
    find_blocks(&t, true);
    return t;
}

static struct topology distributed(void) {
    struct topology t = {.sources = 0};
    t.targets = targets_of(my_rank, false, t.to);
    for (int rank = ranks - 1; rank >= 0; --rank) {
        int to[kMost];
        const int count = targets_of(rank, false, to);
        for (int i = 0; i < count; ++i)
            if (to[i] == my_rank) t.from[t.sources++] = rank;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, t.sources, t.from, t.from, t.targets, t.to, t.to, MPI_INFO_NULL, false, &t.comm);
    find_blocks(&t, false);
    return t;
}

static void check_neighbours(int rounds) {
    struct topology all[] = {grid(1, true), grid(1, false), grid(2, true), grid(3, true), grid(2, false), graph(), distributed()};
    for (round_now = 0; round_now < rounds; ++round_now)
        for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
            for (form = kPlain; form <= kGaps; ++form)
                for (way = 0; way < kWays; ++way)
                    for (int kind = 0; kind < 4; ++kind) neighbours(&all[i], kind % 2 == 0, kind / 2 == 0);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) MPI_Comm_free(&all[i].comm);
}

/* --- requests that are started again and again */

/* Three of a communicator, started in another order at every second rank, beside others that are made and waited for in
 * between. Types and communicators are given up by the program as soon as the requests are there. */
static void persistent(int rounds) {
    enum { kCount = 500 };
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Request requests[3], other;
    uint32_t *sums = allocate(sizeof *sums * kCount), *all = allocate(2 * sizeof *all * kCount * (size_t)ranks);
    uint32_t word[kCount], spread[2 * kCount], one = 0, total = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_dup(gapped, &type);
    PERSISTENT_INIT(Allreduce)(word, sums, kCount, MPI_UINT32_T, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
    PERSISTENT_INIT(Allgather)(word, kCount, MPI_UINT32_T, all, kCount, type, comm, MPI_INFO_NULL, &requests[1]);
    PERSISTENT_INIT(Bcast)(spread, kCount, type, ranks - 1, comm, MPI_INFO_NULL, &requests[2]);
    MPI_Type_free(&type);
    MPI_Iallreduce(&my_rank, &total, 1, MPI_INT, MPI_SUM, comm, &other);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    for (round_now = 0; round_now < rounds; ++round_now) {
        for (int i = 0; i < kCount; ++i) word[i] = element(my_rank, 0, i);
        for (int i = 0; i < 2 * kCount; ++i) spread[i] = my_rank == ranks - 1 ? element(my_rank, 1, i) : 0xabababab;
        for (size_t i = 0; i < 2 * kCount * (size_t)ranks; ++i) all[i] = 0xabababab;
        if (my_rank % 2 == 0) {
            MPI_Startall(3, requests);
        } else {
            for (int i = 2; i >= 0; --i) {
                MPI_Start(&requests[i]);
                if (i == round_now % 3) MPI_Wait(&requests[i], MPI_STATUS_IGNORE), MPI_Start(&requests[i]);
            }
        }
        /* Who waited once more has started once more: so do the others. */
        if (my_rank % 2 == 0) {
            MPI_Wait(&requests[round_now % 3], MPI_STATUS_IGNORE);
            MPI_Start(&requests[round_now % 3]);
        }
        one = (uint32_t)round_now;
        MPI_Allreduce(&one, &total, 1, MPI_UINT32_T, MPI_MAX, MPI_COMM_WORLD);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < kCount; ++i) {
            uint32_t sum = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                const size_t at = 2 * ((size_t)rank * kCount + (size_t)i);
                sum += element(rank, 0, i);
                CHECK(all[at] == element(rank, 0, i) && all[at + 1] == 0xabababab, "round %d: element %d of rank %d", round_now, i, rank);
            }
            CHECK(sums[i] == sum, "round %d: sum %d", round_now, i);
            CHECK(spread[2 * i] == element(ranks - 1, 1, 2 * i), "round %d: broadcast element %d", round_now, i);
            CHECK(my_rank == ranks - 1 || spread[2 * i + 1] == 0xabababab, "round %d: gap %d", round_now, i);
        }
    }
    for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
    free(sums), free(all);
}

/* --- beyond 2 GiB */

static MPI_Datatype mebibyte;

/* Small blocks far from each other; what is between them is never touched. */
static void offsets(void) {
    enum { kFar = 700 }; /* MiB */
    int counts[kMost], displacements[kMost];
    const size_t bytes = (size_t)1 << 20;
    for (int rank = 0; rank < ranks; ++rank) counts[rank] = 1, displacements[rank] = rank * kFar;
    unsigned char *own = allocate(bytes), *all = allocate(bytes * ((size_t)ranks * kFar + 1));
    pattern_fill(own, bytes, seed_of(my_rank, 0, 0));
    MPI_Allgatherv(own, 1, mebibyte, all, counts, displacements, mebibyte, MPI_COMM_WORLD);
    for (int rank = 0; rank < ranks; ++rank) pattern_check(all + bytes * kFar * (size_t)rank, bytes, seed_of(rank, 0, 0), "far");
    free(own), free(all);
}

/* One message, one buffer. */
static void large(void) {
    const int count = 2049;
    const size_t bytes = (size_t)count << 20;
    unsigned char* data = allocate(bytes);
    if (my_rank == 0) pattern_fill(data, bytes, 1);
    MPI_Bcast(data, count, mebibyte, 0, MPI_COMM_WORLD);
    pattern_check(data, bytes, 1, "large");
    free(data);
}

int main(int argc, char** argv) {
    const char* mode = argc > 1 ? argv[1] : "check";
    start(&argc, &argv);
    CHECK(ranks <= kMost, "too many ranks");
    request = MPI_REQUEST_NULL;
    const int count = (int)argument(argc, argv, 2, 1);
    MPI_Type_create_resized(MPI_UINT32_T, 0, 8, &gapped);
    MPI_Type_contiguous(1 << 20, MPI_BYTE, &mebibyte);
    MPI_Type_commit(&gapped), MPI_Type_commit(&mebibyte);
    if (strcmp(mode, "check") == 0) check(count);
    if (strcmp(mode, "neighbours") == 0) check_neighbours(count);
    if (strcmp(mode, "persistent") == 0) persistent(count);
    if (strcmp(mode, "offsets") == 0) offsets();
    if (strcmp(mode, "large") == 0) large();
    MPI_Type_free(&gapped), MPI_Type_free(&mebibyte);
    if (my_rank == 0) printf("rounds=%d\n", count);
    MPI_Finalize();
    return 0;
}
