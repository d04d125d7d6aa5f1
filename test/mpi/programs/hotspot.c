/* Groups of neighbours talk among themselves, then other groups: the pattern in which quotas move.
 * hotspot GROUP ROUNDS */
#include "common.h"

/* All pairs of the ranks base .. base + group - 1 (modulo the job) exchange messages of several packets. */
static void talk(int base, int group, int round) {
    enum { kBytes = 1500 };
    int place = (my_rank - base + ranks) % ranks;
    int first = my_rank - place % group;
    unsigned char out[kBytes], in[kBytes];
    for (int k = 1; k < group; ++k) {
        int to = (first + (place % group + k) % group + ranks) % ranks;
        int from = (first + (place % group + group - k) % group + ranks) % ranks;
        pattern_fill(out, kBytes, seed_of(my_rank, (uint64_t)round, to));
        MPI_Sendrecv(out, kBytes, MPI_BYTE, to, 6, in, kBytes, MPI_BYTE, from, 6, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        pattern_check(in, kBytes, seed_of(from, (uint64_t)round, my_rank), "hotspot");
    }
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int group = (int)argument(argc, argv, 1, 2), rounds = (int)argument(argc, argv, 2, 100);
    CHECK(ranks % group == 0, "%d ranks are no multiple of %d", ranks, group);
    for (int base = 0; base < group; ++base) {
        for (int round = 0; round < rounds; ++round) talk(base, group, round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) printf("rounds=%d\n", rounds * group);
    MPI_Finalize();
    return 0;
}
