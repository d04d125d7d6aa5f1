/* Runs, one kind after the other: runs KIND COUNT...
 * `ahead`: the same schedule again and again while runs of it are under way; `vectors`, cut differently
 * at both ends; `extensions`; `mismatch`: a message of another length than its receive. */
#include <goal.h>

#include "../common.h"

#define US GOAL_USERSPACE
#define GSP GOAL_SCRATCHPAD

static GOAL_Schedule compiled(GOAL_Graph g) {
    GOAL_Schedule schedule = GOAL_Compile(g);
    GOAL_FreeGraph(g);
    GOAL_MakeScheduleReusable(schedule);
    return schedule;
}

/* All runs are started before a single message is sent; every run has its message, and its own scratchpad. */
static void ahead(int runs) {
    static uint64_t value, sum;
    GOAL_Handle* handles = allocate(runs * sizeof *handles);
    GOAL_Graph g = GOAL_CreateGraph();
    if (my_rank == 0) {
        for (int rank = 1; rank < ranks; ++rank) GOAL_Send(g, &value, sizeof value, rank, 3, US);
    } else {
        GOAL_AllocateScratchpad(g, sizeof value);
        GOAL_Vertex receive = GOAL_Recv(g, 0, sizeof value, 0, 3, GSP);
        GOAL_Vertex add = GOAL_LocalOp(g, &sum, 0, &sum, GOAL_ADD, GOAL_UINT, 64, 1, US, GSP, US);
        GOAL_Requires(g, receive, add);
    }
    GOAL_Schedule schedule = compiled(g);
    int open = 0;
    if (my_rank > 0) {
        for (int i = 0; i < runs; ++i) handles[i] = GOAL_Run(schedule);
        for (int i = 0; i < runs; ++i) open += GOAL_Test(handles[i]) == 0;
        CHECK(open == runs, "%d of %d runs are under way", open, runs);
        GOAL_SetErrorHandler(GOAL_ErrorsReturn);
        CHECK(GOAL_FreeSchedule(schedule) == GOAL_ERR_STATE, "freed while it runs");
        CHECK(strstr(GOAL_ErrorText(), "GOAL_FreeSchedule: sched: a run of it is under way") != NULL, "%s",
              GOAL_ErrorText());
        GOAL_SetErrorHandler(NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < runs; ++i) {
        value = i + 1;
        if (my_rank == 0) GOAL_Wait(GOAL_Run(schedule));
    }
    for (int i = runs; my_rank > 0 && i-- > 0;) {
        if (i % 2 == 0)
            while (GOAL_Test(handles[i]) == 0) {
            }
        CHECK(GOAL_Wait(handles[i]) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    }
    CHECK(my_rank == 0 || sum == (uint64_t)runs * (runs + 1) / 2, "the sum is %lu", (unsigned long)sum);
    GOAL_FreeSchedule(schedule);
    free(handles);
    if (my_rank == 0) printf("runs=%d\n", runs);
}

/* Cuts `bytes` at `base` into pieces of random lengths, some empty, in memory order with gaps. Returns how
 * many. */
static int cut(uint64_t* random, char* base, size_t room, size_t bytes, void** places, int* lengths,
               int most) {
    int count = 0;
    size_t gaps = room - bytes;
    while (bytes > 0) {
        size_t gap = gaps / 4 > 0 ? next_random(random) % (gaps / 4) : 0,
               length = next_random(random) % (bytes / 3 + 2);
        if (length > bytes || count == most - 1) length = bytes;
        base += gap;
        gaps -= gap;
        places[count] = base;
        lengths[count++] = (int)length;
        base += length;
        bytes -= length;
    }
    return count;
}

/* What is in the pieces, one after the other. */
static void collect(char* to, const char* base, void** places, const int* lengths, int count) {
    for (int i = 0; i < count; ++i) {
        memcpy(to, base + (uintptr_t)places[i], lengths[i]);
        to += lengths[i];
    }
}

static void vectors(int times) {
    enum { MOST = 64 };
    static const size_t sizes[] = {1, 57, 1000, 9000, 70000, 400000};
    for (int i = 0; i < times; ++i) {
        const size_t bytes = sizes[i % 6], room = 2 * bytes + 64;
        uint64_t random = 1000 * i + my_rank;
        void* places[MOST];
        int lengths[MOST];
        char *area = allocate(room), *whole = allocate(bytes), *expected = allocate(bytes);
        const bool in_scratchpad = i % 2 == 1;
        GOAL_Graph g = GOAL_CreateGraph();
        pattern_fill(expected, bytes, seed_of(0, i, 0));
        if (in_scratchpad) GOAL_AllocateScratchpad(g, room);
        /* Absolute addresses, or offsets from 0 on. */
        const int count = cut(&random, in_scratchpad ? (char*)0 : area, room, bytes, places, lengths, MOST);
        const GOAL_MemType mem = in_scratchpad ? GSP : US;
        char* to_area = in_scratchpad ? (char*)0 : area;
        if (my_rank == 0) {
            /* Into the pieces, and from there on its way. */
            void* from[] = {expected};
            int all[] = {(int)bytes};
            GOAL_Vertex copy = GOAL_LocalOpVec(g, from, all, 1, NULL, NULL, 0, places, lengths, count,
                                               GOAL_UINT, 8, GOAL_COPY, US, US, mem);
            GOAL_Vertex send = GOAL_SendVec(g, places, lengths, count, 1, 0, mem);
            GOAL_Requires(g, copy, send);
        } else if (my_rank == 1) {
            void* to[] = {whole};
            int all[] = {(int)bytes};
            GOAL_Vertex receive = GOAL_RecvVec(g, places, lengths, count, 0, 0, mem);
            GOAL_Vertex copy = GOAL_LocalOpVec(g, places, lengths, count, NULL, NULL, 0, to, all, 1,
                                               GOAL_UINT, 8, GOAL_COPY, mem, US, US);
            GOAL_Requires(g, receive, copy);
        }
        /* The lists are copied. */
        void* kept[MOST];
        int kept_lengths[MOST];
        memcpy(kept, places, sizeof places);
        memcpy(kept_lengths, lengths, sizeof lengths);
        memset(places, 0xff, sizeof places);
        memset(lengths, 0xff, sizeof lengths);
        GOAL_Schedule schedule = compiled(g);
        GOAL_Wait(GOAL_Run(schedule));
        if (my_rank == 1) CHECK(memcmp(whole, expected, bytes) == 0, "%zu bytes in %d pieces", bytes, count);
        if (my_rank == 1 && !in_scratchpad) {
            collect(whole, to_area - (uintptr_t)area, kept, kept_lengths, count);
            CHECK(memcmp(whole, expected, bytes) == 0, "%zu bytes in their places", bytes);
        }
        GOAL_FreeSchedule(schedule);
        free(area);
        free(whole);
        free(expected);
    }
    if (my_rank == 0) printf("vectors=%d\n", times);
}

/* A matrix in row-major order is received in column-major order: an element each. */
static void transpose(void) {
    enum { N = 24 };
    static int matrix[N][N];
    GOAL_Graph g = GOAL_CreateGraph();
    void* places[N * N];
    int lengths[N * N];
    for (int i = 0; i < N * N; ++i) {
        places[i] = &matrix[i % N][i / N];
        lengths[i] = sizeof(int);
        if (my_rank == 0) matrix[i / N][i % N] = i;
    }
    if (my_rank == 0) GOAL_Send(g, matrix, sizeof matrix, 1, 0, US);
    if (my_rank == 1) GOAL_RecvVec(g, places, lengths, N * N, 0, 0, US);
    GOAL_Schedule schedule = compiled(g);
    GOAL_Wait(GOAL_Run(schedule));
    for (int i = 0; my_rank == 1 && i < N * N; ++i) CHECK(matrix[i % N][i / N] == i, "element %d", i);
    GOAL_FreeSchedule(schedule);
    if (my_rank == 0) printf("transposed=%d\n", N);
}

static void increment(void* counter) {
    ++*(int*)counter;
}

/* Receives from anybody, two of them in the order of their starts; a function of the program's after both. */
static void extensions(void) {
    static int values[2], calls;
    for (int id = GOAL_EXTENSION_GROUPS; id <= GOAL_EXTENSION_CALL; ++id)
        CHECK(GOAL_IsExtensionAvailable((GOAL_ExtensionId)id) == 1, "extension %d", id);
    CHECK(GOAL_IsExtensionAvailable((GOAL_ExtensionId)99) == 0, "there is everything");
    GOAL_Graph g = GOAL_CreateGraph();
    if (my_rank == 0) {
        GOAL_Vertex one = GOAL_Recv(g, values, sizeof(int), GOAL_ANY_SOURCE, GOAL_ANY_TAG, US);
        GOAL_Vertex two = GOAL_Recv(g, values + 1, sizeof(int), 1, GOAL_ANY_TAG, US);
        GOAL_Vertex call = GOAL_Call(g, increment, &calls);
        GOAL_RequiresStart(g, one, two);
        GOAL_Requires(g, one, call);
        GOAL_Requires(g, two, call);
    } else if (my_rank == 1) {
        values[0] = 11;
        values[1] = 22;
        GOAL_Vertex one = GOAL_Send(g, values, sizeof(int), 0, 5, US);
        GOAL_Vertex two = GOAL_Send(g, values + 1, sizeof(int), 0, 6, US);
        GOAL_Requires(g, one, two);
    }
    GOAL_Schedule schedule = compiled(g);
    for (int run = 0; run < 10; ++run) {
        if (my_rank == 0) values[0] = values[1] = 0;
        GOAL_Wait(GOAL_Run(schedule));
        CHECK(my_rank != 0 || (values[0] == 11 && values[1] == 22 && calls == run + 1), "%d, %d, %d calls",
              values[0], values[1], calls);
    }
    GOAL_FreeSchedule(schedule);
    if (my_rank == 0) printf("calls=%d\n", calls);
}

static void mismatch(void) {
    char data[100];
    GOAL_Graph g = GOAL_CreateGraph();
    GOAL_Vertex receive = GOAL_INVALID_VERTEX;
    if (my_rank == 0) GOAL_Send(g, data, 100, 1, 0, US);
    if (my_rank == 1) {
        GOAL_Call(g, increment, data);
        receive = GOAL_Recv(g, data, 99, 0, 0, US);
    }
    GOAL_Schedule schedule = compiled(g);
    GOAL_SetErrorHandler(GOAL_ErrorsReturn);
    GOAL_Handle run = GOAL_Run(schedule);
    if (my_rank == 1) {
        CHECK(receive == 1, "vertex %u", receive);
        CHECK(GOAL_Wait(run) == GOAL_ERR_RUN, "no error");
        CHECK(strcmp(
                  GOAL_ErrorText(),
                  "GOAL_Wait: handle: the run has failed at vertex 1, with rank 0: the message was longer or "
                  "shorter than its receive") == 0,
              "%s", GOAL_ErrorText());
        printf("failed=1\n");
    } else {
        CHECK(GOAL_Wait(run) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    }
    CHECK(GOAL_FreeSchedule(schedule) == GOAL_SUCCESS, "%s", GOAL_ErrorText());
    GOAL_SetErrorHandler(NULL);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    GOAL_Init();
    for (int i = 1; i < argc; i += 2) {
        const int count = (int)argument(argc, argv, i + 1, 1);
        if (strcmp(argv[i], "ahead") == 0) ahead(count);
        if (strcmp(argv[i], "vectors") == 0) vectors(count), transpose();
        if (strcmp(argv[i], "extensions") == 0) extensions();
        if (strcmp(argv[i], "mismatch") == 0) mismatch();
    }
    GOAL_Finalize();
    MPI_Finalize();
    return 0;
}
