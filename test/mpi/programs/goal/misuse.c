/* Calls that are wrong: what each returns, and that its text names the call and the argument. `return`: all
 * of them; `unfinished`: those behind MPI_Finalize without GOAL_Finalize; `abort`: one, as it ends a job;
 * `foreign FILE`: a library that is Velo's by its name alone. */
#include <dlfcn.h>
#include <goal.h>

#include "../common.h"

static int tried, told, error_told;

static void handler(int error, const char* text) {
    ++told;
    error_told = error;
    CHECK(strcmp(text, GOAL_ErrorText()) == 0, "%s, %s", text, GOAL_ErrorText());
}

/* The call fails so, and its text begins so. */
#define REFUSED(failed, error, beginning)                                                                    \
    do {                                                                                                     \
        const int before_ = told;                                                                            \
        CHECK(failed, "line %d: no failure", __LINE__);                                                      \
        CHECK(told == before_ + 1 && error_told == (error), "line %d: %d errors, the last one %d", __LINE__, \
              told - before_, error_told);                                                                   \
        CHECK(strncmp(GOAL_ErrorText(), beginning, strlen(beginning)) == 0, "line %d: %s", __LINE__,         \
              GOAL_ErrorText());                                                                             \
        ++tried;                                                                                             \
    } while (0)
#define NO_VERTEX(call, beginning) REFUSED((call) == GOAL_INVALID_VERTEX, GOAL_ERR_ARGUMENT, beginning)
#define NO_STATUS(call, error, beginning) REFUSED((call) == (error), error, beginning)

#define US GOAL_USERSPACE
#define GSP GOAL_SCRATCHPAD

static void before_init(void) {
    const char* const hint = ": call GOAL_Init before";
    char text[100];
    CHECK(GOAL_IsInitialized() == 0 && GOAL_IsFinalized() == 1, "initialised");
#define EARLY(call, failure)                          \
    snprintf(text, sizeof text, "%s%s", #call, hint); \
    REFUSED(call() == failure, GOAL_ERR_STATE, text)
    EARLY(GOAL_GroupSize, GOAL_ERR_STATE);
    EARLY(GOAL_MyRank, GOAL_ERR_STATE);
    EARLY(GOAL_CreateGraph, NULL);
    EARLY(GOAL_Finalize, GOAL_ERR_STATE);
}

static void operations(void) {
    char a[64] = "", b[64], c[64];
    void *pieces[] = {a, a + 8}, *with_null[] = {a, NULL};
    int lengths[] = {8, 8}, negative[] = {8, -1}, odd[] = {8, 7};
    GOAL_Graph g = GOAL_CreateGraph();

    NO_VERTEX(GOAL_Send(NULL, a, 1, 0, 0, US), "GOAL_Send: graph: is NULL");
    NO_VERTEX(GOAL_Send(g, NULL, 1, 0, 0, US), "GOAL_Send: buf: is NULL");
    NO_VERTEX(GOAL_Send(g, a, -1, 0, 0, US), "GOAL_Send: count: -1 is negative");
    NO_VERTEX(GOAL_Send(g, a, 1, 2, 0, US), "GOAL_Send: dest: there is no rank 2 in a group of 2");
    NO_VERTEX(GOAL_Send(g, a, 1, -1, 0, US), "GOAL_Send: dest: there is no rank -1 in a group of 2");
    NO_VERTEX(GOAL_Send(g, a, 1, 0, -1, US), "GOAL_Send: tag: -1 is negative");
    NO_VERTEX(GOAL_Send(g, a, 1, 0, 0, (GOAL_MemType)7), "GOAL_Send: buf: its memory, 7, is neither");
    NO_VERTEX(GOAL_Recv(g, NULL, 1, 0, 0, US), "GOAL_Recv: buf: is NULL");
    NO_VERTEX(GOAL_Recv(g, a, 1, 2, 0, US), "GOAL_Recv: source: there is no rank 2 in a group of 2");
    NO_VERTEX(GOAL_Recv(g, a, 1, 0, -2, US), "GOAL_Recv: tag: -2 is negative");
    NO_VERTEX(GOAL_SendVec(g, NULL, lengths, 2, 0, 0, US), "GOAL_SendVec: offsets: is NULL");
    NO_VERTEX(GOAL_SendVec(g, pieces, NULL, 2, 0, 0, US), "GOAL_SendVec: lengths: is NULL");
    NO_VERTEX(GOAL_SendVec(g, pieces, lengths, -2, 0, 0, US), "GOAL_SendVec: num_elements: -2 is negative");
    NO_VERTEX(GOAL_SendVec(g, pieces, negative, 2, 0, 0, US), "GOAL_SendVec: lengths[1]: -1 is negative");
    NO_VERTEX(GOAL_SendVec(g, with_null, lengths, 2, 0, 0, US), "GOAL_SendVec: offsets[1]: is NULL");
    NO_VERTEX(GOAL_SendVec(g, pieces, lengths, 2, 5, 0, US), "GOAL_SendVec: dest: there is no rank 5");
    NO_VERTEX(GOAL_RecvVec(g, pieces, lengths, 2, 5, 0, US), "GOAL_RecvVec: src: there is no rank 5");
    NO_VERTEX(GOAL_RecvVec(g, pieces, negative, 2, 0, 0, US), "GOAL_RecvVec: lengths[1]: -1 is negative");

    NO_VERTEX(GOAL_LocalOp(g, a, b, c, (GOAL_Op)11, GOAL_UINT, 8, 1, US, US, US),
              "GOAL_LocalOp: op: 11 is no GOAL_Op");
    NO_VERTEX(GOAL_LocalOp(g, a, b, c, GOAL_ADD, (GOAL_DataType)3, 8, 1, US, US, US),
              "GOAL_LocalOp: dt: 3 is no GOAL_DataType");
    NO_VERTEX(GOAL_LocalOp(g, a, b, c, GOAL_ADD, GOAL_UINT, 4, 1, US, US, US),
              "GOAL_LocalOp: element_width: 4 is none of 8, 16, 32 and 64 bits");
    NO_VERTEX(GOAL_LocalOp(g, a, b, c, GOAL_XOR, GOAL_FLOAT, 64, 1, US, US, US),
              "GOAL_LocalOp: op: there is no GOAL_XOR on GOAL_FLOAT of 64 bits");
    NO_VERTEX(GOAL_LocalOp(g, a, b, c, GOAL_ADD, GOAL_FLOAT, 8, 1, US, US, US),
              "GOAL_LocalOp: op: there is no GOAL_ADD on GOAL_FLOAT of 8 bits");
    NO_VERTEX(GOAL_LocalOp(g, a, b, c, GOAL_ADD, GOAL_UINT, 8, -1, US, US, US),
              "GOAL_LocalOp: num_elements: -1 is negative");
    NO_VERTEX(GOAL_LocalOp(g, NULL, b, c, GOAL_ADD, GOAL_UINT, 8, 1, US, US, US),
              "GOAL_LocalOp: b1: is NULL");
    NO_VERTEX(GOAL_LocalOp(g, a, NULL, c, GOAL_ADD, GOAL_UINT, 8, 1, US, US, US),
              "GOAL_LocalOp: b2: is NULL");
    NO_VERTEX(GOAL_LocalOp(g, a, b, NULL, GOAL_ADD, GOAL_UINT, 8, 1, US, US, US),
              "GOAL_LocalOp: bres: is NULL");
    NO_VERTEX(GOAL_LocalOpVec(g, pieces, lengths, 2, pieces, lengths, 2, pieces, odd, 2, GOAL_UINT, 16,
                              GOAL_ADD, US, US, US),
              "GOAL_LocalOpVec: lengths3: come to 15 bytes, which are no whole elements of 16 bits");
    NO_VERTEX(GOAL_LocalOpVec(g, pieces, lengths, 1, pieces, lengths, 2, pieces, lengths, 2, GOAL_UINT, 8,
                              GOAL_ADD, US, US, US),
              "GOAL_LocalOpVec: lengths1: come to 8 bytes, where the result has 16");
    NO_VERTEX(GOAL_LocalOpVec(g, pieces, lengths, 2, pieces, lengths, 1, pieces, lengths, 2, GOAL_UINT, 8,
                              GOAL_ADD, US, US, US),
              "GOAL_LocalOpVec: lengths2: come to 8 bytes, where the result has 16");
    NO_VERTEX(
        GOAL_LocalOpVec(g, NULL, NULL, 0, NULL, NULL, 0, pieces, lengths, 2, 0, 0, GOAL_WTIME, US, US, US),
        "GOAL_LocalOpVec: lengths3: come to 16 bytes, where the result has 8");
    NO_VERTEX(GOAL_LocalOp(g, a, b, a + 1, GOAL_ADD, GOAL_UINT, 8, 8, US, US, US),
              "GOAL_LocalOp: bres: overlaps an operand and is not in its place");
    NO_VERTEX(GOAL_LocalOp(g, b, a + 7, a, GOAL_ADD, GOAL_UINT, 8, 8, US, US, US),
              "GOAL_LocalOp: bres: overlaps");
    void* swapped[] = {a + 8, a};
    NO_VERTEX(GOAL_LocalOpVec(g, pieces, lengths, 2, pieces, lengths, 2, swapped, lengths, 2, GOAL_UINT, 8,
                              GOAL_ADD, US, US, US),
              "GOAL_LocalOpVec: buf3: overlaps an operand and is not in its place");
    NO_VERTEX(GOAL_Call(g, NULL, NULL), "GOAL_Call: function: is NULL");

    /* None of them is in the graph. */
    CHECK(GOAL_Send(g, a, 1, 0, 0, US) == 0 && GOAL_Recv(g, b, 1, 0, 0, US) == 1,
          "vertices are not numbered from 0");
    /* In place, however it is cut, and side by side. */
    void* whole[] = {a};
    int both[] = {16};
    GOAL_Graph right = GOAL_CreateGraph();
    CHECK(GOAL_LocalOpVec(right, whole, both, 1, pieces, lengths, 2, pieces, lengths, 2, GOAL_UINT, 8,
                          GOAL_ADD, US, US, US) == 0 &&
              GOAL_LocalOp(right, a, a + 8, a + 16, GOAL_ADD, GOAL_UINT, 8, 8, US, US, US) == 1 &&
              GOAL_LocalOp(right, a + 8, a + 8, a, GOAL_ADD, GOAL_UINT, 8, 8, US, US, US) == 2,
          "%s", GOAL_ErrorText());
    CHECK(GOAL_FreeGraph(right) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    NO_STATUS(GOAL_Requires(NULL, 0, 1), GOAL_ERR_ARGUMENT, "GOAL_Requires: graph: is NULL");
    NO_STATUS(GOAL_Requires(g, 2, 1), GOAL_ERR_ARGUMENT,
              "GOAL_Requires: prereq: 2 is none of the graph's 2 operations");
    NO_STATUS(GOAL_Requires(g, 0, GOAL_INVALID_VERTEX), GOAL_ERR_ARGUMENT,
              "GOAL_Requires: target: GOAL_INVALID_VERTEX is none of the graph's 2 operations");
    NO_STATUS(GOAL_RequiresStart(g, 0, 9), GOAL_ERR_ARGUMENT, "GOAL_RequiresStart: target: 9 is none");
    NO_STATUS(GOAL_FreeGraph(NULL), GOAL_ERR_ARGUMENT, "GOAL_FreeGraph: graph: is NULL");
    CHECK(GOAL_FreeGraph(g) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
}

static void scratchpads(void) {
    GOAL_Graph g = GOAL_CreateGraph();
    GOAL_Send(g, (void*)60, 8, 0, 0, GSP);
    REFUSED(GOAL_Compile(g) == NULL, GOAL_ERR_GRAPH,
            "GOAL_Compile: graph: operations use 68 bytes of a scratchpad that GOAL_AllocateScratchpad has "
            "not made");
    NO_STATUS(GOAL_AllocateScratchpad(g, 67), GOAL_ERR_ARGUMENT,
              "GOAL_AllocateScratchpad: bytes: 67 are less than the 68 that operations reach to");
    CHECK(GOAL_AllocateScratchpad(g, 68) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    NO_STATUS(GOAL_AllocateScratchpad(g, 68), GOAL_ERR_STATE,
              "GOAL_AllocateScratchpad: graph: has a scratchpad already");
    NO_VERTEX(GOAL_Recv(g, (void*)61, 8, 0, 0, GSP),
              "GOAL_Recv: buf: 8 bytes at offset 61 are beyond the scratchpad of 68 bytes");
    NO_VERTEX(GOAL_Recv(g, (void*)UINTPTR_MAX, 8, 0, 0, GSP),
              "GOAL_Recv: buf: 8 bytes at offset 18446744073709551615");
    NO_STATUS(GOAL_AllocateScratchpad(NULL, 1), GOAL_ERR_ARGUMENT, "GOAL_AllocateScratchpad: graph: is NULL");
    GOAL_FreeGraph(g);
    for (size_t less = 0; less <= 64; less += 32) {
        g = GOAL_CreateGraph();
        CHECK(GOAL_AllocateScratchpad(g, SIZE_MAX - less) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
        GOAL_Schedule schedule = GOAL_Compile(g);
        REFUSED((GOAL_Run(schedule), 1), GOAL_ERR_MEMORY, "GOAL_Run: there is no more memory");
        CHECK(GOAL_FreeSchedule(schedule) == GOAL_SUCCESS && GOAL_FreeGraph(g) == GOAL_SUCCESS, "%s",
              GOAL_ErrorText());
    }
}

static void schedules(void) {
    char a[8];
    GOAL_Graph g = GOAL_CreateGraph();
    GOAL_Vertex send = GOAL_Send(g, a, 8, 1, 4, US), recv = GOAL_Recv(g, a, 8, 1, 0, US);
    GOAL_Requires(g, send, recv);
    GOAL_Requires(g, recv, send);
    REFUSED(GOAL_Compile(g) == NULL, GOAL_ERR_GRAPH, "GOAL_Compile: graph: rank ");
    CHECK(strstr(GOAL_ErrorText(),
                 "operation 0 (send 8b to 1 tag 4) waits for operation 1 (recv 8b from 1) waits for "
                 "operation 0") ||
              strstr(GOAL_ErrorText(),
                     "operation 1 (recv 8b from 1) waits for operation 0 (send 8b to 1 tag 4) waits for "
                     "operation 1"),
          "%s", GOAL_ErrorText());
    GOAL_FreeGraph(g);
    REFUSED(GOAL_Compile(NULL) == NULL, GOAL_ERR_ARGUMENT, "GOAL_Compile: graph: is NULL");
    CHECK(GOAL_IsScheduleValid(NULL) == 0, "NULL is valid");
    REFUSED((GOAL_MakeScheduleReusable(NULL), 1), GOAL_ERR_ARGUMENT,
            "GOAL_MakeScheduleReusable: sched: is NULL");
    NO_STATUS(GOAL_FreeSchedule(NULL), GOAL_ERR_ARGUMENT, "GOAL_FreeSchedule: sched: is NULL");

    GOAL_Handle none;
    REFUSED((none = GOAL_Run(NULL), 1), GOAL_ERR_ARGUMENT, "GOAL_Run: sched: is NULL");
    NO_STATUS(GOAL_Test(none), GOAL_ERR_ARGUMENT, "GOAL_Test: handle: is that of a run that was not started");
    NO_STATUS(GOAL_Wait(none), GOAL_ERR_ARGUMENT, "GOAL_Wait: handle: is that of a run that was not started");

    g = GOAL_CreateGraph();
    GOAL_Schedule empty = GOAL_Compile(g);
    CHECK(GOAL_IsScheduleValid(empty) == 1, "not valid");
    GOAL_FreeGraph(g);
    const char* const over = "has been waited for already, or its schedule has been freed";
    char text[200];
    GOAL_Handle first = GOAL_Run(empty);
    CHECK(GOAL_Wait(first) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    snprintf(text, sizeof text, "GOAL_Wait: handle: %s", over);
    NO_STATUS(GOAL_Wait(first), GOAL_ERR_ARGUMENT, text);
    GOAL_Handle second = GOAL_Run(empty);
    NO_STATUS(GOAL_Wait(first), GOAL_ERR_ARGUMENT, text); /* although there is a run again */
    CHECK(GOAL_Test(second) == 1 && GOAL_Test(second) == 1 && GOAL_Wait(second) == GOAL_SUCCESS, "%s",
          GOAL_ErrorText());
    GOAL_Handle third = GOAL_Run(empty);
    NO_STATUS(GOAL_Finalize(), GOAL_ERR_STATE, "GOAL_Finalize: 1 runs have not been waited for");
    CHECK(GOAL_Test(third) == 1, "an empty run is not over");
    CHECK(GOAL_FreeSchedule(empty) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    snprintf(text, sizeof text, "GOAL_Test: handle: %s", over);
    NO_STATUS(GOAL_Test(third), GOAL_ERR_ARGUMENT, text);
}

static void groups(void) {
    GOAL_Group group;
    NO_STATUS(GOAL_InitComm(MPI_COMM_NULL, &group), GOAL_ERR_ARGUMENT,
              "GOAL_InitComm: comm: is MPI_COMM_NULL");
    CHECK(group == NULL, "there is a group");
    NO_STATUS(GOAL_InitComm(MPI_COMM_WORLD, NULL), GOAL_ERR_ARGUMENT, "GOAL_InitComm: group: is NULL");
    MPI_Comm half, across;
    MPI_Comm_split(MPI_COMM_WORLD, my_rank, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - my_rank, 0, &across);
    NO_STATUS(GOAL_InitComm(across, &group), GOAL_ERR_ARGUMENT,
              "GOAL_InitComm: comm: is an inter-communicator");
    MPI_Comm_free(&across);
    NO_STATUS(GOAL_FreeGroup(&group), GOAL_ERR_ARGUMENT, "GOAL_FreeGroup: group: is NULL");
    NO_STATUS(GOAL_FreeGroup(NULL), GOAL_ERR_ARGUMENT, "GOAL_FreeGroup: group: is NULL");
    NO_STATUS(GOAL_GroupSize_r(NULL), GOAL_ERR_ARGUMENT, "GOAL_GroupSize_r: group: is NULL");
    NO_STATUS(GOAL_MyRank_r(NULL), GOAL_ERR_ARGUMENT, "GOAL_MyRank_r: group: is NULL");
    REFUSED(GOAL_CreateGraph_r(NULL) == NULL, GOAL_ERR_ARGUMENT, "GOAL_CreateGraph_r: group: is NULL");

    /* A group of this process alone; what outlives it can only be freed. */
    CHECK(GOAL_InitComm(half, &group) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    MPI_Comm_free(&half);
    CHECK(GOAL_GroupSize_r(group) == 1 && GOAL_MyRank_r(group) == 0, "%d, %d", GOAL_GroupSize_r(group),
          GOAL_MyRank_r(group));
    GOAL_Graph g = GOAL_CreateGraph_r(group);
    char a[1];
    NO_VERTEX(GOAL_Send(g, a, 1, 1, 0, US), "GOAL_Send: dest: there is no rank 1 in a group of 1");
    GOAL_Schedule schedule = GOAL_Compile(g);
    CHECK(GOAL_FreeGroup(&group) == GOAL_SUCCESS && group == NULL, "%s", GOAL_ErrorText());
    REFUSED(GOAL_Send(g, a, 1, 0, 0, US) == GOAL_INVALID_VERTEX, GOAL_ERR_STATE,
            "GOAL_Send: graph: its group has been freed");
    REFUSED(GOAL_Compile(g) == NULL, GOAL_ERR_STATE, "GOAL_Compile: graph: its group has been freed");
    REFUSED((GOAL_Run(schedule), 1), GOAL_ERR_STATE, "GOAL_Run: sched: its group has been freed");
    CHECK(GOAL_FreeSchedule(schedule) == GOAL_SUCCESS && GOAL_FreeGraph(g) == GOAL_SUCCESS, "%s",
          GOAL_ErrorText());
}

static void after_finalize(void) {
    NO_STATUS(GOAL_Finalize(), GOAL_ERR_STATE, "GOAL_Finalize: GOAL_Finalize has been called");
    NO_STATUS(GOAL_GroupSize(), GOAL_ERR_STATE, "GOAL_GroupSize: GOAL_Finalize has been called");
    NO_STATUS(GOAL_Init(), GOAL_ERR_STATE, "GOAL_Init: has been called already");
    CHECK(GOAL_IsInitialized() == 1 && GOAL_IsFinalized() == 1, "not finalized");
}

static void unfinished(void) {
    char a[8];
    GOAL_Group group;
    CHECK(GOAL_InitComm(MPI_COMM_WORLD, &group) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    GOAL_Graph g = GOAL_CreateGraph();
    GOAL_Recv(g, a, 8, 1 - my_rank, 0, US);
    GOAL_Schedule schedule = GOAL_Compile(g);
    GOAL_Handle handle = GOAL_Run(schedule);
    MPI_Finalize();
    NO_STATUS(GOAL_Test(handle), GOAL_ERR_STATE, "GOAL_Test: MPI is finalized");
    NO_STATUS(GOAL_Wait(handle), GOAL_ERR_STATE, "GOAL_Wait: MPI is finalized");
    REFUSED((GOAL_Run(schedule), 1), GOAL_ERR_STATE, "GOAL_Run: MPI is finalized");
    NO_STATUS(GOAL_FreeSchedule(schedule), GOAL_ERR_STATE,
              "GOAL_FreeSchedule: sched: a run of it is under way");
    REFUSED(GOAL_Compile(g) == NULL, GOAL_ERR_STATE, "GOAL_Compile: MPI is finalized");
    REFUSED(GOAL_CreateGraph() == NULL, GOAL_ERR_STATE, "GOAL_CreateGraph: MPI is finalized");
    NO_STATUS(GOAL_FreeGroup(&group), GOAL_ERR_STATE, "GOAL_FreeGroup: MPI is finalized");
    NO_STATUS(GOAL_GroupSize_r(group), GOAL_ERR_STATE, "GOAL_GroupSize_r: MPI is finalized");
    NO_STATUS(GOAL_Finalize(), GOAL_ERR_STATE, "GOAL_Finalize: MPI is finalized");
    CHECK(GOAL_FreeGraph(g) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "return";
    CHECK(GOAL_SetErrorHandler(handler) == GOAL_ErrorsAbort, "another default");
    if (strcmp(what, "return") == 0) {
        CHECK(strcmp(GOAL_ErrorText(), "") == 0, "%s", GOAL_ErrorText());
        NO_STATUS(GOAL_Init(), GOAL_ERR_STATE, "GOAL_Init: MPI is not initialised: call MPI_Init before");
    }
    start(&argc, &argv);
    if (strcmp(what, "foreign") == 0) CHECK(dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) != NULL, "%s", dlerror());
    if (strcmp(what, "return") == 0) before_init();
    if (strcmp(what, "unused") == 0 || strcmp(what, "foreign") == 0) {
        NO_STATUS(GOAL_Init(), GOAL_ERR_VELO, "GOAL_Init: ");
        CHECK(GOAL_IsInitialized() == 0, "initialised");
        if (my_rank == 0) printf("%s\nrefused=%d\n", GOAL_ErrorText(), tried);
        MPI_Finalize();
        return 0;
    }
    CHECK(GOAL_Init() == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    CHECK(GOAL_IsInitialized() == 1 && GOAL_IsFinalized() == 0, "not initialised");
    CHECK(GOAL_GroupSize() == ranks && GOAL_MyRank() == my_rank, "%d of %d", GOAL_MyRank(), GOAL_GroupSize());
    if (strcmp(what, "abort") == 0) {
        GOAL_SetErrorHandler(NULL);
        if (my_rank == 1) GOAL_Send(GOAL_CreateGraph(), NULL, 1, 0, 0, US);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (strcmp(what, "unfinished") == 0) {
        unfinished();
        if (my_rank == 0) printf("refused=%d\n", tried);
        return 0;
    }
    NO_STATUS(GOAL_Init(), GOAL_ERR_STATE, "GOAL_Init: has been called already");
    operations();
    scratchpads();
    schedules();
    groups();
    CHECK(GOAL_Finalize() == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    after_finalize();
    if (my_rank == 0) printf("refused=%d\n", tried);
    MPI_Finalize();
    return 0;
}
