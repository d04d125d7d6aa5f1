/* Rank 1 sends to rank 0 and then stays outside MPI until rank 0 has got what rank 2 has sent after it.
 * away FILE BYTES */
#include "common.h"

static void tell(const char* path) {
    FILE* file = fopen(path, "w");
    CHECK(file != NULL && fclose(file) == 0, "cannot make %s", path);
}

static void wait_for(const char* path) {
    while (access(path, F_OK) != 0) sleep_ms(1);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int bytes = (int)argument(argc, argv, 2, 2000);
    unsigned char* data = allocate((size_t)bytes);
    char sent[4096];
    snprintf(sent, sizeof sent, "%s.sent", argv[1]);
    for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        for (int source = 2; source > 0; --source) {
            MPI_Recv(data, bytes, MPI_BYTE, source, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            pattern_check(data, (size_t)bytes, seed_of(source, 0, 0), "away");
            tell(argv[1]);
        }
    } else {
        pattern_fill(data, (size_t)bytes, seed_of(my_rank, 0, 0));
        if (my_rank == 2) wait_for(sent);
        MPI_Send(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        if (my_rank == 1) {
            tell(sent);
            wait_for(argv[1]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) printf("received=2\n");
    free(data);
    MPI_Finalize();
    return 0;
}
