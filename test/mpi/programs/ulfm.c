/* Open MPI's fault tolerance (mpirun --with-ft ulfm): the last rank kills itself, and the others go on without it.
 *
 *   ulfm SECONDS [cut]
 *                   cut: it lives on, and says "cut" when it is time to cut its link, for which each step has 40 s; else each step has 10 s: receives from it, sends to it, MPI_ANY_SOURCE, a collective operation, and what
 *                   waits for a rank that lives on a communicator that another one revokes; then shrink, agree, Allreduce and
 *                   messages on the smaller communicator for so long
 *
 * Prints how many survivors have seen each error that they should. */
#include <signal.h>

#include "common.h"

#include <mpi-ext.h>

#ifndef OMPI_HAVE_MPI_EXT_FTMPI
#error "this Open MPI has no fault tolerance"
#endif

static double patience = 10;

static int class_of(int error) {
    int class = MPI_SUCCESS;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &class);
    return class;
}

/* What the request has come to; -1: it has not ended in time. */
static int class_in_time(MPI_Request* request) {
    int done = 0, error = MPI_SUCCESS;
    for (const double end = MPI_Wtime() + patience; !done && error == MPI_SUCCESS && MPI_Wtime() < end;)
        error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    return done || error != MPI_SUCCESS ? class_of(error) : -1;
}

enum { kReceive, kEarlySend, kAnnounced, kSend, kLongSend, kAny, kBarrier, kRevoked, kSteps };
static const char* const names[] = {"receive", "early_send", "announced", "send", "long_send", "any", "barrier", "revoked"};
enum { kLong = 1 << 20 };
static char long_data[kLong];

/* How a send to it fails in the end. */
static int class_of_sends(int to, int bytes) {
    int class = MPI_SUCCESS;
    for (const double end = MPI_Wtime() + patience; class == MPI_SUCCESS && MPI_Wtime() < end; usleep(1000)) {
        MPI_Request request;
        int error = MPI_Isend(long_data, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD, &request);
        class = error != MPI_SUCCESS ? class_of(error) : class_in_time(&request);
    }
    return class;
}

static bool has_failed(int class) { return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING; }

int main(int argc, char** argv) {
    start(&argc, &argv);
    const bool is_cut = argc > 2 && strcmp(argv[2], "cut") == 0;
    if (is_cut) patience = 40;
    const int victim = ranks - 1;
    int value = 0, classes[kSteps], seen[kSteps], total[kSteps];
    MPI_Comm own, smaller;
    MPI_Request receive, early_send, announced, any, waits;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    if (my_rank != victim) MPI_Irecv(&value, 1, MPI_INT, victim, 7, MPI_COMM_WORLD, &receive);
    if (my_rank != victim) MPI_Isend(long_data, kLong, MPI_BYTE, victim, 6, MPI_COMM_WORLD, &early_send);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == victim) {
        for (int to = 0; to < victim; ++to) MPI_Isend(long_data, kLong, MPI_BYTE, to, 5, MPI_COMM_WORLD, &announced);
        usleep(200000);
        if (!is_cut) kill(getpid(), SIGKILL);
        printf("cut\n");
        fflush(stdout);
        /* Whatever it finds, the others are where it cannot reach them. */
        MPI_Irecv(&value, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, &receive);
        patience = 100;
        class_in_time(&receive);
        _exit(0);
    }
    classes[kReceive] = class_in_time(&receive);
    classes[kEarlySend] = class_in_time(&early_send);
    MPI_Irecv(long_data, kLong, MPI_BYTE, victim, 5, MPI_COMM_WORLD, &announced);
    classes[kAnnounced] = class_in_time(&announced);
    classes[kSend] = class_of_sends(victim, 2000);
    classes[kLongSend] = class_of_sends(victim, kLong);
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &any);
    classes[kAny] = class_in_time(&any);
    classes[kBarrier] = class_of(MPI_Barrier(MPI_COMM_WORLD));
    /* Each but 0 waits for the one before, which sends nothing. */
    MPI_Irecv(&value, 1, MPI_INT, (my_rank + victim - 1) % victim, 3, own, &waits);
    if (my_rank == 0) MPIX_Comm_revoke(own);
    classes[kRevoked] = class_in_time(&waits);
    for (int i = 0; i < kSteps; ++i) seen[i] = i == kRevoked ? classes[i] == MPIX_ERR_REVOKED : has_failed(classes[i]);
    if (getenv("ULFM_VERBOSE") != NULL)
        for (int i = 0; i < kSteps; ++i) fprintf(stderr, "rank %d: %s is of class %d\n", my_rank, names[i], classes[i]);
    CHECK(MPIX_Comm_shrink(MPI_COMM_WORLD, &smaller) == MPI_SUCCESS, "shrink");
    int size, rank, flag = 1 + my_rank * 2;
    MPI_Comm_size(smaller, &size);
    MPI_Comm_rank(smaller, &rank);
    CHECK(size == ranks - 1, "%d go on", size);
    MPIX_Comm_agree(smaller, &flag);
    CHECK(flag == 1, "they agree on %d", flag);
    static double data[100000], sum[100000];
    const double end = MPI_Wtime() + (double)argument(argc, argv, 1, 0);
    for (int round = 0, more = 1; more; ++round) {
        const int count = round % 2 ? 100000 : 3, to = (rank + 1) % size, from = (rank + size - 1) % size;
        for (int i = 0; i < count; ++i) data[i] = rank + i + round;
        CHECK(MPI_Allreduce(data, sum, count, MPI_DOUBLE, MPI_SUM, smaller) == MPI_SUCCESS, "Allreduce");
        for (int i = 0; i < count; ++i) CHECK(sum[i] == size * (i + round) + size * (size - 1) / 2, "sum %d", i);
        CHECK(MPI_Sendrecv(data, count, MPI_DOUBLE, to, round, sum, count, MPI_DOUBLE, from, round, smaller, MPI_STATUS_IGNORE) == MPI_SUCCESS,
              "messages go on");
        for (int i = 0; i < count; ++i) CHECK(sum[i] == from + i + round, "word %d", i);
        more = rank == 0 && (round < 20 || MPI_Wtime() < end);
        MPI_Bcast(&more, 1, MPI_INT, 0, smaller);
    }
    MPI_Reduce(seen, total, kSteps, MPI_INT, MPI_SUM, 0, smaller);
    for (int i = 0; rank == 0 && i < kSteps; ++i) printf("%s=%d%c", names[i], total[i], i + 1 < kSteps ? ' ' : '\n');
    MPI_Comm_free(&smaller);
    MPI_Finalize();
    return 0;
}
