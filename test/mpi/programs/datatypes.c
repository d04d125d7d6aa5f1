/* Messages of the given sizes between neighbours, with every combination of a contiguous, a vector and a
 * struct type. datatypes BYTES... */
#include "common.h"

enum { kKinds = 3, kTag = 5 };

/* One block of two bytes in every five, or half a struct: an element of 3 + 4 bytes with holes. */
enum {
    kVectorBlock = 2,
    kVectorStride = 5,
    kStructFirst = 3,
    kStructSecond = 4,
    kStructSecondAt = 8,
    kStructExtent = 16
};

struct layout {
    MPI_Datatype type;
    size_t extent; /* bytes in memory */
    int kind;
};

/* A type of exactly `bytes` bytes: whole elements and a contiguous rest at the end. */
static struct layout make_layout(int kind, size_t bytes) {
    struct layout layout = {MPI_DATATYPE_NULL, bytes, kind};
    MPI_Datatype element, body, parts[2];
    size_t unit = 1, step = 1;
    if (kind == 0) {
        MPI_Type_dup(MPI_BYTE, &element);
    } else if (kind == 1) {
        unit = kVectorBlock;
        step = kVectorStride;
        MPI_Datatype block;
        MPI_Type_contiguous(kVectorBlock, MPI_BYTE, &block);
        MPI_Type_create_resized(block, 0, kVectorStride, &element);
        MPI_Type_free(&block);
    } else {
        unit = kStructFirst + kStructSecond;
        step = kStructExtent;
        int lengths[] = {kStructFirst, kStructSecond};
        MPI_Aint offsets[] = {0, kStructSecondAt};
        MPI_Datatype types[] = {MPI_BYTE, MPI_BYTE}, raw;
        MPI_Type_create_struct(2, lengths, offsets, types, &raw);
        MPI_Type_create_resized(raw, 0, kStructExtent, &element);
        MPI_Type_free(&raw);
    }
    size_t count = bytes / unit, rest = bytes % unit;
    MPI_Type_contiguous((int)count, element, &body);
    int lengths[] = {1, (int)rest};
    MPI_Aint offsets[] = {0, (MPI_Aint)(count * step)};
    parts[0] = body;
    parts[1] = MPI_BYTE;
    MPI_Type_create_struct(2, lengths, offsets, parts, &layout.type);
    MPI_Type_commit(&layout.type);
    MPI_Type_free(&element);
    MPI_Type_free(&body);
    layout.extent = count * step + rest;
    return layout;
}

static size_t place(const struct layout* layout, size_t bytes, size_t index) {
    if (layout->kind == 0) return index;
    if (layout->kind == 1) {
        size_t count = bytes / kVectorBlock;
        return index < count * kVectorBlock ? index / kVectorBlock * kVectorStride + index % kVectorBlock
                                            : count * kVectorStride + (index - count * kVectorBlock);
    }
    size_t unit = kStructFirst + kStructSecond, count = bytes / unit, within = index % unit;
    if (index >= count * unit) return count * kStructExtent + (index - count * unit);
    return index / unit * kStructExtent +
           (within < kStructFirst ? within : kStructSecondAt + within - kStructFirst);
}

static void exchange(const struct layout* out, const struct layout* in, size_t bytes, int round) {
    static const unsigned char kHole = 0xa5;
    int to = (my_rank + 1) % ranks, from = (my_rank + ranks - 1) % ranks;
    unsigned char* flat = allocate(bytes);
    unsigned char* sent = allocate(out->extent);
    unsigned char* received = allocate(in->extent);
    pattern_fill(flat, bytes, seed_of(my_rank, (uint64_t)round, 0));
    memset(sent, kHole, out->extent);
    memset(received, kHole, in->extent);
    for (size_t i = 0; i < bytes; ++i) sent[place(out, bytes, i)] = flat[i];

    MPI_Status status;
    MPI_Sendrecv(sent, 1, out->type, to, kTag, received, 1, in->type, from, kTag, MPI_COMM_WORLD, &status);

    CHECK((size_t)bytes_received(&status) == bytes, "%d bytes instead of %zu", bytes_received(&status),
          bytes);
    for (size_t i = 0; i < bytes; ++i) {
        size_t at = place(in, bytes, i);
        flat[i] = received[at];
        received[at] = kHole;
    }
    pattern_check(flat, bytes, seed_of(from, (uint64_t)round, 0), "datatypes");
    for (size_t i = 0; i < in->extent; ++i)
        CHECK(received[i] == kHole, "hole at byte %zu was overwritten", i);
    free(flat);
    free(sent);
    free(received);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int round = 0;
    for (int i = 1; i < argc; ++i) {
        size_t bytes = (size_t)atol(argv[i]);
        struct layout layouts[kKinds];
        for (int kind = 0; kind < kKinds; ++kind) layouts[kind] = make_layout(kind, bytes);
        for (int out = 0; out < kKinds; ++out) {
            for (int in = 0; in < kKinds; ++in) exchange(&layouts[out], &layouts[in], bytes, round++);
        }
        for (int kind = 0; kind < kKinds; ++kind) MPI_Type_free(&layouts[kind].type);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) printf("exchanges=%d\n", round);
    MPI_Finalize();
    return 0;
}
