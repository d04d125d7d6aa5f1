/* What goes wrong inside MPI, while other ranks wait: callbacks abort|return WHERE
 *   operation, later_operation   in a user's MPI_Op, of a blocking collective, of a nonblocking one
 *   handler                      in an error handler of a communicator, for a truncated message
 *   request                      in the query function of a generalized request
 *   attribute                    in the delete function of an attribute, in MPI_Finalize
 * Rank 0 calls MPI_Abort(42) there; with "return" it does not, and all ends well. */
#include "common.h"

static bool aborts;

static void reach(void) {
    if (my_rank == 0 && aborts) MPI_Abort(MPI_COMM_WORLD, 42);
}

static void add(void* in, void* out, int* length, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *length; ++i) ((int*)out)[i] += ((int*)in)[i];
    reach();
}

static void sum_up(bool blocking) {
    enum { kCount = 50000 };
    static int mine[kCount], all[kCount];
    for (int i = 0; i < kCount; ++i) mine[i] = my_rank + i;
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    if (blocking) {
        MPI_Allreduce(mine, all, kCount, MPI_INT, op, MPI_COMM_WORLD);
    } else {
        MPI_Request request;
        MPI_Iallreduce(mine, all, kCount, MPI_INT, op, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < kCount; ++i) CHECK(all[i] == ranks * (ranks - 1) / 2 + ranks * i, "sum %d", i);
    MPI_Op_free(&op);
}

static int truncated;

static void handle(MPI_Comm* comm, int* error, ...) {
    (void)comm;
    int class;
    MPI_Error_class(*error, &class);
    truncated += class == MPI_ERR_TRUNCATE;
    reach();
}

static void truncate_message(void) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    char out[200] = "long", in[100];
    int to = (my_rank + 1) % ranks, from = (my_rank + ranks - 1) % ranks;
    MPI_Sendrecv(out, sizeof out, MPI_BYTE, to, 1, in, sizeof in, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(truncated == 1, "the handler was called %d times", truncated);
    MPI_Errhandler_free(&handler);
}

static int query(void* state, MPI_Status* status) {
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    reach();
    return MPI_SUCCESS;
}

static int release(void* state) {
    (void)state;
    return MPI_SUCCESS;
}

static int cancel(void* state, int complete) {
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static void complete_request(void) {
    MPI_Request request;
    MPI_Grequest_start(query, release, cancel, NULL, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int forget(MPI_Comm comm, int key, void* value, void* state) {
    (void)comm, (void)key, (void)value, (void)state;
    reach();
    return MPI_SUCCESS;
}

static void leave_attribute(void) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    aborts = argc > 1 && strcmp(argv[1], "abort") == 0;
    const char* where = argc > 2 ? argv[2] : "";
    /* Every rank knows every other one. */
    for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(where, "operation") == 0) sum_up(true);
    if (strcmp(where, "later_operation") == 0) sum_up(false);
    if (strcmp(where, "handler") == 0) truncate_message();
    if (strcmp(where, "request") == 0) complete_request();
    if (strcmp(where, "attribute") == 0) leave_attribute();
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        printf("passed=1\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
