/* Threads that each have a group of their own: rings of messages, graphs made and schedules run at the same
 * time; groups made and freed again and again. */
#include <goal.h>
#include <pthread.h>

#include "../common.h"

static int steps;
static pthread_barrier_t together;

struct thread {
    pthread_t id;
    MPI_Comm comm;
    uint64_t first; /* of its tokens, which no other thread has */
};

static GOAL_Schedule ring(GOAL_Group group, uint64_t* token, uint64_t* sum) {
    const int rank = GOAL_MyRank_r(group), size = GOAL_GroupSize_r(group);
    GOAL_Graph g = GOAL_CreateGraph_r(group);
    GOAL_AllocateScratchpad(g, sizeof *token);
    GOAL_Vertex send = GOAL_Send(g, token, sizeof *token, (rank + 1) % size, 0, GOAL_USERSPACE);
    GOAL_Vertex recv = GOAL_Recv(g, 0, sizeof *token, (rank + size - 1) % size, 0, GOAL_SCRATCHPAD);
    GOAL_Vertex add = GOAL_LocalOp(g, sum, 0, sum, GOAL_ADD, GOAL_UINT, 64, 1, GOAL_USERSPACE,
                                   GOAL_SCRATCHPAD, GOAL_USERSPACE);
    GOAL_Requires(g, recv, add);
    (void)send;
    GOAL_Schedule schedule = GOAL_Compile(g);
    GOAL_FreeGraph(g);
    return schedule;
}

static void* work(void* argument) {
    const struct thread* self = argument;
    GOAL_Group group;
    uint64_t token, sum = 0, expected = 0;
    int rank, size;
    MPI_Comm_rank(self->comm, &rank);
    MPI_Comm_size(self->comm, &size);
    pthread_barrier_wait(&together);
    CHECK(GOAL_InitComm(self->comm, &group) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    CHECK(GOAL_MyRank_r(group) == rank && GOAL_GroupSize_r(group) == size, "rank %d of %d", rank, size);
    GOAL_Schedule schedule = ring(group, &token, &sum);
    for (int i = 0; i < steps; ++i) {
        token = self->first + (uint64_t)rank * steps + i;
        expected += self->first + (uint64_t)((rank + size - 1) % size) * steps + i;
        CHECK(GOAL_Wait(GOAL_Run(schedule)) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
        CHECK(sum == expected, "step %d", i);
    }
    GOAL_FreeSchedule(schedule);
    CHECK(GOAL_FreeGroup(&group) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    return NULL;
}

int main(int argc, char** argv) {
    enum { MOST = 16 };
    struct thread threads[MOST];
    start_threads(&argc, &argv);
    const int count = (int)argument(argc, argv, 1, 4), rounds = (int)argument(argc, argv, 3, 1);
    steps = (int)argument(argc, argv, 2, 100);
    CHECK(count <= MOST, "%d threads", count);
    pthread_barrier_init(&together, NULL, count);
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < count; ++i) {
            threads[i].first = 1000000ULL * (i + 1);
            /* In some of them the ranks are in another order. */
            MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? my_rank : -my_rank, &threads[i].comm);
        }
        for (int i = 0; i < count; ++i) pthread_create(&threads[i].id, NULL, work, &threads[i]);
        for (int i = 0; i < count; ++i) pthread_join(threads[i].id, NULL);
        for (int i = 0; i < count; ++i) MPI_Comm_free(&threads[i].comm);
    }
    if (my_rank == 0) printf("steps=%d\n", count * steps * rounds);
    MPI_Finalize();
    return 0;
}
