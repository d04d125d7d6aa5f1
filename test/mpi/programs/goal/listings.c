/* ESPGOAL's listings in their right form: `forward` (2.2.4), `scratchpad` (2.2.5), `barrier` (5.4), `gather`
 * (5.5). */
#include <goal.h>
#include <stdatomic.h>

#include "../common.h"

#define US GOAL_USERSPACE
#define GSP GOAL_SCRATCHPAD
#define INVALID_VERTEX GOAL_INVALID_VERTEX

static void require(GOAL_Graph g, GOAL_Vertex prereq, GOAL_Vertex target) {
    if (prereq != INVALID_VERTEX && target != INVALID_VERTEX) GOAL_Requires(g, prereq, target);
}

static GOAL_Schedule compiled(GOAL_Graph g) {
    GOAL_Schedule schedule = GOAL_Compile(g);
    GOAL_FreeGraph(g);
    GOAL_MakeScheduleReusable(schedule);
    return schedule;
}

/* Rank 1 receives from rank 0 and sends to 2 and 3. */
static void forward(bool through_scratchpad) {
    enum { BYTES = 64, RUNS = 20 };
    unsigned char buf[BYTES], half = BYTES / 2;
    GOAL_Graph g = GOAL_CreateGraph();
    if (my_rank == 0) {
        GOAL_Send(g, buf, BYTES, 1, 0, US);
    } else if (my_rank == 1 && through_scratchpad) {
        GOAL_AllocateScratchpad(g, BYTES);
        GOAL_Vertex recv = GOAL_Recv(g, 0, BYTES, 0, 0, GSP);
        GOAL_Vertex send1 = GOAL_Send(g, 0, half, 2, 0, GSP);
        GOAL_Vertex send2 = GOAL_Send(g, (void*)(uintptr_t)half, half, 3, 0, GSP);
        GOAL_Requires(g, recv, send1);
        GOAL_Requires(g, recv, send2);
    } else if (my_rank == 1) {
        GOAL_Vertex recv = GOAL_Recv(g, buf, BYTES, 0, 0, US);
        GOAL_Vertex send1 = GOAL_Send(g, buf, half, 2, 0, US);
        GOAL_Vertex send2 = GOAL_Send(g, buf + half, half, 3, 0, US);
        GOAL_Requires(g, recv, send1);
        GOAL_Requires(g, recv, send2);
    } else if (my_rank < 4) {
        GOAL_Recv(g, buf, half, 1, 0, US);
    }
    GOAL_Schedule schedule = compiled(g);
    for (int run = 0; run < RUNS; ++run) {
        unsigned char all[BYTES];
        pattern_fill(all, BYTES, seed_of(0, run, 0));
        if (my_rank == 0) memcpy(buf, all, BYTES);
        GOAL_Wait(GOAL_Run(schedule));
        if (my_rank == 2 || my_rank == 3)
            CHECK(memcmp(buf, all + (my_rank - 2) * half, half) == 0, "run %d: wrong bytes", run);
    }
    GOAL_FreeSchedule(schedule);
    if (my_rank == 0) printf("forwarded=%d\n", RUNS);
}

static GOAL_Schedule recursive_doubling(void) {
    GOAL_Graph g = GOAL_CreateGraph();
    int core = 1;
    while (2 * core <= ranks) core *= 2;
    GOAL_Vertex recv = INVALID_VERTEX, sendf = INVALID_VERTEX, send = INVALID_VERTEX;
    GOAL_AllocateScratchpad(g, 3);
    if (my_rank < core) {
        for (int mask = 1; mask < core; mask <<= 1) {
            GOAL_Vertex sendn = GOAL_Send(g, 0, 1, my_rank ^ mask, 0, GSP);
            GOAL_Vertex recvn = GOAL_Recv(g, (void*)1, 1, my_rank ^ mask, 0, GSP);
            require(g, recv, sendn);
            require(g, recv, recvn);
            require(g, send, sendn);
            if (sendf == INVALID_VERTEX) sendf = sendn;
            recv = recvn;
            send = sendn;
        }
    }
    if (my_rank < ranks - core) {
        GOAL_Vertex sendx = GOAL_Send(g, 0, 1, my_rank + core, 1, GSP);
        GOAL_Vertex recvx = GOAL_Recv(g, (void*)2, 1, my_rank + core, 1, GSP);
        require(g, recvx, sendf);
        require(g, recvx, sendx);
        require(g, recv, sendx);
    } else if (my_rank >= core) {
        GOAL_Send(g, 0, 1, my_rank - core, 1, GSP);
        GOAL_Recv(g, (void*)2, 1, my_rank - core, 1, GSP);
    }
    return compiled(g);
}

static GOAL_Schedule bruck(void) {
    GOAL_Graph g = GOAL_CreateGraph();
    GOAL_Vertex recv = INVALID_VERTEX;
    GOAL_AllocateScratchpad(g, 2);
    for (int distance = 1; distance < ranks; distance <<= 1) {
        GOAL_Vertex sendn = GOAL_Send(g, 0, 1, (my_rank + distance) % ranks, 0, GSP);
        GOAL_Vertex recvn = GOAL_Recv(g, (void*)1, 1, (my_rank + ranks - distance) % ranks, 0, GSP);
        require(g, recv, sendn);
        require(g, recv, recvn);
        recv = recvn;
    }
    return compiled(g);
}

/* Nobody leaves before all have entered: they count themselves in shared memory. */
static void barrier(GOAL_Schedule schedule) {
    enum { RUNS = 200 };
    _Atomic long* entered;
    MPI_Win window;
    MPI_Aint bytes;
    int unit;
    uint64_t random = my_rank + 1;
    MPI_Win_allocate_shared(my_rank == 0 ? sizeof *entered : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &entered,
                            &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &entered);
    if (my_rank == 0) *entered = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (long run = 1; run <= RUNS; ++run) {
        if (next_random(&random) % 8 == 0) usleep(next_random(&random) % 1000);
        ++*entered;
        GOAL_Wait(GOAL_Run(schedule));
        CHECK(*entered >= run * ranks, "run %ld: %ld have entered", run, *entered);
    }
    MPI_Win_free(&window);
    GOAL_FreeSchedule(schedule);
    if (my_rank == 0) printf("barriers=%d\n", RUNS);
}

/* linear_sync: the root asks with an empty message for the first segment, and takes the rest when that has
 * come. */
static GOAL_Schedule linear_sync(unsigned char* mine, unsigned char* all, int block, int segment, int root) {
    GOAL_Graph g = GOAL_CreateGraph();
    if (my_rank != root) {
        GOAL_Vertex sync = GOAL_Recv(g, NULL, 0, root, 0, US);
        GOAL_Vertex first = GOAL_Send(g, mine, segment, root, 1, US);
        GOAL_Vertex rest = GOAL_Send(g, mine + segment, block - segment, root, 2, US);
        GOAL_Requires(g, sync, first);
        GOAL_Requires(g, first, rest);
        return compiled(g);
    }
    for (int rank = 0; rank < ranks; ++rank) {
        unsigned char* to = all + (size_t)rank * block;
        if (rank == root) {
            GOAL_LocalOp(g, mine, NULL, to, GOAL_COPY, GOAL_UINT, 8, block, US, US, US);
            continue;
        }
        GOAL_Vertex first = GOAL_Recv(g, to, segment, rank, 1, US);
        GOAL_Vertex sync = GOAL_Send(g, NULL, 0, rank, 0, US);
        GOAL_Vertex rest = GOAL_Recv(g, to + segment, block - segment, rank, 2, US);
        GOAL_RequiresStart(g, first, sync);
        GOAL_Requires(g, first, rest);
    }
    return compiled(g);
}

/* Binomial tree of ranks relative to the root: a subtree is consecutive, and goes up in one message. At the
 * root the blocks that wrap round come in two pieces. */
static GOAL_Schedule binomial(unsigned char* mine, unsigned char* all, int block, int root) {
    GOAL_Graph g = GOAL_CreateGraph();
    const int relative = (my_rank + ranks - root) % ranks;
    int subtree = 1;
    while (relative % (2 * subtree) == 0 && relative + subtree < ranks) subtree *= 2;
    const int blocks = relative + subtree > ranks ? ranks - relative : subtree;
    GOAL_Vertex send = INVALID_VERTEX, copy;
    GOAL_AllocateScratchpad(g, (size_t)blocks * block);
    if (my_rank == root) {
        copy = GOAL_LocalOp(g, mine, NULL, all + (size_t)root * block, GOAL_COPY, GOAL_UINT, 8, block, US, US,
                            US);
    } else {
        copy = GOAL_LocalOp(g, mine, NULL, 0, GOAL_COPY, GOAL_UINT, 8, block, US, US, GSP);
        int bit = 1;
        while ((relative & bit) == 0) bit <<= 1;
        send = GOAL_Send(g, 0, blocks * block, (relative - bit + root) % ranks, 0, GSP);
        GOAL_Requires(g, copy, send);
    }
    for (int bit = 1; bit < blocks; bit <<= 1) {
        const int child = relative + bit, count = child + bit > ranks ? ranks - child : bit;
        GOAL_Vertex recv;
        if (my_rank == root) {
            const int first = (child + root) % ranks, before = first + count > ranks ? ranks - first : count;
            void* places[] = {all + (size_t)first * block, all};
            int lengths[] = {before * block, (count - before) * block};
            recv = GOAL_RecvVec(g, places, lengths, 2, first, 0, US);
        } else {
            recv =
                GOAL_Recv(g, (void*)((uintptr_t)bit * block), count * block, (child + root) % ranks, 0, GSP);
        }
        require(g, recv, send);
    }
    return compiled(g);
}

static void gather(int block) {
    unsigned char *mine = allocate(block), *all = allocate((size_t)block * ranks),
                  *expected = allocate(block);
    int runs = 0;
    for (int root = 0; root < ranks; ++root) {
        GOAL_Schedule schedules[] = {linear_sync(mine, all, block, block / 3, root),
                                     binomial(mine, all, block, root)};
        for (int i = 0; i < 2; ++i) {
            memset(all, 0, (size_t)block * ranks);
            pattern_fill(mine, block, seed_of(my_rank, ++runs, i));
            GOAL_Wait(GOAL_Run(schedules[i]));
            for (int rank = 0; my_rank == root && rank < ranks; ++rank) {
                pattern_fill(expected, block, seed_of(rank, runs, i));
                CHECK(memcmp(expected, all + (size_t)rank * block, block) == 0,
                      "root %d, algorithm %d: block of %d", root, i, rank);
            }
        }
        for (int i = 0; i < 2; ++i) GOAL_FreeSchedule(schedules[i]);
    }
    free(mine);
    free(all);
    free(expected);
    if (my_rank == 0) printf("gathered=%d\n", runs);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    GOAL_Init();
    const char* what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "forward") == 0) forward(false);
    if (strcmp(what, "scratchpad") == 0) forward(true);
    if (strcmp(what, "barrier") == 0) {
        barrier(recursive_doubling());
        barrier(bruck());
    }
    if (strcmp(what, "gather") == 0) gather((int)argument(argc, argv, 2, 512));
    GOAL_Finalize();
    MPI_Finalize();
    return 0;
}
