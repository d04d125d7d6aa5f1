/* Reads btl_velo_* through plain MPI_T: before traffic, while rank 1 receives nothing and rank 0 has used up its
 * credits, and afterwards. Rank 1 begins to receive when rank 0 tells it to, so a busy machine changes nothing.
 * Arguments: milliseconds that rank 0 waits; messages; "early" to allocate the handles before MPI_Init. */
#include <signal.h>

#include "common.h"

enum { MOST = 256, BYTES = 1000 };

static MPI_T_pvar_session session;
static struct variable {
    char name[128];
    int class;
    int count;
    MPI_T_pvar_handle handle;
    unsigned long long values[1024];
} variables[MOST];
static int known;

static void add(int index) {
    CHECK(known < MOST, "too many variables");
    struct variable* variable = &variables[known];
    char help[512];
    int name_length = sizeof variable->name, help_length = sizeof help;
    int verbosity, bind, readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum values;
    if (MPI_T_pvar_get_info(index, variable->name, &name_length, &verbosity, &variable->class, &type, &values, help,
                            &help_length, &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS)
        return; /* of a component that is closed */
    if (strncmp(variable->name, "btl_velo_", 9) != 0) return;
    CHECK(type == MPI_UNSIGNED_LONG_LONG && bind == MPI_T_BIND_NO_OBJECT && readonly && continuous, "%s",
          variable->name);
    CHECK(strlen(help) > 10, "%s has no description", variable->name);
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &variable->handle, &variable->count) == MPI_SUCCESS,
          "no handle for %s", variable->name);
    CHECK(variable->count <= 1024, "%s: %d values", variable->name, variable->count);
    ++known;
}

static void attach(void) {
    int provided, count;
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS, "MPI_T_init_thread");
    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS, "session");
    CHECK(MPI_T_pvar_get_num(&count) == MPI_SUCCESS, "number of variables");
    for (int index = 0; index < count; ++index) add(index);
}

static void read_all(void) {
    for (int i = 0; i < known; ++i) {
        CHECK(MPI_T_pvar_read(session, variables[i].handle, variables[i].values) == MPI_SUCCESS, "reading %s",
              variables[i].name);
    }
}

static const struct variable* find(const char* name) {
    for (int i = 0; i < known; ++i) {
        if (strcmp(variables[i].name + 9, name) == 0) return &variables[i];
    }
    fail(__FILE__, __LINE__, "no variable btl_velo_%s among %d", name, known);
}

static unsigned long long value(const char* name) {
    CHECK(find(name)->count == 1, "%s has %d values", name, find(name)->count);
    return find(name)->values[0];
}

/* The value of the peer with that rank in MPI_COMM_WORLD. */
static unsigned long long of_rank(const char* name, int rank) {
    const struct variable* names = find("peer_names");
    for (int i = 0; i < names->count; ++i) {
        if ((int)(names->values[i] & 0xffffffff) == rank) return find(name)->values[i];
    }
    fail(__FILE__, __LINE__, "%s: no peer has rank %d", name, rank);
}

static void show(const char* when) {
    read_all();
    if (my_rank != 0) return;
    for (int i = 0; i < known; ++i) {
        if (variables[i].count == 1) printf("%s_%s=%llu\n", when, variables[i].name + 9, variables[i].values[0]);
    }
}

static void check_sums(void) {
    const char* const pairs[][2] = {{"credits", "peer_credits"},
                                    {"queued_bytes", "peer_queued_bytes"},
                                    {"stalls", "peer_stalls"}};
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; ++p) {
        unsigned long long sum = 0;
        for (int i = 0; i < find(pairs[p][1])->count; ++i) sum += find(pairs[p][1])->values[i];
        CHECK(sum == value(pairs[p][0]), "%s is %llu, the peers add up to %llu", pairs[p][0], value(pairs[p][0]), sum);
    }
}

int main(int argc, char** argv) {
    /* Before Open MPI has threads of its own, which would be told otherwise. */
    sigset_t begin;
    sigemptyset(&begin);
    sigaddset(&begin, SIGUSR1);
    sigprocmask(SIG_BLOCK, &begin, NULL);
    bool early = argc > 3 && strcmp(argv[3], "early") == 0;
    long wait_ms = argument(argc, argv, 1, 200), messages = argument(argc, argv, 2, 100);
    if (early) attach();
    start(&argc, &argv);
    if (!early) attach();
    CHECK(ranks >= 2, "needs two ranks");
    char token = 0;
    for (int peer = 0; peer < ranks; ++peer) {
        if (peer == my_rank) continue;
        MPI_Sendrecv(&token, 1, MPI_CHAR, peer, 9, &token, 1, MPI_CHAR, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    show("before");
    if (!early) CHECK(find("peer_names")->count == ranks - 1, "%d peers", find("peer_names")->count);

    pid_t receiver = getpid();
    MPI_Bcast(&receiver, sizeof receiver, MPI_BYTE, 1, MPI_COMM_WORLD);
    char* data = allocate((size_t)messages * BYTES);
    MPI_Request* requests = allocate((size_t)messages * sizeof(MPI_Request));
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        for (long i = 0; i < messages; ++i) {
            pattern_fill(data + i * BYTES, BYTES, seed_of(0, (uint64_t)i, 1));
            MPI_Isend(data + i * BYTES, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
        }
        show("during");
        if (!early) {
            check_sums();
            printf("during_credits_of_1=%llu\n", of_rank("peer_credits", 1));
            printf("during_queued_of_1=%llu\n", of_rank("peer_queued_bytes", 1));
        }
        for (double end = MPI_Wtime() + 1e-3 * (double)wait_ms; MPI_Wtime() < end;) {
            int all_left;
            MPI_Testall((int)messages, requests, &all_left, MPI_STATUSES_IGNORE);
        }
        CHECK(kill(receiver, SIGUSR1) == 0, "no process %d", (int)receiver);
        MPI_Waitall((int)messages, requests, MPI_STATUSES_IGNORE);
    } else if (my_rank == 1) {
        int signal;
        sigwait(&begin, &signal);
        for (long i = 0; i < messages; ++i) {
            MPI_Recv(data, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            pattern_check(data, BYTES, seed_of(0, (uint64_t)i, 1), "message");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    show("after");
    if (my_rank == 0 && !early) {
        check_sums();
        printf("after_stalls_of_1=%llu\n", of_rank("peer_stalls", 1));
        printf("after_stalled_time_of_1=%llu\n", of_rank("peer_stalled_time", 1));
    }
    if (my_rank == 0) printf("variables=%d\n", known);
    for (int i = 0; i < known; ++i) MPI_T_pvar_handle_free(session, &variables[i].handle);
    MPI_T_pvar_session_free(&session);
    free(data), free(requests);
    /* Not after MPI_Finalize: Open MPI 4.1 crashes there with any transport. */
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
