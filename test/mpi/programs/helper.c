/* Large requests while every rank computes. Arguments: bytes of a block; 1: all data come without a call of
 * MPI; what rank 1 does meanwhile: "fork" a process that ends at once, "abort" the job, "exit", or be killed
 * ("kill"). */
#include <signal.h>
#include <sys/wait.h>

#include "common.h"

enum { SECONDS = 40 };

static const char* meanwhile;
static size_t bytes;
static unsigned char *in, *out;

static void disturb(void) {
    if (my_rank != 1 || meanwhile == NULL) return;
    if (strcmp(meanwhile, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(meanwhile, "exit") == 0) exit(8);
    if (strcmp(meanwhile, "kill") == 0) raise(SIGKILL);
    if (strcmp(meanwhile, "fork") != 0) return;
    int status = -1;
    const pid_t child = fork();
    if (child == 0) exit(9);
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "no process");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9, "it ended with %x", status);
}

static bool broadcast_is_there(void) {
    return pattern_mismatch(out, bytes, seed_of(0, 0, 1)) == bytes;
}
static bool blocks_are_there(int kind, bool of_each) {
    for (int rank = 0; rank < ranks; ++rank)
        if (pattern_mismatch(out + rank * bytes, bytes, seed_of(rank, of_each ? my_rank : 0, kind)) != bytes)
            return false;
    return true;
}
static bool alltoall_is_there(void) {
    return blocks_are_there(2, true);
}
static bool allgather_is_there(void) {
    return blocks_are_there(3, false);
}
static bool sums_are_there(void) {
    const uint64_t* sums = (const uint64_t*)out;
    for (size_t i = 0; i < bytes / 8; ++i)
        if (sums[i] != (uint64_t)ranks * i + (uint64_t)(ranks * (ranks - 1) / 2)) return false;
    return true;
}

/* Calls nothing of MPI. */
static void compute(bool (*there)(void), const char* what) {
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (!there()) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        CHECK(now.tv_sec - began.tv_sec < SECONDS, "%s: it does not come while the ranks compute", what);
    }
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    bytes = (size_t)argument(argc, argv, 1, 4 << 20);
    const bool comes = argument(argc, argv, 2, 1) == 1;
    meanwhile = argc > 3 ? argv[3] : NULL;
    const int count = (int)bytes;
    in = allocate(ranks * bytes);
    out = allocate(ranks * bytes);
    bool (*const there[])(void) = {broadcast_is_there, alltoall_is_there, allgather_is_there, sums_are_there};
    static const char* const names[] = {"MPI_Ibcast", "MPI_Ialltoall", "MPI_Iallgather", "MPI_Iallreduce"};
    for (int round = 0; round < 12; ++round) {
        const int kind = round % 4;
        MPI_Request request;
        memset(out, 0, ranks * bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        if (kind == 0) {
            if (my_rank == 0) pattern_fill(out, bytes, seed_of(0, 0, 1));
            MPI_Ibcast(out, count, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        } else if (kind == 1) {
            for (int to = 0; to < ranks; ++to) pattern_fill(in + to * bytes, bytes, seed_of(my_rank, to, 2));
            MPI_Ialltoall(in, count, MPI_BYTE, out, count, MPI_BYTE, MPI_COMM_WORLD, &request);
        } else if (kind == 2) {
            pattern_fill(in, bytes, seed_of(my_rank, 0, 3));
            MPI_Iallgather(in, count, MPI_BYTE, out, count, MPI_BYTE, MPI_COMM_WORLD, &request);
        } else {
            for (size_t i = 0; i < bytes / 8; ++i) ((uint64_t*)in)[i] = i + (uint64_t)my_rank;
            MPI_Iallreduce(in, out, count / 8, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
        }
        disturb();
        if (comes) compute(there[kind], names[kind]);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(there[kind](), "%s: wrong data", names[kind]);
    }
    if (my_rank == 0) printf("rounds=12\n");
    MPI_Finalize();
    return 0;
}
