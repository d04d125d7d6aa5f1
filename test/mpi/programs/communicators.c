/* Communicators come and go while messages travel on all of them.
 * communicators ROUNDS */
#include "common.h"

/* A ring on any communicator, with the same tag everywhere: only the communicator tells the messages apart.
 */
static void ring(MPI_Comm comm, uint64_t sequence, int bytes) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char *sent = allocate((size_t)bytes), *received = calloc(1, (size_t)bytes + 1);
    int from = (rank + size - 1) % size;
    pattern_fill(sent, (size_t)bytes, seed_of(rank, sequence, size));
    MPI_Sendrecv(sent, bytes, MPI_BYTE, (rank + 1) % size, 1, received, bytes, MPI_BYTE, from, 1, comm,
                 MPI_STATUS_IGNORE);
    pattern_check(received, (size_t)bytes, seed_of(from, sequence, size), "ring");
    free(sent), free(received);
}

/* A message on the parent that is received only after the child communicator was used. */
static void overtake(MPI_Comm parent, MPI_Comm child, uint64_t sequence) {
    uint64_t sent = seed_of(my_rank, sequence, 9), received = 0;
    int from = (my_rank + ranks - 1) % ranks;
    MPI_Request request;
    MPI_Isend(&sent, 8, MPI_BYTE, (my_rank + 1) % ranks, 1, parent, &request);
    ring(child, sequence, 333);
    MPI_Recv(&received, 8, MPI_BYTE, from, 1, parent, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(received == seed_of(from, sequence, 9), "a message crossed communicators");
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    uint64_t rounds = (uint64_t)argument(argc, argv, 1, 20);
    for (uint64_t round = 0; round < rounds; ++round) {
        MPI_Comm copy, half, reversed, bridge, merged;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Comm_split(copy, my_rank % 2, my_rank, &half);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -my_rank, &reversed);
        ring(copy, round, 100);
        ring(half, round, 20000);
        ring(reversed, round, 8);
        overtake(MPI_COMM_WORLD, copy, round);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, my_rank % 2 ? 0 : 1, 77, &bridge);
        MPI_Intercomm_merge(bridge, my_rank % 2, &merged);
        ring(merged, round, 6000);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&bridge);
        MPI_Comm_free(&reversed);
        MPI_Comm_free(&half);
        MPI_Comm_free(&copy);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) printf("rounds=%d\n", (int)rounds);
    MPI_Finalize();
    return 0;
}
