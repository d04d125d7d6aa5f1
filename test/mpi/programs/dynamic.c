/* Processes of several jobs talk to each other.
 * dynamic spawn CHILDREN [HOST HOST]  spawns twice, on these hosts, talks to the children, merges and talks again
 * dynamic leave CHILDREN          spawns once, merges, sums up, and finalizes without having disconnected
 * dynamic crowd CHILDREN           spawns so many at one time, talks to them and disconnects
 * dynamic guests ROUNDS CHILDREN  spawns so many, talks to them and disconnects, again and again: no trace of them is left
 * dynamic growth ROUNDS           spawns one, talks to it and disconnects, again and again: how much memory each has taken for good
 * dynamic owing                   a process has packets to send, without a credit, while it waits for the other half to connect or
 *                                 disconnect
 * dynamic halves                  the two halves of one job connect through a port
 * dynamic accept FILE ROUNDS      opens a port, writes its name to FILE, accepts
 * dynamic connect FILE ROUNDS     connects to the port in FILE */
#include "common.h"

/* Every process of one side exchanges messages with every process of the other; on an intracommunicator, of
 * all. */
static void talk(MPI_Comm comm, uint64_t round) {
    static const int kBytes[] = {8, 300, 5000, 100000};
    int inter, rank, peers;
    MPI_Comm_test_inter(comm, &inter);
    MPI_Comm_rank(comm, &rank);
    if (inter) {
        MPI_Comm_remote_size(comm, &peers);
    } else {
        MPI_Comm_size(comm, &peers);
    }
    unsigned char *out = allocate(100000), *in = allocate(100000);
    for (size_t k = 0; k < sizeof kBytes / sizeof *kBytes; ++k) {
        pattern_fill(out, (size_t)kBytes[k], seed_of(rank, round, (int)k));
        MPI_Request* requests = allocate(sizeof *requests * (size_t)peers);
        for (int peer = 0; peer < peers; ++peer) {
            MPI_Isend(out, kBytes[k], MPI_BYTE, peer, 8, comm, &requests[peer]);
        }
        for (int peer = 0; peer < peers; ++peer) {
            memset(in, 0, (size_t)kBytes[k]);
            MPI_Recv(in, kBytes[k], MPI_BYTE, peer, 8, comm, MPI_STATUS_IGNORE);
            pattern_check(in, (size_t)kBytes[k], seed_of(peer, round, (int)k), "talk");
        }
        MPI_Waitall(peers, requests, MPI_STATUSES_IGNORE);
        free(requests);
    }
    free(out), free(in);
}

static void sum_up(MPI_Comm merged, int expected) {
    int sum, one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
    CHECK(sum == expected, "%d processes in the sum", sum);
}

static void merge_and_talk(MPI_Comm bridge, int high, int expected) {
    MPI_Comm merged;
    int size;
    MPI_Intercomm_merge(bridge, high, &merged);
    MPI_Comm_size(merged, &size);
    CHECK(size == expected, "merged communicator of %d processes", size);
    talk(merged, 1);
    sum_up(merged, expected);
    MPI_Comm_free(&merged);
}

/* Whoever has its sum may leave at once, whatever the others still have to do. */
static void sum_up_and_leave(MPI_Comm bridge, int high, int expected) {
    MPI_Comm merged;
    MPI_Intercomm_merge(bridge, high, &merged);
    /* MPI_Finalize of 5.0 cannot send to a process of another job to which nothing was sent before:
     * docs/known-issues.md. */
    if (OMPI_MAJOR_VERSION == 5) talk(merged, 1);
    sum_up(merged, expected);
}

/* `host`: where it should be, or NULL. */
static void child(MPI_Comm parent, const char* way, const char* host) {
    int parents;
    char here[256] = "";
    gethostname(here, sizeof here - 1);
    CHECK(host == NULL || strcmp(here, host) == 0, "spawned on %s instead of %s", here, host);
    MPI_Comm_remote_size(parent, &parents);
    if (strcmp(way, "guest") == 0) {
        talk(parent, 0);
        MPI_Comm_disconnect(&parent);
        return;
    }
    if (strcmp(way, "leaver") == 0) {
        sum_up_and_leave(parent, 1, parents + ranks);
        return;
    }
    talk(parent, 0);
    merge_and_talk(parent, 1, parents + ranks);
    talk(parent, 2);
    MPI_Comm_disconnect(&parent);
}

static void leave(char* program, int children) {
    MPI_Comm bridge;
    char* arguments[] = {"leaver", NULL};
    MPI_Comm_spawn(program, arguments, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &bridge, MPI_ERRCODES_IGNORE);
    sum_up_and_leave(bridge, 0, ranks + children);
    if (my_rank == 0) printf("spawned=%d\n", children);
}

static void receive_guests(char* program, int children) {
    MPI_Comm bridge;
    char* arguments[] = {"guest", NULL};
    MPI_Comm_spawn(program, arguments, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &bridge, MPI_ERRCODES_IGNORE);
    talk(bridge, 0);
    MPI_Comm_disconnect(&bridge);
}

static void crowd(char* program, int children) {
    receive_guests(program, children);
    if (my_rank == 0) printf("spawned=%d\n", children);
}

/* After the first quarter, in which tables grow. */
static void growth(char* program, int rounds) {
    long resident = 0;
    for (int round = 0; round < rounds; ++round) {
        if (round == rounds / 4) resident = resident_kib();
        receive_guests(program, 1);
    }
    if (my_rank == 0)
        printf("spawned=%d kib=%ld\n", rounds, (resident_kib() - resident) / (rounds - rounds / 4));
}

/* `hosts`: of each spawn, or NULL: where the launcher likes. */
static void spawn(char* program, int children, char** hosts) {
    MPI_Comm bridges[2];
    for (int i = 0; i < 2; ++i) {
        char* arguments[] = {"child", hosts == NULL ? NULL : hosts[i], NULL};
        MPI_Info where = MPI_INFO_NULL;
        if (hosts != NULL) {
            MPI_Info_create(&where);
            MPI_Info_set(where, "host", hosts[i]);
        }
        MPI_Comm_spawn(program, arguments, children, where, 0, MPI_COMM_WORLD, &bridges[i], MPI_ERRCODES_IGNORE);
        if (hosts != NULL) MPI_Info_free(&where);
        talk(bridges[i], 0);
    }
    for (int i = 0; i < 2; ++i) {
        merge_and_talk(bridges[i], 0, ranks + children);
        talk(bridges[i], 2);
        MPI_Comm_disconnect(&bridges[i]);
    }
    if (my_rank == 0) printf("spawned=%d\n", 2 * children);
}

/* Shared memory of Velo's that this process has mapped. */
static int mapped_segments(void) {
    char line[4096];
    int count = 0;
    FILE* maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL, "no /proc/self/maps");
    while (fgets(line, sizeof line, maps) != NULL) count += strstr(line, "/dev/shm/#") != NULL;
    fclose(maps);
    return count;
}

static unsigned long long counter(const char* name) {
    static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    unsigned long long value = 0;
    int provided, index, count;
    if (session == MPI_T_PVAR_SESSION_NULL) {
        CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS, "MPI_T_init_thread");
        CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS, "session");
    }
    CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS, "no variable %s", name);
    MPI_T_pvar_handle handle;
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS && count == 1, "%s", name);
    CHECK(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS, "reading %s", name);
    MPI_T_pvar_handle_free(session, &handle);
    return value;
}

/* More processes than there are places for those of other jobs, each of which ends before the next one comes. */
static void guests(char* program, int rounds, int children) {
    const int job = ranks; /* its mailboxes */
    const int places = 16;
    int most_mapped = 0;
    unsigned long long middle = 0;
    for (int round = 0; round < rounds; ++round) {
        receive_guests(program, children);
        const int now = mapped_segments();
        most_mapped = now > most_mapped ? now : most_mapped;
        if (round == rounds / 2) middle = counter("btl_velo_messages_delayed");
    }
    CHECK(most_mapped <= job + places, "%d segments are mapped", most_mapped);
    const unsigned long long end = counter("btl_velo_messages_delayed");
    CHECK(end <= 3 * middle + 100, "messages delayed: %llu in the first half, %llu then", middle, end - middle);
    /* The last ones have yet to end, and this process to notice. */
    while (mapped_segments() > job) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    if (my_rank == 0) printf("guests=%d\n", rounds * children);
}

static void halves(void) {
    MPI_Comm half, bridge;
    char port[MPI_MAX_PORT_NAME] = "";
    bool accepts = my_rank < ranks / 2;
    int size;
    MPI_Comm_split(MPI_COMM_WORLD, accepts, my_rank, &half);
    if (my_rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (accepts) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &bridge);
    } else {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &bridge);
    }
    MPI_Comm_remote_size(bridge, &size);
    talk(bridge, 0);
    merge_and_talk(bridge, !accepts, ranks);
    MPI_Comm_disconnect(&bridge);
    if (my_rank == 0) {
        MPI_Close_port(port);
        printf("remote=%d\n", size);
    }
    MPI_Comm_free(&half);
}

enum { kDebts = 200, kLarge = 100000 };

typedef struct {
    bool owes;
    int partner;
    unsigned char* large;
    uint64_t values[kDebts];
    MPI_Request requests[kDebts];
} Debt;

/* The debtor has received a large message, but what tells that to its sender stands behind more small messages than a mailbox
 * takes. Whoever needs to know does not make progress before the debtor waits for something else. */
static void owe(Debt* debt, bool owes, int partner) {
    debt->owes = owes, debt->partner = partner;
    debt->large = allocate(kLarge);
    if (owes) {
        for (uint64_t k = 0; k < kDebts; ++k) {
            debt->values[k] = k;
            MPI_Isend(&debt->values[k], 1, MPI_UINT64_T, partner, 9, MPI_COMM_WORLD, &debt->requests[k]);
        }
        memset(debt->large, 0, kLarge);
        MPI_Recv(debt->large, kLarge, MPI_BYTE, partner, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pattern_check(debt->large, kLarge, seed_of(partner, 0, 0), "owe");
    } else {
        MPI_Request request;
        pattern_fill(debt->large, kLarge, seed_of(my_rank, 0, 0));
        MPI_Isend(debt->large, kLarge, MPI_BYTE, partner, 10, MPI_COMM_WORLD, &request);
        sleep_ms(200);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void pay(Debt* debt) {
    for (uint64_t k = 0; k < kDebts && !debt->owes; ++k) {
        uint64_t value;
        MPI_Recv(&value, 1, MPI_UINT64_T, debt->partner, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(value == k, "message %llu instead of %llu", (unsigned long long)value, (unsigned long long)k);
    }
    if (debt->owes) MPI_Waitall(kDebts, debt->requests, MPI_STATUSES_IGNORE);
    free(debt->large);
}

static void owing(void) {
    static Debt debt;
    MPI_Comm half, bridge;
    char port[MPI_MAX_PORT_NAME] = "";
    const bool accepts = my_rank < ranks / 2;
    const int partner = accepts ? my_rank + ranks / 2 : my_rank - ranks / 2;
    MPI_Comm_split(MPI_COMM_WORLD, accepts, my_rank, &half);
    if (my_rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    owe(&debt, accepts, partner);
    if (accepts) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &bridge);
    } else {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &bridge);
    }
    pay(&debt);
    owe(&debt, !accepts, partner);
    MPI_Comm_disconnect(&bridge);
    pay(&debt);
    if (my_rank == 0) {
        MPI_Close_port(port);
        printf("debts=2\n");
    }
    MPI_Comm_free(&half);
}

static void write_port(const char* path, const char* port) {
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE* file = fopen(temporary, "w");
    CHECK(file != NULL && fputs(port, file) >= 0 && fclose(file) == 0, "cannot write %s", temporary);
    CHECK(rename(temporary, path) == 0, "cannot rename %s", temporary);
}

static void read_port(const char* path, char* port) {
    FILE* file;
    while ((file = fopen(path, "r")) == NULL) sleep_ms(20);
    CHECK(fgets(port, MPI_MAX_PORT_NAME, file) != NULL, "no port in %s", path);
    fclose(file);
}

/* From kMany ROUNDS on they leave no trace of Velo's, in memory or in credits. */
static void accept_or_connect(bool accepts, const char* path, int rounds) {
    char port[MPI_MAX_PORT_NAME] = "";
    enum { kMany = 100 };
    long resident = 0;
    int segments = 0;
    unsigned long long delayed = 0;
    if (my_rank == 0 && accepts) {
        MPI_Open_port(MPI_INFO_NULL, port);
        write_port(path, port);
    } else if (my_rank == 0) {
        read_port(path, port);
    }
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int round = 0; round < rounds; ++round) {
        MPI_Comm bridge;
        if (accepts) {
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &bridge);
        } else {
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &bridge);
        }
        talk(bridge, (uint64_t)round);
        MPI_Comm_disconnect(&bridge);
        if (rounds >= kMany && round == rounds / 4) { /* tables have grown */
            /* The first one makes MPI_T open what components there are, which takes 3 MiB. */
            delayed = counter("btl_velo_messages_delayed");
            resident = resident_kib();
            segments = mapped_segments();
        }
    }
    if (rounds >= kMany) {
        const unsigned long long later = counter("btl_velo_messages_delayed") - delayed;
        CHECK(resident_kib() <= resident + 2048, "%ld KiB resident, then %ld", resident, resident_kib());
        CHECK(mapped_segments() == segments, "%d segments are mapped, then %d", segments, mapped_segments());
        CHECK(later <= 4 * delayed + 100, "messages delayed: %llu in the first quarter, %llu then", delayed, later);
    }
    if (my_rank == 0 && accepts) MPI_Close_port(port);
    if (my_rank == 0) printf("connections=%d\n", rounds);
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    start(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    const char* way = argc > 1 ? argv[1] : "";
    if (parent != MPI_COMM_NULL) {
        child(parent, way, argc > 2 ? argv[2] : NULL);
    } else if (strcmp(way, "spawn") == 0) {
        spawn(argv[0], (int)argument(argc, argv, 2, 2), argc > 4 ? argv + 3 : NULL);
    } else if (strcmp(way, "leave") == 0) {
        leave(argv[0], (int)argument(argc, argv, 2, 2));
    } else if (strcmp(way, "crowd") == 0) {
        crowd(argv[0], (int)argument(argc, argv, 2, 2));
    } else if (strcmp(way, "guests") == 0) {
        guests(argv[0], (int)argument(argc, argv, 2, 2), (int)argument(argc, argv, 3, 1));
    } else if (strcmp(way, "growth") == 0) {
        growth(argv[0], (int)argument(argc, argv, 2, 4));
    } else if (strcmp(way, "owing") == 0) {
        owing();
    } else if (strcmp(way, "halves") == 0) {
        halves();
    } else if (strcmp(way, "accept") == 0 || strcmp(way, "connect") == 0) {
        accept_or_connect(strcmp(way, "accept") == 0, argv[2], (int)argument(argc, argv, 3, 1));
    } else {
        CHECK(false, "no such way");
    }
    MPI_Finalize();
    return 0;
}
