/* The scatter of ESPGOAL's figures 1.1 and 1.2 over five ranks: 0 sends 8 bytes to each of 1 and 3, which
 * keep 4 and send 4 on to 2 and 4. Made once, run several times with other data. */
#include <goal.h>

#include "../common.h"

enum { RUNS = 5, RANKS = 5 };

int main(int argc, char** argv) {
    int items[RANKS], mine = -1;
    start(&argc, &argv);
    CHECK(ranks == RANKS, "%d ranks", ranks);
    GOAL_Init();
    GOAL_Graph graph = GOAL_CreateGraph();
    if (my_rank == 0) {
        GOAL_LocalOp(graph, items, NULL, &mine, GOAL_COPY, GOAL_SINT, 32, 1, GOAL_USERSPACE, GOAL_USERSPACE,
                     GOAL_USERSPACE);
        GOAL_Send(graph, items + 1, 8, 1, 0, GOAL_USERSPACE);
        GOAL_Send(graph, items + 3, 8, 3, 0, GOAL_USERSPACE);
    } else if (my_rank % 2 == 1) {
        GOAL_AllocateScratchpad(graph, 8);
        GOAL_Vertex receive = GOAL_Recv(graph, (void*)0, 8, 0, 0, GOAL_SCRATCHPAD);
        GOAL_Vertex copy = GOAL_LocalOp(graph, (void*)0, NULL, &mine, GOAL_COPY, GOAL_SINT, 32, 1,
                                        GOAL_SCRATCHPAD, GOAL_USERSPACE, GOAL_USERSPACE);
        GOAL_Vertex send = GOAL_Send(graph, (void*)4, 4, my_rank + 1, 0, GOAL_SCRATCHPAD);
        GOAL_Requires(graph, receive, copy);
        GOAL_Requires(graph, receive, send);
    } else {
        GOAL_Recv(graph, &mine, 4, my_rank - 1, 0, GOAL_USERSPACE);
    }
    GOAL_Schedule schedule = GOAL_Compile(graph);
    GOAL_FreeGraph(graph);
    GOAL_MakeScheduleReusable(schedule);
    for (int run = 0; run < RUNS; ++run) {
        for (int i = 0; i < RANKS; ++i) items[i] = 1000 * run + i;
        GOAL_Wait(GOAL_Run(schedule));
        CHECK(mine == 1000 * run + my_rank, "run %d: %d", run, mine);
    }
    GOAL_FreeSchedule(schedule);
    GOAL_Finalize();
    if (my_rank == 0) printf("runs=%d\n", RUNS);
    MPI_Finalize();
    return 0;
}
