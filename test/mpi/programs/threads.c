/* Several threads of each rank send to and receive from the same threads of all other ranks.
 * threads THREADS MESSAGES BYTES */
#include <pthread.h>

#include "common.h"

static int messages, bytes;

/* Sends to all and receives from all; the tag is the thread, so that order is checked for each thread. */
static void* exchange(void* argument_) {
    int thread = *(int*)argument_;
    int peers = ranks - 1;
    unsigned char *sent = allocate((size_t)bytes * (size_t)peers),
                  *received = allocate((size_t)bytes * (size_t)peers);
    MPI_Request* requests = allocate(sizeof(MPI_Request) * (size_t)peers * 2);
    for (int i = 0; i < messages; ++i) {
        memset(received, 0, (size_t)bytes * (size_t)peers);
        for (int peer = 0; peer < peers; ++peer) {
            int rank = (my_rank + 1 + peer) % ranks;
            unsigned char* out = sent + (size_t)peer * (size_t)bytes;
            pattern_fill(out, (size_t)bytes, seed_of(my_rank, (uint64_t)i, thread));
            MPI_Irecv(received + (size_t)peer * (size_t)bytes, bytes, MPI_BYTE, rank, thread, MPI_COMM_WORLD,
                      &requests[peer]);
            MPI_Isend(out, bytes, MPI_BYTE, rank, thread, MPI_COMM_WORLD, &requests[peers + peer]);
        }
        MPI_Waitall(peers * 2, requests, MPI_STATUSES_IGNORE);
        for (int peer = 0; peer < peers; ++peer) {
            int rank = (my_rank + 1 + peer) % ranks;
            pattern_check(received + (size_t)peer * (size_t)bytes, (size_t)bytes,
                          seed_of(rank, (uint64_t)i, thread), "threads");
        }
    }
    free(sent), free(received), free(requests);
    return NULL;
}

int main(int argc, char** argv) {
    start_threads(&argc, &argv);
    int count = (int)argument(argc, argv, 1, 4);
    messages = (int)argument(argc, argv, 2, 100);
    bytes = (int)argument(argc, argv, 3, 8);
    pthread_t* threads = allocate(sizeof *threads * (size_t)count);
    int* numbers = allocate(sizeof *numbers * (size_t)count);
    for (int i = 0; i < count; ++i) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, exchange, &numbers[i]) == 0, "no thread");
    }
    for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
    free(threads), free(numbers);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) printf("received=%d\n", count * messages * (ranks - 1));
    MPI_Finalize();
    return 0;
}
