/* Every rank exchanges messages of many sizes with every other rank, all at once.
 * exchange ROUNDS LARGEST_BYTES */
#include "common.h"

static const int kSizes[] = {0, 1, 8, 55, 56, 57, 112, 113, 500, 2000, 4095, 4096, 4097, 9000, 40000, 300000};
enum { kCount = sizeof kSizes / sizeof *kSizes };

static int usable(long largest) {
    int count = 0;
    while (count < kCount && kSizes[count] <= largest) ++count;
    return count;
}

static void exchange(int round, int sizes) {
    int peers = ranks - 1, total = peers * sizes;
    MPI_Request* requests = allocate(sizeof(MPI_Request) * (size_t)total * 2);
    unsigned char** buffers = allocate(sizeof *buffers * (size_t)total * 2);
    for (int peer = 0; peer < peers; ++peer) {
        int rank = (my_rank + 1 + peer) % ranks;
        for (int size = 0; size < sizes; ++size) {
            int i = peer * sizes + size;
            size_t bytes = (size_t)kSizes[size];
            buffers[i] = calloc(1, bytes + 1);
            MPI_Irecv(buffers[i], (int)bytes, MPI_BYTE, rank, 3, MPI_COMM_WORLD, &requests[i]);
            buffers[total + i] = allocate(bytes);
            pattern_fill(buffers[total + i], bytes, seed_of(my_rank, (uint64_t)(round * sizes + size), rank));
            MPI_Isend(buffers[total + i], (int)bytes, MPI_BYTE, rank, 3, MPI_COMM_WORLD,
                      &requests[total + i]);
        }
    }
    MPI_Waitall(total * 2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < total; ++i) {
        int rank = (my_rank + 1 + i / sizes) % ranks, size = i % sizes;
        pattern_check(buffers[i], (size_t)kSizes[size],
                      seed_of(rank, (uint64_t)(round * sizes + size), my_rank), "exchange");
    }
    for (int i = 0; i < total * 2; ++i) free(buffers[i]);
    free(buffers);
    free(requests);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int rounds = (int)argument(argc, argv, 1, 10);
    int sizes = usable(argument(argc, argv, 2, 300000));
    for (int round = 0; round < rounds; ++round) exchange(round, sizes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) printf("rounds=%d received=%d\n", rounds, rounds * sizes * (ranks - 1));
    MPI_Finalize();
    return 0;
}
