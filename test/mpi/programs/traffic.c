/* All ranks send to each other until they are killed, or a rank aborts, or the rounds are over.
 * traffic endless | traffic rounds N | traffic abort RANK ROUND | traffic neighbours N
 * Prints "traffic pid=P" on each rank once messages travel. */
#include "common.h"

static void round_trip(int round, int distance) {
    enum { kLarge = 60000 };
    static unsigned char out[kLarge], in[kLarge];
    int to = (my_rank + distance) % ranks, from = (my_rank + ranks - distance) % ranks;
    int bytes = round % 4 == 3 ? kLarge : 1 + round % 200;
    pattern_fill(out, (size_t)bytes, seed_of(my_rank, (uint64_t)round, distance));
    MPI_Sendrecv(out, bytes, MPI_BYTE, to, 2, in, bytes, MPI_BYTE, from, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    pattern_check(in, (size_t)bytes, seed_of(from, (uint64_t)round, distance), "traffic");
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    const char* way = argc > 1 ? argv[1] : "rounds";
    bool endless = strcmp(way, "endless") == 0, abort_ = strcmp(way, "abort") == 0;
    bool neighbours = strcmp(way, "neighbours") == 0;
    long rounds = endless || abort_ ? -1 : argument(argc, argv, 2, 10);
    for (int round = 0; round != rounds; ++round) {
        for (int distance = 1; distance < (neighbours ? 2 : ranks); ++distance) round_trip(round, distance);
        if (round == 8) {
            printf("traffic pid=%d\n", (int)getpid());
            fflush(stdout);
        }
        if (abort_ && my_rank == argument(argc, argv, 2, 0) && round == argument(argc, argv, 3, 5)) {
            MPI_Abort(MPI_COMM_WORLD, 42);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) printf("rounds=%ld\n", rounds);
    MPI_Finalize();
    return 0;
}
