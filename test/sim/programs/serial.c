/* Traffic whose order is fixed, as velo-sim's patterns of the same names have it.
 * serial walk ROUNDS BYTES      one message at a time: whoever has received one sends the next
 * serial alltoall ROUNDS BYTES  each rank sends to all others in turn, then receives from all */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, bytes;
static char* buffer;

static void send_to(int to) { MPI_Send(buffer, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD); }

static void receive_from(int from) {
    memset(buffer, 0, (size_t)bytes);
    MPI_Recv(buffer, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (bytes > 0 && (buffer[0] != 7 || buffer[bytes - 1] != 7)) MPI_Abort(MPI_COMM_WORLD, 3);
}

static void walk(void) {
    unsigned hops = (unsigned)ranks * (unsigned)ranks;
    int at = 0;
    for (unsigned hop = 0; hop < hops; ++hop) {
        int next = (int)(((unsigned)at + 1 + (hop * 2654435761u >> 16) % (unsigned)(ranks - 1)) % (unsigned)ranks);
        if (hop + 1 == hops) {
            if (at == 0) return;
            next = 0;
        }
        if (rank == at) send_to(next);
        if (rank == next) receive_from(at);
        at = next;
    }
}

static void alltoall(void) {
    for (int i = 1; i < ranks; ++i) send_to((rank + i) % ranks);
    for (int i = 1; i < ranks; ++i) receive_from((rank + ranks - i) % ranks);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) {
        fprintf(stderr, "usage: serial walk|alltoall ROUNDS BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bytes = atoi(argv[3]);
    buffer = malloc((size_t)bytes + 1);
    memset(buffer, 7, (size_t)bytes + 1);
    for (int round = atoi(argv[2]); round > 0; --round)
        if (strcmp(argv[1], "walk") == 0)
            walk();
        else
            alltoall();
    MPI_Finalize();
    free(buffer);
    return 0;
}
