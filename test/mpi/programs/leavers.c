/* Ranks that are done early and go to MPI_Finalize while others compute or talk.
 * leavers sends MESSAGES BYTES   all but rank 0 send to it, buffered or nonblocking without a request, and leave; rank 0 computes
 *                                for two seconds before it receives anything
 * leavers stays ROUNDS           rank 0 leaves at once; the others exchange messages of all sizes, computing in between */
#include "common.h"

/* Without a system call, and without MPI. */
static void compute_ms(long ms) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void send_and_leave(int messages, size_t bytes) {
    int capacity = messages * ((int)bytes + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(allocate((size_t)capacity), capacity);
    unsigned char* data = allocate(bytes * (size_t)messages);
    for (int i = 0; i < messages; ++i) {
        unsigned char* message = data + bytes * (size_t)i;
        pattern_fill(message, bytes, seed_of(my_rank, (uint64_t)i, 0));
        if (i % 2) {
            MPI_Bsend(message, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        } else {
            MPI_Request request;
            MPI_Isend(message, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
    }
}

static void receive_late(int messages, size_t bytes) {
    unsigned char* message = allocate(bytes);
    compute_ms(2000);
    for (int i = 0; i < messages; ++i) {
        for (int source = 1; source < ranks; ++source) {
            MPI_Recv(message, (int)bytes, MPI_BYTE, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            pattern_check(message, bytes, seed_of(source, (uint64_t)i, 0), "leavers");
        }
    }
    free(message);
}

static void exchange_without_rank_0(int rounds) {
    static unsigned char out[100000], in[100000];
    int others = ranks - 1, me = my_rank - 1, to = (me + 1) % others + 1, from = (me + others - 1) % others + 1;
    for (int i = 0; i < rounds; ++i) {
        int bytes = i % 3 == 0 ? (int)sizeof out : i * 37 % 5000;
        if (i % rounds == rounds / 2 && my_rank == 1) compute_ms(2000);
        pattern_fill(out, (size_t)bytes, seed_of(my_rank, (uint64_t)i, 1));
        MPI_Sendrecv(out, bytes, MPI_BYTE, to, 1, in, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pattern_check(in, (size_t)bytes, seed_of(from, (uint64_t)i, 1), "leavers");
    }
    if (my_rank == 1) printf("rounds=%d\n", rounds);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int count = (int)argument(argc, argv, 2, 50);
    if (argc > 1 && strcmp(argv[1], "stays") == 0) {
        if (my_rank > 0) exchange_without_rank_0(count);
    } else if (my_rank > 0) {
        send_and_leave(count, (size_t)argument(argc, argv, 3, 3000));
    } else {
        receive_late(count, (size_t)argument(argc, argv, 3, 3000));
        printf("received=%d\n", count * (ranks - 1));
    }
    MPI_Finalize();
    return 0;
}
