/* All ranks send to rank 0 as fast as they can, for some seconds, and until some messages of each have come. Rank 0 tells what came
 * from each by then.
 * fair SECONDS BYTES [LEAST [YIELD]]: rank 0 yields its processor after each YIELD messages. */
#include <sched.h>

#include "common.h"

enum { kData = 1, kLast = 2, kStop = 3 };

/* Messages that arrive until each sender has sent its last; those are counted that come before the senders are told to stop. */
static void receive_all(double seconds, int bytes, long least, long yield, long* counted) {
    char* data = allocate((size_t)bytes);
    double begin = MPI_Wtime();
    int stopped = 0, served = least > 0 ? 0 : ranks - 1;
    long received = 0;
    for (int left = ranks - 1; left > 0;) {
        MPI_Status status;
        MPI_Recv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (yield > 0 && ++received % yield == 0) sched_yield();
        if (status.MPI_TAG == kLast) {
            --left;
        } else if (!stopped) {
            CHECK(bytes_received(&status) == bytes, "%d bytes instead of %d", bytes_received(&status), bytes);
            served += ++counted[status.MPI_SOURCE] == least;
            stopped = served == ranks - 1 && MPI_Wtime() - begin > seconds;
            for (int rank = 1; stopped && rank < ranks; ++rank)
                MPI_Send(NULL, 0, MPI_BYTE, rank, kStop, MPI_COMM_WORLD);
        }
    }
    free(data);
}

static void send_all(int bytes) {
    char* data = allocate((size_t)bytes);
    memset(data, my_rank, (size_t)bytes);
    int stop = 0;
    while (!stop) {
        MPI_Send(data, bytes, MPI_BYTE, 0, kData, MPI_COMM_WORLD);
        MPI_Iprobe(0, kStop, MPI_COMM_WORLD, &stop, MPI_STATUS_IGNORE);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, 0, kStop, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 0, kLast, MPI_COMM_WORLD);
    free(data);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    double seconds = (double)argument(argc, argv, 1, 2);
    int bytes = (int)argument(argc, argv, 2, 2048);
    long* counted = calloc((size_t)ranks, sizeof *counted);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        receive_all(seconds, bytes, argument(argc, argv, 3, 0), argument(argc, argv, 4, 0), counted);
        for (int rank = 1; rank < ranks; ++rank) printf("messages_of_%d=%ld\n", rank, counted[rank]);
    } else {
        send_all(bytes);
    }
    free(counted);
    MPI_Finalize();
    return 0;
}
