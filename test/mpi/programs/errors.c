/* What a program sees of errors with MPI_ERRORS_RETURN: errors truncate|die BYTES
 *   truncate   receives with too small a buffer give MPI_ERR_TRUNCATE, each; messages after them arrive as ever
 *   die        rank 1 ends at once, without a word to MPI, while the others send to it and receive from it */
#include "common.h"

static void truncate_(int bytes) {
    enum { kRounds = 20 };
    unsigned char *out = allocate((size_t)bytes), *in = allocate((size_t)bytes);
    int to = (my_rank + 1) % ranks, from = (my_rank + ranks - 1) % ranks, truncated = 0;
    for (int round = 0; round < kRounds; ++round) {
        const int room = round % 2 ? bytes : bytes / 2;
        MPI_Request request;
        MPI_Status status;
        pattern_fill(out, (size_t)bytes, seed_of(my_rank, (uint64_t)round, 0));
        MPI_Irecv(in, room, MPI_BYTE, from, 1, MPI_COMM_WORLD, &request);
        CHECK(MPI_Send(out, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD) == MPI_SUCCESS, "the sender has not failed");
        int class = MPI_SUCCESS, code = MPI_Wait(&request, &status);
        MPI_Error_class(code, &class);
        CHECK(class == (round % 2 ? MPI_SUCCESS : MPI_ERR_TRUNCATE), "round %d: error class %d", round, class);
        truncated += class == MPI_ERR_TRUNCATE;
        if (class == MPI_SUCCESS) pattern_check(in, (size_t)bytes, seed_of(from, (uint64_t)round, 0), "after a truncation");
    }
    free(out), free(in);
    if (my_rank == 0) printf("truncated=%d\n", truncated);
}

static void die(int bytes) {
    unsigned char* data = calloc(1, (size_t)bytes + 1);
    for (int i = 0;; ++i) {
        if (my_rank == 1 && i == 20) _exit(7);
        for (int distance = 1; distance < ranks; ++distance) {
            int to = (my_rank + distance) % ranks, from = (my_rank + ranks - distance) % ranks;
            if (MPI_Sendrecv_replace(data, bytes, MPI_BYTE, to, 1, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
                printf("told=1\n");
                exit(3);
            }
        }
    }
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int bytes = (int)argument(argc, argv, 2, 100);
    if (argc > 1 && strcmp(argv[1], "die") == 0) die(bytes);
    truncate_(bytes);
    MPI_Finalize();
    return 0;
}
