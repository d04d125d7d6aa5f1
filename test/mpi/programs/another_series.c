/* An Open MPI that says that it is of another series than the one that Velo was built for. Talks in a ring. */
#include "common.h"

/* In place of Open MPI's, for Velo's plugin. */
__attribute__((visibility("default"))) const char opal_version_string[] = "Open MPI v9.8.7, package: another";

int main(int argc, char** argv) {
    start(&argc, &argv);
    int token = my_rank;
    MPI_Sendrecv_replace(&token, 1, MPI_INT, (my_rank + 1) % ranks, 0, (my_rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    CHECK(token == (my_rank + ranks - 1) % ranks, "%d in place of the rank before", token);
    if (my_rank == 0) printf("ranks=%d\n", ranks);
    MPI_Finalize();
    return 0;
}
