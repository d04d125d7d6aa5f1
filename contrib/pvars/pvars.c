/* Preloaded by velo-pvars: shows the performance variables btl_velo_* of an MPI program, through plain MPI_T.
 *
 * It stands in front of MPI_Init in the library search order and calls the next one, which may be a PMPI tool's. The
 * end it sees without standing in front of anything: MPI_Finalize begins with deleting the attributes of
 * MPI_COMM_SELF, while MPI may still be used.
 *
 * VELO_PVARS_EVERY   seconds between two looks at what has changed
 * VELO_PVARS_PEERS   set: also the values of each peer
 * VELO_PVARS_ALL     set: also what is 0 in all processes
 * VELO_PVARS_OUTPUT  file to append to, in place of standard error */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define PREFIX "btl_velo_"

enum { MOST = 128, NAME = 64, LINE = 4096 };

struct variable {
    char name[NAME]; /* of the BTL: without the prefix */
    int count;
    bool adds_up; /* the values of several ranks */
    MPI_T_pvar_handle handle;
    unsigned long long* values;
    unsigned long long* shown; /* by the looks in between */
};

static struct variable variables[MOST];
static int known;
static MPI_T_pvar_session session;
static MPI_Comm world;
static int my_rank, ranks;
static double begin_seconds;
static FILE* output;
static bool started;

static pthread_t watcher;
static bool watching, stopping;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One write for each piece of text: several processes share the output. */
static void show(const char* text) {
    fputs(text, output);
    fflush(output);
}

__attribute__((format(printf, 4, 5))) static size_t append(char* text, size_t used, size_t room, const char* format, ...) {
    if (used >= room) return used;
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text + used, room - used, format, arguments);
    va_end(arguments);
    return written < 0 ? used : used + (size_t)written < room ? used + (size_t)written : room - 1;
}

/* --- the variables */

static void add(int index) {
    char name[256], help[8];
    int name_length = sizeof name, help_length = sizeof help;
    int verbosity, class, bind, readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum meaning;
    struct variable* variable = &variables[known];
    if (MPI_T_pvar_get_info(index, name, &name_length, &verbosity, &class, &type, &meaning, help, &help_length, &bind,
                            &readonly, &continuous, &atomic) != MPI_SUCCESS)
        return;
    const bool of_mtl = strncmp(name, "mtl_velo_", strlen("mtl_velo_")) == 0;
    if ((strncmp(name, PREFIX, strlen(PREFIX)) != 0 && !of_mtl) || type != MPI_UNSIGNED_LONG_LONG || known == MOST) return;
    if (MPI_T_pvar_handle_alloc(session, index, NULL, &variable->handle, &variable->count) != MPI_SUCCESS) return;
    if (!continuous) MPI_T_pvar_start(session, variable->handle);
    snprintf(variable->name, sizeof variable->name, "%.*s", NAME - 1, of_mtl ? name : name + strlen(PREFIX));
    variable->adds_up = class != MPI_T_PVAR_CLASS_GENERIC;
    const size_t room = variable->count > 0 ? (size_t)variable->count : 1;
    variable->values = calloc(room, sizeof *variable->values);
    variable->shown = calloc(room, sizeof *variable->shown);
    if (variable->values != NULL && variable->shown != NULL) ++known;
}

static bool open_variables(void) {
    int provided, count = 0;
    if (MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) return false;
    if (MPI_T_pvar_session_create(&session) != MPI_SUCCESS || MPI_T_pvar_get_num(&count) != MPI_SUCCESS) return false;
    for (int index = 0; index < count; ++index) add(index);
    return true;
}

static void read_variables(void) {
    for (int i = 0; i < known; ++i) {
        if (variables[i].count > 0) MPI_T_pvar_read(session, variables[i].handle, variables[i].values);
    }
}

static const struct variable* find(const char* name) {
    for (int i = 0; i < known; ++i) {
        if (strcmp(variables[i].name, name) == 0) return &variables[i];
    }
    return NULL;
}

static bool of_peers(const struct variable* variable) {
    return strncmp(variable->name, "peer_", 5) == 0;
}

/* "rank:value,..." of the peers for whom the value is not 0. */
static size_t append_peers(char* text, size_t used, const struct variable* variable) {
    const struct variable* names = find("peer_names");
    bool first = true;
    for (int peer = 0; peer < variable->count; ++peer) {
        if (variable->values[peer] == 0) continue;
        unsigned long long rank = names != NULL && peer < names->count ? names->values[peer] & 0xffffffff
                                                                       : (unsigned long long)peer;
        used = append(text, used, LINE - 8, "%s%llu:%llu", first ? "" : ",", rank, variable->values[peer]);
        first = false;
    }
    return used;
}

/* --- looks in between */

static void show_changes(bool peers) {
    char line[LINE];
    read_variables();
    size_t used = append(line, 0, sizeof line, "velo-pvars: rank %d %.2f s:", my_rank, now_seconds() - begin_seconds);
    const size_t empty = used;
    for (int i = 0; i < known; ++i) {
        struct variable* variable = &variables[i];
        const size_t bytes = (size_t)variable->count * sizeof *variable->values;
        if (strcmp(variable->name, "peer_names") == 0 || memcmp(variable->values, variable->shown, bytes) == 0) continue;
        memcpy(variable->shown, variable->values, bytes);
        if (!of_peers(variable)) {
            used = append(line, used, LINE - 8, " %s=%llu", variable->name, variable->values[0]);
        } else if (peers) {
            used = append(line, used, LINE - 8, " %s=", variable->name);
            used = append_peers(line, used, variable);
        }
    }
    if (used == empty) used = append(line, used, LINE - 8, " (no change)");
    append(line, used, sizeof line, "\n");
    show(line);
}

static void* watch(void* argument) {
    const double every = *(const double*)argument;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&mutex);
    while (!stopping) {
        double at = (double)next.tv_sec + (double)next.tv_nsec * 1e-9 + every;
        next.tv_sec = (time_t)at;
        next.tv_nsec = (long)((at - (double)next.tv_sec) * 1e9);
        while (!stopping && pthread_cond_timedwait(&wake, &mutex, &next) == 0) {
        }
        if (!stopping) show_changes(getenv("VELO_PVARS_PEERS") != NULL);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void start_watching(void) {
    static double every;
    const char* text = getenv("VELO_PVARS_EVERY");
    every = text != NULL ? atof(text) : 0;
    if (every < 0.01) return;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &attributes);
    pthread_condattr_destroy(&attributes);
    watching = pthread_create(&watcher, NULL, watch, &every) == 0;
}

static void stop_watching(void) {
    if (!watching) return;
    pthread_mutex_lock(&mutex);
    stopping = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&mutex);
    pthread_join(watcher, NULL);
    watching = false;
}

/* --- the table at the end */

/* False: it is 0 everywhere, and not shown. */
static bool show_row(const struct variable* variable, const unsigned long long* values, int stride) {
    unsigned long long total = 0;
    int least = 0, most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        unsigned long long value = values[(size_t)rank * (size_t)stride];
        total += value;
        if (value < values[(size_t)least * (size_t)stride]) least = rank;
        if (value > values[(size_t)most * (size_t)stride]) most = rank;
    }
    if (values[(size_t)most * (size_t)stride] == 0 && getenv("VELO_PVARS_ALL") == NULL) return false;
    char line[LINE];
    size_t used = append(line, 0, sizeof line, "  %-28s ", variable->name);
    used = variable->adds_up ? append(line, used, sizeof line, "%16llu", total) : append(line, used, sizeof line, "%16s", "-");
    append(line, used, sizeof line, " %16llu %6d %16llu %6d\n", values[(size_t)least * (size_t)stride], least,
           values[(size_t)most * (size_t)stride], most);
    show(line);
    return true;
}

/* All processes have the same plugin, and with it the same variables; if one has not, each shows its own. */
static bool same_everywhere(int scalars) {
    int range[2] = {scalars, -scalars};
    MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_INT, MPI_MIN, world);
    return range[0] == -range[1];
}

static int collect_scalars(const struct variable** scalars) {
    int count = 0;
    for (int i = 0; i < known; ++i) {
        if (!of_peers(&variables[i]) && variables[i].count == 1) scalars[count++] = &variables[i];
    }
    return count;
}

static void show_table(void) {
    const struct variable* scalars[MOST];
    unsigned long long mine[MOST], *all = NULL;
    int count = collect_scalars(scalars);
    /* Open MPI loads the MTL to ask whether it is wanted: its variables are there, and 0, without it. */
    bool used = false;
    for (int i = 0; i < count; ++i) {
        mine[i] = scalars[i]->values[0];
        used |= mine[i] != 0 || strncmp(scalars[i]->name, "mtl_", strlen("mtl_")) != 0;
    }
    if (!used) count = 0;
    if (!same_everywhere(count)) {
        if (count > 0) show_changes(false);
        return;
    }
    if (count == 0) {
        if (my_rank == 0) {
            show("velo-pvars: there are no variables " PREFIX "*: the program does not use Velo (--mca pml ob1 --mca btl velo)\n");
        }
        return;
    }
    if (my_rank == 0) all = malloc((size_t)ranks * (size_t)count * sizeof *all);
    MPI_Gather(mine, count, MPI_UNSIGNED_LONG_LONG, all, count, MPI_UNSIGNED_LONG_LONG, 0, world);
    if (all == NULL) return;
    char line[LINE];
    append(line, 0, sizeof line, "velo-pvars: %d ranks, from MPI_Init to MPI_Finalize (%.2f s)\n  %-28s %16s %16s %6s %16s %6s\n",
           ranks, now_seconds() - begin_seconds, PREFIX "...", "total", "least", "rank", "most", "rank");
    show(line);
    int left_out = 0;
    for (int i = 0; i < count; ++i) left_out += !show_row(scalars[i], all + i, count);
    if (left_out > 0) {
        append(line, 0, sizeof line, "velo-pvars: %d others are 0 everywhere (--all shows them)\n", left_out);
        show(line);
    }
    free(all);
}

/* Rank after rank, so that the lines of one stay together. */
static void show_peers(void) {
    char line[LINE];
    for (int turn = 0; turn < ranks; ++turn) {
        MPI_Barrier(world);
        for (int i = 0; turn == my_rank && i < known; ++i) {
            if (!of_peers(&variables[i]) || strcmp(variables[i].name, "peer_names") == 0) continue;
            size_t used = append(line, 0, sizeof line, "  rank %d %s (peer:value): ", my_rank, variables[i].name);
            used = append_peers(line, used, &variables[i]);
            append(line, used, sizeof line, "\n");
            show(line);
        }
    }
}

/* Deletes the attribute of MPI_COMM_SELF: the first thing that MPI_Finalize does. MPI_T must be closed before
 * MPI_Finalize ends: Open MPI 4.1 crashes otherwise. */
static int finalizing(MPI_Comm communicator, int keyval, void* value, void* extra) {
    (void)communicator, (void)keyval, (void)value, (void)extra;
    stop_watching();
    read_variables();
    show_table();
    if (getenv("VELO_PVARS_PEERS") != NULL) show_peers();
    MPI_Comm_free(&world);
    for (int i = 0; i < known; ++i) {
        MPI_T_pvar_handle_free(session, &variables[i].handle);
        free(variables[i].values);
        free(variables[i].shown);
    }
    known = 0;
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    if (output != stderr) fclose(output);
    return MPI_SUCCESS;
}

static void begin(void) {
    int keyval;
    if (started) return;
    started = true;
    const char* path = getenv("VELO_PVARS_OUTPUT");
    output = path != NULL ? fopen(path, "a") : stderr;
    if (output == NULL) {
        output = stderr;
        fprintf(stderr, "velo-pvars: cannot append to %s, using standard error\n", path);
    }
    begin_seconds = now_seconds();
    if (MPI_Comm_dup(MPI_COMM_WORLD, &world) != MPI_SUCCESS) return;
    MPI_Comm_rank(world, &my_rank);
    MPI_Comm_size(world, &ranks);
    if (!open_variables() && my_rank == 0) show("velo-pvars: MPI_T cannot be used\n");
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalizing, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    MPI_Comm_free_keyval(&keyval);
    start_watching();
}

/* --- the calls that it stands in front of */

static void* next(const char* name) {
    void* function = dlsym(RTLD_NEXT, name);
    if (function == NULL) {
        fprintf(stderr, "velo-pvars: there is no %s behind this library\n", name);
        abort();
    }
    return function;
}

EXPORT int MPI_Init(int* argc, char*** argv) {
    int rc = ((int (*)(int*, char***))next("MPI_Init"))(argc, argv);
    if (rc == MPI_SUCCESS) begin();
    return rc;
}

EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    int rc = ((int (*)(int*, char***, int, int*))next("MPI_Init_thread"))(argc, argv, required, provided);
    if (rc == MPI_SUCCESS) begin();
    return rc;
}

/* Open MPI's Fortran interfaces do not come through the C functions. */
#define FORTRAN_INIT(name)                           \
    EXPORT void name(MPI_Fint* error);               \
    EXPORT void name(MPI_Fint* error) {              \
        ((void (*)(MPI_Fint*))next(#name))(error);   \
        if (error == NULL || *error == MPI_SUCCESS) begin(); \
    }
#define FORTRAN_INIT_THREAD(name)                                                             \
    EXPORT void name(MPI_Fint* required, MPI_Fint* provided, MPI_Fint* error);                \
    EXPORT void name(MPI_Fint* required, MPI_Fint* provided, MPI_Fint* error) {               \
        ((void (*)(MPI_Fint*, MPI_Fint*, MPI_Fint*))next(#name))(required, provided, error);  \
        if (error == NULL || *error == MPI_SUCCESS) begin();                                  \
    }
FORTRAN_INIT(mpi_init_)
FORTRAN_INIT(mpi_init_f08_)
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_INIT_THREAD(mpi_init_thread_f08_)
