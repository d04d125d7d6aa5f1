/* Ranks 1.. flood rank 0, which stays outside MPI until a file exists, and watch their own memory.
 * flood FILE MESSAGES BYTES blocking|nonblocking
 * They begin when rank 0 is outside MPI, which FILE.asleep tells: out of the last barrier they may come long before it.
 * Rank 0 prints "asleep pid=P", then at the end the largest growth of a sender's memory in KiB while it
 * slept. */
#include "common.h"

static void tell(const char* path) {
    FILE* file = fopen(path, "w");
    CHECK(file != NULL && fclose(file) == 0, "cannot make %s", path);
}

/* With progress: rank 0 may still wait for a credit of this process. */
static void wait_for(const char* path) {
    while (access(path, F_OK) != 0) {
        int found = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        sleep_ms(1);
    }
}

static long flood(int messages, int bytes, bool blocking, const char* wake) {
    unsigned char* data = allocate((size_t)bytes);
    MPI_Request* requests = calloc((size_t)messages, sizeof(MPI_Request));
    for (int i = 0; i < messages; ++i) requests[i] = MPI_REQUEST_NULL;
    pattern_fill(data, (size_t)bytes, seed_of(my_rank, 0, 0));
    long before = resident_kib(), after = before;
    for (int i = 0; i < messages; ++i) {
        if (blocking) {
            MPI_Send(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        } else {
            MPI_Isend(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
        }
        if (access(wake, F_OK) != 0 && resident_kib() > after) after = resident_kib();
    }
    printf("sent pid=%d\n", (int)getpid());
    fflush(stdout);
    MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    free(data), free(requests);
    return after - before;
}

static void drain(int messages, int bytes, const char* wake, const char* asleep) {
    unsigned char* data = allocate((size_t)bytes);
    tell(asleep);
    printf("asleep pid=%d\n", (int)getpid());
    fflush(stdout);
    while (access(wake, F_OK) != 0) sleep_ms(10);
    for (int i = 0; i < messages * (ranks - 1); ++i) {
        MPI_Status status;
        MPI_Recv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        pattern_check(data, (size_t)bytes, seed_of(status.MPI_SOURCE, 0, 0), "flood");
    }
    free(data);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int messages = (int)argument(argc, argv, 2, 1000), bytes = (int)argument(argc, argv, 3, 64);
    bool blocking = argc > 4 && strcmp(argv[4], "blocking") == 0;
    long growth = 0, largest = 0;
    /* Both ways once, so that lazily made structures exist before memory is measured. */
    for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
    char asleep[4096];
    snprintf(asleep, sizeof asleep, "%s.asleep", argv[1]);
    if (my_rank == 0) {
        drain(messages, bytes, argv[1], asleep);
    } else {
        wait_for(asleep);
        growth = flood(messages, bytes, blocking, argv[1]);
    }
    MPI_Reduce(&growth, &largest, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (my_rank == 0) printf("received=%d growth_kib=%ld\n", messages * (ranks - 1), largest);
    MPI_Finalize();
    return 0;
}
