/* One-sided communication.
 * rma fence|lock|pscw|accumulate|fetch_and_op|narrow|compare_and_swap|compare_and_swap_at_home|sizes
 * allocate|create
 */
#include "common.h"

enum { kWords = 2048, kRounds = 20 };

static MPI_Win window;
static int64_t* memory;
static bool allocated;

static void open_window(int64_t words) {
    MPI_Aint bytes = (MPI_Aint)(words * 8);
    if (allocated) {
        MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    } else {
        memory = allocate((size_t)bytes);
        MPI_Win_create(memory, bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    }
    memset(memory, 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void close_window(void) {
    MPI_Win_free(&window);
    if (!allocated) free(memory);
}

static int right(void) {
    return (my_rank + 1) % ranks;
}
static int left(void) {
    return (my_rank + ranks - 1) % ranks;
}

/* Each rank puts into its right neighbour's first half and gets its left neighbour's. */
static void fence(void) {
    int64_t out[kWords / 2], in[kWords / 2];
    for (uint64_t round = 0; round < kRounds; ++round) {
        pattern_fill(out, sizeof out, seed_of(my_rank, round, 0));
        MPI_Win_fence(0, window);
        MPI_Put(out, kWords / 2, MPI_INT64_T, right(), 0, kWords / 2, MPI_INT64_T, window);
        MPI_Win_fence(0, window);
        pattern_check(memory, sizeof out, seed_of(left(), round, 0), "put");
        MPI_Win_fence(0, window);
        MPI_Get(in, kWords / 2, MPI_INT64_T, right(), 0, kWords / 2, MPI_INT64_T, window);
        MPI_Win_fence(0, window);
        pattern_check(in, sizeof in, seed_of(my_rank, round, 0), "get");
    }
}

/* All add to one word of rank 0 by get and put under an exclusive lock: any lost update shows in the sum. */
static void lock(void) {
    for (int round = 0; round < kRounds; ++round) {
        int64_t value;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window);
        MPI_Win_flush(0, window);
        value += my_rank + 1;
        MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, my_rank, 0, window);
    if (my_rank == 0)
        CHECK(memory[0] == (int64_t)kRounds * ranks * (ranks + 1) / 2, "sum %lld", (long long)memory[0]);
    MPI_Win_unlock(my_rank, window);
}

static void pscw(void) {
    MPI_Group all, sources, targets;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int to = right(), from = left();
    MPI_Group_incl(all, 1, &to, &targets);
    MPI_Group_incl(all, 1, &from, &sources);
    int64_t out[kWords / 2];
    for (uint64_t round = 0; round < kRounds; ++round) {
        pattern_fill(out, sizeof out, seed_of(my_rank, round, 1));
        MPI_Win_post(sources, 0, window);
        MPI_Win_start(targets, 0, window);
        MPI_Put(out, kWords / 2, MPI_INT64_T, to, 0, kWords / 2, MPI_INT64_T, window);
        MPI_Win_complete(window);
        MPI_Win_wait(window);
        pattern_check(memory, sizeof out, seed_of(from, round, 1), "pscw");
    }
    MPI_Group_free(&sources);
    MPI_Group_free(&targets);
    MPI_Group_free(&all);
}

/* All ranks add to the same words of all ranks. */
static void accumulate(void) {
    enum { kCount = 100 };
    int64_t values[kCount];
    for (int i = 0; i < kCount; ++i) values[i] = (my_rank + 1) * (i + 1);
    MPI_Win_lock_all(0, window);
    for (int round = 0; round < kRounds; ++round) {
        for (int rank = 0; rank < ranks; ++rank) {
            MPI_Accumulate(values, kCount, MPI_INT64_T, rank, 0, kCount, MPI_INT64_T, MPI_SUM, window);
        }
        MPI_Win_flush_all(window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, my_rank, 0, window);
    for (int i = 0; i < kCount; ++i) {
        int64_t expected = (int64_t)kRounds * ranks * (ranks + 1) / 2 * (i + 1);
        CHECK(memory[i] == expected, "word %d is %lld instead of %lld", i, (long long)memory[i],
              (long long)expected);
    }
    MPI_Win_unlock(my_rank, window);
}

/* A ticket counter in rank 0: every ticket is drawn exactly once. */
static void fetch_and_op(void) {
    int64_t tickets[kRounds * 5], one = 1;
    int count = kRounds * 5;
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < count; ++i) {
        MPI_Fetch_and_op(&one, &tickets[i], MPI_INT64_T, 0, 0, MPI_SUM, window);
        MPI_Win_flush(0, window);
        CHECK(i == 0 || tickets[i] > tickets[i - 1], "tickets do not grow");
    }
    MPI_Win_unlock_all(window);
    int64_t* all = allocate(sizeof tickets * (size_t)ranks);
    MPI_Allgather(tickets, count, MPI_INT64_T, all, count, MPI_INT64_T, MPI_COMM_WORLD);
    char* drawn = calloc((size_t)(count * ranks), 1);
    for (int i = 0; i < count * ranks; ++i) {
        CHECK(all[i] >= 0 && all[i] < count * ranks && !drawn[all[i]], "ticket %lld twice or out of range",
              (long long)all[i]);
        drawn[all[i]] = 1;
    }
    free(drawn), free(all);
}

/* 4-byte words of every rank, own ones too: what is fetched goes into its 4 bytes and nowhere else. */
static void narrow(void) {
    enum { kGuard = 0x5a5a5a5a };
    int32_t one = 1, next = my_rank + 1;
    MPI_Win_lock_all(0, window);
    for (int rank = 0; rank < ranks; ++rank) {
        int32_t found[3][3] = {{kGuard, -1, kGuard}, {kGuard, -1, kGuard}, {kGuard, -1, kGuard}};
        const MPI_Aint mine = 1 + my_rank;
        MPI_Fetch_and_op(&one, &found[0][1], MPI_INT32_T, rank, 0, MPI_SUM, window);
        MPI_Fetch_and_op(&next, &found[1][1], MPI_INT32_T, rank, mine, MPI_REPLACE, window);
        MPI_Win_flush(rank, window);
        MPI_Compare_and_swap(&one, &next, &found[2][1], MPI_INT32_T, rank, mine, window);
        MPI_Win_flush(rank, window);
        for (int i = 0; i < 3; ++i) {
            CHECK(found[i][0] == kGuard && found[i][2] == kGuard, "%d of rank %d: bytes beside the result", i,
                  rank);
        }
        CHECK(found[0][1] >= 0 && found[0][1] < ranks, "%d fetched from rank %d", found[0][1], rank);
        CHECK(found[1][1] == 0 && found[2][1] == next, "%d and %d in rank %d", found[1][1], found[2][1],
              rank);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, my_rank, 0, window);
    CHECK(*(int32_t*)memory == ranks, "%d updates", *(int32_t*)memory);
    for (int rank = 0; rank < ranks; ++rank) {
        CHECK(*(int32_t*)&memory[1 + rank] == 1, "the word of rank %d", rank);
    }
    MPI_Win_unlock(my_rank, window);
}

/* A spin lock in rank 0 by compare and swap protects a word that is read and written separately. */
static void locked_update(int64_t mine) {
    int64_t zero = 0, found, value;
    do {
        MPI_Compare_and_swap(&mine, &zero, &found, MPI_INT64_T, 0, 0, window);
        MPI_Win_flush(0, window);
    } while (found != 0);
    MPI_Get(&value, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, window);
    MPI_Win_flush(0, window);
    value += mine;
    MPI_Put(&value, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, window);
    MPI_Win_flush(0, window);
    MPI_Compare_and_swap(&zero, &mine, &found, MPI_INT64_T, 0, 0, window);
    MPI_Win_flush(0, window);
    CHECK(found == mine, "the lock belonged to %lld", (long long)found);
}

static void compete(int first_rank) {
    int64_t expected = 0;
    MPI_Win_lock_all(0, window);
    for (int round = 0; round < kRounds && my_rank >= first_rank; ++round) locked_update(my_rank + 1);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, my_rank, 0, window);
    for (int rank = first_rank; rank < ranks; ++rank) expected += (int64_t)kRounds * (rank + 1);
    if (my_rank == 0) CHECK(memory[1] == expected, "sum %lld", (long long)memory[1]);
    MPI_Win_unlock(my_rank, window);
}

static void compare_and_swap(void) {
    compete(1);
}

/* Rank 0 competes too, for a word in its own memory. */
static void compare_and_swap_at_home(void) {
    compete(0);
}

/* Put and get of all sizes around the packet and the eager limit, at every alignment. */
static void sizes(void) {
    static const int kBytes[] = {1, 2, 3, 7, 8, 9, 55, 56, 57, 111, 112, 113, 1000, 4095, 4096, 4097, 12345};
    unsigned char out[12345], in[12345];
    for (size_t k = 0; k < sizeof kBytes / sizeof *kBytes; ++k) {
        int bytes = kBytes[k];
        uint64_t seed = seed_of(my_rank, k, 2);
        pattern_fill(out, (size_t)bytes, seed);
        memset(in, 0, sizeof in);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, window);
        MPI_Put(out, bytes, MPI_BYTE, right(), (MPI_Aint)(k % 8), bytes, MPI_BYTE, window);
        MPI_Win_flush(right(), window);
        MPI_Get(in, bytes, MPI_BYTE, right(), (MPI_Aint)(k % 8), bytes, MPI_BYTE, window);
        MPI_Win_unlock(right(), window);
        pattern_check(in, (size_t)bytes, seed, "sizes");
    }
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } kTopics[] = {{"fence", fence},
                   {"lock", lock},
                   {"pscw", pscw},
                   {"accumulate", accumulate},
                   {"fetch_and_op", fetch_and_op},
                   {"narrow", narrow},
                   {"compare_and_swap", compare_and_swap},
                   {"compare_and_swap_at_home", compare_and_swap_at_home},
                   {"sizes", sizes}};
    start(&argc, &argv);
    allocated = argc > 2 && strcmp(argv[2], "allocate") == 0;
    bool found = false;
    open_window(kWords);
    for (size_t i = 0; i < sizeof kTopics / sizeof *kTopics; ++i) {
        if (argc < 2 || strcmp(argv[1], kTopics[i].name) != 0) continue;
        kTopics[i].run();
        found = true;
    }
    CHECK(found, "no such topic");
    close_window();
    if (my_rank == 0) printf("passed=1\n");
    MPI_Finalize();
    return 0;
}
