/* Collective operations with random sizes, verified element by element.
 * collectives ROUNDS LARGEST_ELEMENTS */
#include "common.h"

static int limit;

/* Elements that `from` sends to `to` in this round; every rank computes the same. */
static int count_of(int round, int from, int to) {
    uint64_t state = (uint64_t)round * 1000003 + (uint64_t)from * 1009 + (uint64_t)to;
    next_random(&state);
    uint32_t random = next_random(&state);
    /* Half of them tiny, so that the packet boundaries are met. */
    return (int)(random & 1 ? random / 2 % 20 : random / 2 % (uint32_t)(limit + 1));
}

static int element(int round, int from, int to, int index) {
    return (int)pattern_word(seed_of(from, (uint64_t)round, to), (uint64_t)index);
}

static int* offsets_of(const int* counts, int* total) {
    int* offsets = allocate(sizeof *offsets * (size_t)ranks);
    *total = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        offsets[rank] = *total;
        *total += counts[rank];
    }
    return offsets;
}

static void alltoallv(int round) {
    int *out = allocate(sizeof *out * (size_t)ranks), *in = allocate(sizeof *in * (size_t)ranks);
    int out_total, in_total;
    for (int rank = 0; rank < ranks; ++rank) {
        out[rank] = count_of(round, my_rank, rank);
        in[rank] = count_of(round, rank, my_rank);
    }
    int *out_at = offsets_of(out, &out_total), *in_at = offsets_of(in, &in_total);
    int *sent = allocate(sizeof *sent * (size_t)out_total),
        *received = calloc((size_t)in_total + 1, sizeof *received);
    for (int rank = 0; rank < ranks; ++rank) {
        for (int i = 0; i < out[rank]; ++i) sent[out_at[rank] + i] = element(round, my_rank, rank, i);
    }
    MPI_Alltoallv(sent, out, out_at, MPI_INT, received, in, in_at, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < ranks; ++rank) {
        for (int i = 0; i < in[rank]; ++i) {
            CHECK(received[in_at[rank] + i] == element(round, rank, my_rank, i),
                  "alltoallv: element %d of %d from %d", i, in[rank], rank);
        }
    }
    free(out), free(in), free(out_at), free(in_at), free(sent), free(received);
}

static void alltoall(int round) {
    int count = count_of(round, 0, 0);
    size_t total = (size_t)count * (size_t)ranks;
    int *sent = allocate(sizeof *sent * total), *received = calloc(total + 1, sizeof *received);
    for (int rank = 0; rank < ranks; ++rank) {
        for (int i = 0; i < count; ++i) sent[rank * count + i] = element(round, my_rank, rank, i);
    }
    MPI_Alltoall(sent, count, MPI_INT, received, count, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < ranks; ++rank) {
        for (int i = 0; i < count; ++i) {
            CHECK(received[rank * count + i] == element(round, rank, my_rank, i),
                  "alltoall: element %d from %d", i, rank);
        }
    }
    free(sent), free(received);
}

static void bcast_and_reduce(int round) {
    int root = round % ranks, count = count_of(round, root, root);
    int* data = allocate(sizeof *data * (size_t)count);
    for (int i = 0; i < count; ++i) data[i] = my_rank == root ? element(round, root, 0, i) : 0;
    MPI_Bcast(data, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) CHECK(data[i] == element(round, root, 0, i), "bcast: element %d", i);

    int* sum = calloc((size_t)count + 1, sizeof *sum);
    for (int i = 0; i < count; ++i) data[i] = my_rank * 7 + i;
    int expected = 7 * ranks * (ranks - 1) / 2;
    MPI_Reduce(data, sum, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    for (int i = 0; my_rank == root && i < count; ++i)
        CHECK(sum[i] == expected + i * ranks, "reduce: element %d", i);
    MPI_Allreduce(data, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) CHECK(sum[i] == expected + i * ranks, "allreduce: element %d", i);
    MPI_Scan(data, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) {
        CHECK(sum[i] == 7 * my_rank * (my_rank + 1) / 2 + i * (my_rank + 1), "scan: element %d", i);
    }
    free(data), free(sum);
}

static void gather_and_scatter(int round) {
    int root = (round + 1) % ranks, count = count_of(round, root, 1) % 2000;
    size_t total = (size_t)count * (size_t)ranks;
    int *all = calloc(total + 1, sizeof *all), *mine = calloc((size_t)count + 1, sizeof *mine);
    for (int i = 0; i < count; ++i) mine[i] = element(round, my_rank, 0, i);
    MPI_Allgather(mine, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);
    for (size_t i = 0; i < total; ++i) {
        int rank = (int)(i / (size_t)count), index = (int)(i % (size_t)count);
        CHECK(all[i] == element(round, rank, 0, index), "allgather: element %d of rank %d", index, rank);
    }
    memset(mine, 0, sizeof *mine * (size_t)count);
    MPI_Scatter(all, count, MPI_INT, mine, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) CHECK(mine[i] == element(round, my_rank, 0, i), "scatter: element %d", i);
    memset(all, 0, sizeof *all * total);
    MPI_Gather(mine, count, MPI_INT, all, count, MPI_INT, root, MPI_COMM_WORLD);
    for (size_t i = 0; my_rank == root && i < total; ++i) {
        int rank = (int)(i / (size_t)count), index = (int)(i % (size_t)count);
        CHECK(all[i] == element(round, rank, 0, index), "gather: element %d of rank %d", index, rank);
    }
    free(all), free(mine);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int rounds = (int)argument(argc, argv, 1, 5);
    limit = (int)argument(argc, argv, 2, 5000);
    for (int round = 0; round < rounds; ++round) {
        alltoallv(round);
        alltoall(round);
        bcast_and_reduce(round);
        gather_and_scatter(round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (my_rank == 0) printf("rounds=%d\n", rounds);
    MPI_Finalize();
    return 0;
}
