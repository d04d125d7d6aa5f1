/* All ranks send to rank 0, which sleeps first.
 * incast MESSAGES BYTES SLEEP_MS blocking|nonblocking */
#include "common.h"

enum { kTag = 7 };

static void send_all(int messages, size_t bytes, bool blocking) {
    unsigned char* data = allocate(bytes * (size_t)messages);
    MPI_Request* requests = allocate(sizeof(MPI_Request) * (size_t)messages);
    for (int i = 0; i < messages; ++i) {
        unsigned char* message = data + bytes * (size_t)i;
        pattern_fill(message, bytes, seed_of(my_rank, (uint64_t)i, 0));
        if (blocking) {
            MPI_Send(message, (int)bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
        } else {
            MPI_Isend(message, (int)bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &requests[i]);
        }
    }
    if (!blocking) MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(data);
}

static void receive_all(int messages, size_t bytes, long pause_ms) {
    unsigned char* message = allocate(bytes);
    int* next = calloc((size_t)ranks, sizeof *next);
    int total = messages * (ranks - 1);
    sleep_ms(pause_ms);
    for (int i = 0; i < total; ++i) {
        MPI_Status status;
        memset(message, 0, bytes);
        MPI_Recv(message, (int)bytes, MPI_BYTE, MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &status);
        CHECK(bytes_received(&status) == (int)bytes, "%d bytes instead of %zu", bytes_received(&status),
              bytes);
        int source = status.MPI_SOURCE;
        /* The pattern depends on the sequence number, so this checks the order too. */
        pattern_check(message, bytes, seed_of(source, (uint64_t)next[source]++, 0), "incast");
    }
    for (int source = 1; source < ranks; ++source) {
        CHECK(next[source] == messages, "%d messages from rank %d", next[source], source);
    }
    printf("received=%d senders=%d\n", total, ranks - 1);
    free(next);
    free(message);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int messages = (int)argument(argc, argv, 1, 10);
    size_t bytes = (size_t)argument(argc, argv, 2, 8);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        receive_all(messages, bytes, argument(argc, argv, 3, 0));
    } else {
        send_all(messages, bytes, argc > 4 && strcmp(argv[4], "blocking") == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
