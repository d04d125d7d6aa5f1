/* The other ranks send to rank 0, which calls MPI all the time but receives nothing until they have finished or its own
 * memory has not grown for a while; then it receives all.
 * unmatched MESSAGES BYTES QUIET_MS blocking|nonblocking [series] [window=SENDS]
 * A matched message goes both ways in between: it must get through. `series`: a line "ms KiB" whenever the resident
 * memory of rank 0 has changed by 1 %. `window`: non-blocking sends under way at each sender. */
#include "common.h"

enum { FLOOD = 1, FINISHED = 2, MATCHED = 3 };

/* The value of NAME=VALUE among the arguments. */
static int named(int argc, char** argv, const char* name, int fallback) {
    size_t length = strlen(name);
    for (int i = 1; i < argc; ++i) {
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') return atoi(argv[i] + length + 1);
    }
    return fallback;
}

static bool given(int argc, char** argv, const char* word) {
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], word) == 0) return true;
    }
    return false;
}

static void flood(int messages, int bytes, bool blocking, int window) {
    unsigned char* data = allocate((size_t)bytes * (size_t)window);
    MPI_Request* requests = (MPI_Request*)allocate(sizeof(MPI_Request) * (size_t)window);
    for (int i = 0; i < window; ++i) requests[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < messages; ++i) {
        int at = i % window;
        unsigned char* message = data + (size_t)at * (size_t)bytes;
        MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
        pattern_fill(message, (size_t)bytes, seed_of(my_rank, (uint64_t)i, 0));
        if (blocking) {
            MPI_Send(message, bytes, MPI_BYTE, 0, FLOOD, MPI_COMM_WORLD);
        } else {
            MPI_Isend(message, bytes, MPI_BYTE, 0, FLOOD, MPI_COMM_WORLD, &requests[at]);
        }
        /* While it is still possible: later this rank may be waiting for its messages to be received. */
        if (i == 10) {
            int token = my_rank;
            MPI_Sendrecv_replace(&token, 1, MPI_INT, 0, MATCHED, 0, MATCHED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(token == -my_rank, "the answer is %d", token);
        }
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    int finished = 1;
    MPI_Send(&finished, 1, MPI_INT, 0, FINISHED, MPI_COMM_WORLD);
    free(requests);
    free(data);
}

/* Returns the growth of the memory in KiB. */
static long watch(int quiet_ms, bool series) {
    long first = resident_kib(), most = first, printed = 0;
    double begin = MPI_Wtime(), grown = begin;
    int finished = 0, all = 0;
    for (int answered = 0; answered < ranks - 1; ++answered) {
        int token;
        MPI_Status status;
        MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, MATCHED, MPI_COMM_WORLD, &status);
        token = -token;
        MPI_Send(&token, 1, MPI_INT, status.MPI_SOURCE, MATCHED, MPI_COMM_WORLD);
    }
    grown = MPI_Wtime();
    while (all < ranks - 1 && MPI_Wtime() - grown < quiet_ms / 1000.0) {
        for (int i = 0; i < 200; ++i) {
            MPI_Iprobe(MPI_ANY_SOURCE, FINISHED, MPI_COMM_WORLD, &finished, MPI_STATUS_IGNORE);
            if (!finished) continue;
            MPI_Recv(&finished, 1, MPI_INT, MPI_ANY_SOURCE, FINISHED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            ++all;
        }
        long now = resident_kib();
        if (now > most) most = now, grown = MPI_Wtime();
        if (series && labs(now - printed) > printed / 100) {
            printf("%.0f %ld\n", (MPI_Wtime() - begin) * 1000, now);
            printed = now;
        }
    }
    if (series) printf("%.0f %ld\n", (MPI_Wtime() - begin) * 1000, resident_kib());
    fflush(stdout);
    return most - first;
}

static void receive_all(int messages, int bytes) {
    unsigned char* data = allocate((size_t)bytes);
    for (int i = 0; i < messages; ++i) {
        for (int source = 1; source < ranks; ++source) {
            MPI_Recv(data, bytes, MPI_BYTE, source, FLOOD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            pattern_check(data, (size_t)bytes, seed_of(source, (uint64_t)i, 0), "unmatched");
        }
    }
    free(data);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int messages = (int)argument(argc, argv, 1, 1000), bytes = (int)argument(argc, argv, 2, 1024);
    int quiet_ms = (int)argument(argc, argv, 3, 500);
    bool blocking = argc > 4 && strcmp(argv[4], "blocking") == 0;
    /* By default few: a request for each of a million messages is the program's own memory. */
    int window = named(argc, argv, "window", 1000);
    for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        long growth = watch(quiet_ms, given(argc, argv, "series")), before = resident_kib();
        receive_all(messages, bytes);
        long later = resident_kib() - before;
        printf("received=%d growth_kib=%ld\n", messages * (ranks - 1), later > 0 ? growth + later : growth);
    } else {
        flood(messages, bytes, blocking, window);
    }
    MPI_Finalize();
    return 0;
}
