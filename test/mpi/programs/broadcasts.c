/* Broadcasts between nodes, by roots in turn, of all sizes, blocking and as requests, on several communicators.
 *
 *   broadcasts check ROUNDS        everything below, each time with other data
 *   broadcasts again ROUNDS        of 1000 bytes, each in a communicator of its own, which has the id of the one before
 *   broadcasts steady SECONDS      8-byte and 20000-byte ones for so long; says "steady" when it has begun */
#include "common.h"

static const int sizes[] = {0, 1, 8, 1300, 1400, 1500, 5000, 20000, 65536, 65537, 200000};
enum { SIZES = sizeof sizes / sizeof sizes[0], MOST = 200000, REQUESTS = 24 };

static void fill(void* data, int bytes, uint64_t seed, bool is_root) {
    if (is_root)
        pattern_fill(data, (size_t)bytes, seed);
    else
        memset(data, 0xaa, (size_t)bytes);
}

static void blocking(MPI_Comm comm, uint64_t seed, void* data) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int s = 0; s < SIZES; ++s)
        for (int root = 0; root < size; ++root) {
            const uint64_t one = seed + (uint64_t)(s * 100 + root);
            fill(data, sizes[s], one, rank == root);
            MPI_Bcast(data, sizes[s], MPI_BYTE, root, comm);
            pattern_check(data, (size_t)sizes[s], one, "a broadcast");
            /* The root may write again, whoever has not got it yet. */
            memset(data, 0x55, (size_t)sizes[s]);
        }
}

/* Many under way on two communicators, begun in another order by every second rank. */
static void requests(MPI_Comm one, MPI_Comm other, uint64_t seed, char* data) {
    MPI_Request all[2 * REQUESTS];
    const int bytes = 3000;
    for (int second = 0; second < 2; ++second) {
        const int which = (second + my_rank) % 2;
        for (int i = 0; i < REQUESTS; ++i) {
            const int at = which * REQUESTS + i, root = i % ranks;
            fill(data + at * bytes, bytes, seed + (uint64_t)at, my_rank == root);
            MPI_Ibcast(data + at * bytes, bytes, MPI_BYTE, root, which == 0 ? one : other, &all[at]);
        }
    }
    MPI_Waitall(2 * REQUESTS, all, MPI_STATUSES_IGNORE);
    for (int at = 0; at < 2 * REQUESTS; ++at)
        pattern_check(data + at * bytes, (size_t)bytes, seed + (uint64_t)at, "a broadcast as a request");
}

/* One root that waits for nobody. */
static void stream(uint64_t seed, char* data) {
    for (int i = 0; i < 300; ++i) {
        fill(data, 700, seed + (uint64_t)i, my_rank == 0);
        MPI_Bcast(data, 700, MPI_BYTE, 0, MPI_COMM_WORLD);
        pattern_check(data, 700, seed + (uint64_t)i, "one of a stream");
    }
}

static void gaps(uint64_t seed, void* data) {
    MPI_Datatype every_second;
    MPI_Type_vector(100, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    int* numbers = data;
    for (int i = 0; i < 200; ++i) numbers[i] = my_rank == 0 ? (int)seed + i : -1;
    MPI_Bcast(numbers, 1, every_second, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 200; ++i)
        CHECK(numbers[i] == (my_rank == 0 || i % 2 == 0 ? (int)seed + i : -1), "gaps: %d at %d", numbers[i], i);
    MPI_Type_free(&every_second);
}

static void check(long rounds) {
    char* data = allocate(MOST);
    MPI_Comm again, half, turned;
    for (long round = 0; round < rounds; ++round) {
        const uint64_t seed = seed_of(0, (uint64_t)round * 100000, 1);
        /* Freed and made again: ids come back, and runs are counted anew. */
        MPI_Comm_dup(MPI_COMM_WORLD, &again);
        MPI_Comm_split(MPI_COMM_WORLD, my_rank < ranks / 2, my_rank, &half);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -my_rank, &turned);
        blocking(MPI_COMM_WORLD, seed, data);
        blocking(again, seed + 10000, data);
        blocking(half, seed + 20000, data);
        blocking(turned, seed + 30000, data);
        requests(MPI_COMM_WORLD, again, seed + 40000, data);
        stream(seed + 50000, data);
        gaps(seed, data);
        MPI_Comm_free(&again);
        MPI_Comm_free(&half);
        MPI_Comm_free(&turned);
    }
    free(data);
    if (my_rank == 0) printf("rounds=%ld\n", rounds);
}

static void again(long rounds) {
    char data[1000];
    for (long round = 0; round < rounds; ++round) {
        MPI_Comm one;
        MPI_Comm_dup(MPI_COMM_WORLD, &one);
        fill(data, sizeof data, (uint64_t)round, my_rank == 0);
        /* The leader of the second of two nodes, until those that it leads hear the broadcasts themselves. */
        if (round < 20 && my_rank > 0 && 2 * my_rank == ranks) usleep(5000);
        MPI_Bcast(data, sizeof data, MPI_BYTE, 0, one);
        pattern_check(data, sizeof data, (uint64_t)round, "a broadcast in one of many communicators");
        MPI_Comm_free(&one);
    }
    if (my_rank == 0) printf("rounds=%ld\n", rounds);
}

static void steady(double seconds) {
    char* data = allocate(20000);
    const double begin = MPI_Wtime();
    int more = 1;
    uint64_t count = 0;
    for (; more; ++count) {
        more = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        fill(data, 20000, count, my_rank == 0);
        MPI_Bcast(data, 20000, MPI_BYTE, 0, MPI_COMM_WORLD);
        pattern_check(data, 20000, count, "a steady broadcast");
        if (count == 20 && my_rank == 0) {
            printf("steady\n");
            fflush(stdout);
        }
        /* As an application: all have got it before the next one. */
        if (count % 10 == 0) MPI_Barrier(MPI_COMM_WORLD);
    }
    free(data);
    if (my_rank == 0) printf("finished=1\n");
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(argc > 2, "what?");
    if (strcmp(argv[1], "check") == 0)
        check(atol(argv[2]));
    else if (strcmp(argv[1], "again") == 0)
        again(atol(argv[2]));
    else
        steady((double)atol(argv[2]));
    MPI_Finalize();
    return 0;
}
