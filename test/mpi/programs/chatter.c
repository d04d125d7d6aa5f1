/* Ping-pong between rank 0 and the last rank for a number of seconds; says when it has begun. */
#include "common.h"

int main(int argc, char** argv) {
    start(&argc, &argv);
    double seconds = (double)argument(argc, argv, 1, 5);
    int bytes = (int)argument(argc, argv, 2, 64), last = ranks - 1, more = 1;
    char* data = calloc(1, (size_t)bytes + 1);
    double begin = MPI_Wtime();
    for (int i = 0; more && (my_rank == 0 || my_rank == last); ++i) {
        int peer = my_rank == 0 ? last : 0;
        if (my_rank == 0) {
            more = MPI_Wtime() - begin < seconds;
            MPI_Send(&more, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
            MPI_Send(data, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
            MPI_Recv(data, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&more, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(data, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(data, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
        }
        if (i == 10 && my_rank == 0) {
            printf("talking\n");
            fflush(stdout);
        }
    }
    if (my_rank == 0) printf("finished=1\n");
    free(data);
    MPI_Finalize();
    return 0;
}
