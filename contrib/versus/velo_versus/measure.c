/* The measuring program of velo-versus: plain MPI and C11, so that any MPI can take part.
 *
 *   measure PATTERN POINT_MS WINDOW BYTES...   times of one pattern
 *   measure memory                            proportional set size of the ranks
 *
 * Rank 0 prints lines of words: "versus 1 RANKS LIBRARY VERSION"; for each size "point PATTERN BYTES
 * MEDIAN_USEC MIN_USEC ITERATIONS REPETITIONS DEFECTS"; "memory WHEN KIND MEAN_KIB MAX_KIB"; at last "end".
 *
 * A point: a pass whose data is checked and not timed; iterations doubled until they take long enough; then
 * up to kRepetitions timed repetitions, which take POINT_MS together, and their median. A time is that of the
 * slowest rank; rank 0 decides on the iterations and tells the others. VELO_VERSUS_CORRUPT="rank:offset"
 * spoils a byte after the checked pass (to test the check).
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRepetitions = 5, kLineLength = 256, kAlignment = 4096, kTag = 1, kOtherTag = 2, kMaxWindow = 1024 };
enum { kBusyMessages = 32, kBusyBytes = 2048 }; /* to each peer, for the memory of a job that has worked */
enum { kCheckBytes = 4 << 20 }; /* a checked stream has as many messages at once as fit, at least one */

typedef struct {
    int rank, ranks, window;
    int is_lower, partner; /* a rank of the lower half and one of the upper are a pair */
    size_t bytes, stride;  /* stride 0: all messages of a window in one buffer, as osu_bw does */
    unsigned char *out, *in;
    MPI_Request* requests;
    uint64_t round; /* what the touched pattern writes; goes on over the repetitions */
    long defects;
} Point;

static int words_of(const Point* p) {
    return (int)(p->bytes / sizeof(uint64_t));
}

static void fail(const char* what, const char* detail) {
    fprintf(stderr, "velo-versus measure: %s %s\n", what, detail);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* ---- patterns ---- */

static void send_out(Point* p) {
    MPI_Send(p->out, (int)p->bytes, MPI_BYTE, p->partner, kTag, MPI_COMM_WORLD);
}

static void receive_in(Point* p) {
    MPI_Recv(p->in, (int)p->bytes, MPI_BYTE, p->partner, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void pingpong(Point* p, long iterations) {
    for (long i = 0; i < iterations; ++i) {
        if (p->is_lower) {
            send_out(p);
            receive_in(p);
        } else {
            receive_in(p);
            send_out(p);
        }
    }
}

/* Every word of a message is the number of its round plus its place. */
static void write_out(Point* p) {
    uint64_t* words = (uint64_t*)(void*)p->out;
    for (int i = 0, count = words_of(p); i < count; ++i) words[i] = p->round + (uint64_t)i;
}

static void read_in(Point* p) {
    const uint64_t* words = (const uint64_t*)(const void*)p->in;
    uint64_t sum = 0, count = (uint64_t)words_of(p);
    for (uint64_t i = 0; i < count; ++i) sum += words[i];
    if (sum != count * p->round + (count ? count * (count - 1) / 2 : 0)) ++p->defects;
}

static void touched(Point* p, long iterations) {
    for (long i = 0; i < iterations; ++i) {
        ++p->round;
        if (p->is_lower) {
            write_out(p);
            send_out(p);
            receive_in(p);
            read_in(p);
        } else {
            receive_in(p);
            read_in(p);
            write_out(p);
            send_out(p);
        }
    }
}

static int post_receives(Point* p) {
    for (int k = 0; k < p->window; ++k)
        MPI_Irecv(p->in + (size_t)k * p->stride, (int)p->bytes, MPI_BYTE, p->partner, kTag, MPI_COMM_WORLD,
                  &p->requests[k]);
    return p->window;
}

static int post_sends(Point* p, int first) {
    for (int k = 0; k < p->window; ++k)
        MPI_Isend(p->out + (size_t)k * p->stride, (int)p->bytes, MPI_BYTE, p->partner, kTag, MPI_COMM_WORLD,
                  &p->requests[first + k]);
    return first + p->window;
}

static void uniband(Point* p, long iterations) {
    for (long i = 0; i < iterations; ++i) {
        const int count = p->is_lower ? post_sends(p, 0) : post_receives(p);
        MPI_Waitall(count, p->requests, MPI_STATUSES_IGNORE);
        if (p->is_lower)
            MPI_Recv(NULL, 0, MPI_BYTE, p->partner, kOtherTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, p->partner, kOtherTag, MPI_COMM_WORLD);
    }
}

static void biband(Point* p, long iterations) {
    for (long i = 0; i < iterations; ++i)
        MPI_Waitall(post_sends(p, post_receives(p)), p->requests, MPI_STATUSES_IGNORE);
}

/* IMB's Exchange: every rank sends to both its neighbours in a ring and receives from both. */
static void exchange(Point* p, long iterations) {
    const int left = (p->rank + p->ranks - 1) % p->ranks, right = (p->rank + 1) % p->ranks, n = (int)p->bytes;
    for (long i = 0; i < iterations; ++i) {
        MPI_Request* r = p->requests;
        MPI_Irecv(p->in, n, MPI_BYTE, left, kTag, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(p->in + p->stride, n, MPI_BYTE, right, kOtherTag, MPI_COMM_WORLD, &r[1]);
        MPI_Isend(p->out, n, MPI_BYTE, right, kTag, MPI_COMM_WORLD, &r[2]);
        MPI_Isend(p->out + p->stride, n, MPI_BYTE, left, kOtherTag, MPI_COMM_WORLD, &r[3]);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    }
}

static void alltoall(Point* p, long iterations) {
    for (long i = 0; i < iterations; ++i)
        MPI_Alltoall(p->out, (int)p->bytes, MPI_BYTE, p->in, (int)p->bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void allreduce(Point* p, long iterations) {
    for (long i = 0; i < iterations; ++i)
        MPI_Allreduce(p->out, p->in, (int)(p->bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* ---- the data of the checked pass ---- */

/* Byte `i` of message `index` of a rank; i, i/256 and i/65536 all matter, so that a misplaced part is seen.
 */
static unsigned char byte_of(int rank, int index, size_t i) {
    return (unsigned char)(1u + (unsigned)rank * 29u + (unsigned)index * 53u + (unsigned)i * 7u +
                           (unsigned)(i >> 8) * 13u + (unsigned)(i >> 16) * 31u);
}

static float float_of(int rank, size_t i) {
    return (float)(rank % 64 + (int)(i % 127));
} /* sums stay exact */

static void fill(unsigned char* to, int rank, int index, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) to[i] = byte_of(rank, index, i);
}

static void defect(Point* p, size_t offset) {
    if (p->defects++ == 0)
        fprintf(stderr, "velo-versus measure: wrong data at rank %d, size %zu, offset %zu\n", p->rank,
                p->bytes, offset);
}

static void verify(Point* p, const unsigned char* from, int rank, int index) {
    for (size_t i = 0; i < p->bytes; ++i)
        if (from[i] != byte_of(rank, index, i)) defect(p, (size_t)(from - p->in) + i);
}

static void fill_messages(Point* p, int count) {
    for (int k = 0; k < count; ++k) fill(p->out + (size_t)k * p->bytes, p->rank, k, p->bytes);
}

static void verify_window(Point* p) {
    for (int k = 0; k < p->window; ++k) verify(p, p->in + (size_t)k * p->stride, p->partner, k);
}

static void fill_one(Point* p) {
    fill_messages(p, 1);
}
static void fill_window(Point* p) {
    fill_messages(p, p->window);
}
static void fill_two(Point* p) {
    fill_messages(p, 2);
}
static void fill_all(Point* p) {
    fill_messages(p, p->ranks);
}
static void fill_nothing(Point* p) {
    (void)p;
}

static void fill_floats(Point* p) {
    float* values = (float*)(void*)p->out;
    for (size_t i = 0; i < p->bytes / sizeof(float); ++i) values[i] = float_of(p->rank, i);
}

static void verify_one(Point* p) {
    verify(p, p->in, p->partner, 0);
}

static void verify_receiver(Point* p) {
    if (!p->is_lower) verify_window(p);
}

static void verify_two(Point* p) {
    verify(p, p->in, (p->rank + p->ranks - 1) % p->ranks, 0);
    verify(p, p->in + p->stride, (p->rank + 1) % p->ranks, 1);
}

static void verify_all(Point* p) {
    for (int source = 0; source < p->ranks; ++source)
        verify(p, p->in + (size_t)source * p->bytes, source, p->rank);
}

static void verify_floats(Point* p) {
    const float* values = (const float*)(const void*)p->in;
    for (size_t i = 0; i < p->bytes / sizeof(float); ++i) {
        float expected = 0;
        for (int rank = 0; rank < p->ranks; ++rank) expected += float_of(rank, i);
        if (values[i] != expected) defect(p, i * sizeof(float));
    }
}

static void verify_touched(Point* p) {
    const uint64_t* words = (const uint64_t*)(const void*)p->in;
    for (int i = 0, count = words_of(p); i < count; ++i)
        if (words[i] != p->round + (uint64_t)i) defect(p, (size_t)i * sizeof(uint64_t));
}

/* ---- the table of patterns ---- */

typedef enum { kOneMessage, kWindow, kTwoMessages, kAllRanks } Room;

typedef struct {
    const char* name;
    void (*run)(Point*, long);
    void (*fill)(Point*);
    void (*verify)(Point*);
    Room room;
    double per_iteration; /* an iteration takes so many of the times that are printed, times the window for
                             kWindow */
} Pattern;

static const Pattern kPatterns[] = {
    {"pingpong", pingpong, fill_one, verify_one, kOneMessage, 2},
    {"touched", touched, fill_nothing, verify_touched, kOneMessage, 2},
    {"uniband", uniband, fill_window, verify_receiver, kWindow, 1},
    {"biband", biband, fill_window, verify_window, kWindow, 1},
    {"exchange", exchange, fill_two, verify_two, kTwoMessages, 1},
    {"alltoall", alltoall, fill_all, verify_all, kAllRanks, 1},
    {"allreduce", allreduce, fill_floats, verify_floats, kOneMessage, 1},
};

static const Pattern* find_pattern(const char* name) {
    for (size_t i = 0; i < sizeof kPatterns / sizeof kPatterns[0]; ++i)
        if (strcmp(kPatterns[i].name, name) == 0) return &kPatterns[i];
    fail("no such pattern:", name);
    return NULL;
}

/* ---- a point ---- */

static unsigned char* buffer_of(size_t bytes) {
    const size_t whole = (bytes / kAlignment + 1) * kAlignment;
    unsigned char* buffer = aligned_alloc(kAlignment, whole);
    if (buffer == NULL) fail("out of memory", "");
    memset(buffer, 0, whole);
    return buffer;
}

static int checked_window(const Pattern* pattern, int window, size_t bytes) {
    if (pattern->room != kWindow || bytes == 0) return window;
    const size_t fitting = kCheckBytes / bytes;
    return fitting < 1 ? 1 : fitting < (size_t)window ? (int)fitting : window;
}

static size_t room_of(const Pattern* pattern, const Point* p) {
    switch (pattern->room) {
        case kWindow:
            return p->bytes * (size_t)checked_window(pattern, p->window, p->bytes);
        case kTwoMessages:
            return p->bytes * 2;
        case kAllRanks:
            return p->bytes * (size_t)p->ranks;
        default:
            return p->bytes;
    }
}

static void corrupt(const Point* p, size_t room) {
    int rank = 0;
    size_t offset = 0;
    const char* text = getenv("VELO_VERSUS_CORRUPT");
    if (text && sscanf(text, "%d:%zu", &rank, &offset) == 2 && rank == p->rank && offset < room)
        p->in[offset] ^= 0xff;
}

static void checked_pass(const Pattern* pattern, Point* p) {
    const int window = p->window;
    const size_t stride = p->stride;
    p->window = checked_window(pattern, window, p->bytes);
    p->stride = p->bytes;
    pattern->fill(p);
    pattern->run(p, 1);
    corrupt(p, room_of(pattern, p));
    pattern->verify(p);
    p->window = window;
    p->stride = stride;
}

/* The time of the slowest rank in seconds, known to rank 0 alone. */
static double timed(const Pattern* pattern, Point* p, long iterations) {
    double slowest = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    pattern->run(p, iterations);
    const double mine = MPI_Wtime() - start;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
}

typedef struct {
    long iterations, repetitions;
} Plan;

/* One preemption must not pass for a slow transport: what seems long enough has to be so twice. */
static double timed_twice(const Pattern* pattern, Point* p, long iterations, double enough, int* go_on) {
    double took = timed(pattern, p, iterations);
    *go_on = took < enough;
    MPI_Bcast(go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (*go_on) return took;
    const double again = timed(pattern, p, iterations);
    if (again < took) took = again;
    *go_on = took < enough;
    MPI_Bcast(go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return took;
}

/* Warms up as well. A point whose single iteration takes long gets fewer repetitions. */
static Plan plan_point(const Pattern* pattern, Point* p, double point_seconds) {
    const double share = point_seconds / kRepetitions;
    long plan[2] = {1, kRepetitions};
    int go_on = 1;
    double took = 0;
    while (go_on) {
        took = timed_twice(pattern, p, plan[0], share / 4, &go_on);
        if (go_on) plan[0] *= 2;
    }
    if (p->rank == 0) {
        const double one = took / (double)plan[0];
        plan[0] = one < share ? (long)(share / one) : 1;
        plan[1] = one <= point_seconds ? kRepetitions : (long)(kRepetitions * point_seconds / one) + 1;
    }
    MPI_Bcast(plan, 2, MPI_LONG, 0, MPI_COMM_WORLD);
    return (Plan){plan[0], plan[1]};
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void measure_point(const Pattern* pattern, Point* p, double point_seconds) {
    const size_t room = room_of(pattern, p);
    double times[kRepetitions];
    long defects = 0;
    p->defects = 0;
    p->stride = pattern->room == kTwoMessages ? p->bytes : 0;
    p->out = buffer_of(room);
    p->in = buffer_of(room);
    checked_pass(pattern, p);
    const Plan plan = plan_point(pattern, p, point_seconds);
    for (long i = 0; i < plan.repetitions; ++i) times[i] = timed(pattern, p, plan.iterations);
    MPI_Reduce(&p->defects, &defects, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    free(p->out);
    free(p->in);
    if (p->rank != 0) return;
    const double messages = pattern->per_iteration * (pattern->room == kWindow ? p->window : 1);
    const double usec = 1e6 / (messages * (double)plan.iterations);
    qsort(times, (size_t)plan.repetitions, sizeof times[0], by_value);
    const double median = (times[(plan.repetitions - 1) / 2] + times[plan.repetitions / 2]) / 2;
    printf("point %s %zu %.6g %.6g %ld %ld %ld\n", pattern->name, p->bytes, median * usec, times[0] * usec,
           plan.iterations, plan.repetitions, defects);
    fflush(stdout);
}

/* ---- memory ---- */

static const char* const kKinds[] = {"Pss", "Pss_Anon", "Pss_File", "Pss_Shmem"};
enum { kKindCount = sizeof kKinds / sizeof kKinds[0] };

/* KiB of each kind; -1 where the kernel does not tell. */
static void read_smaps(double kib[kKindCount]) {
    char line[kLineLength], key[kLineLength];
    double value;
    for (int i = 0; i < kKindCount; ++i) kib[i] = -1;
    FILE* file = fopen("/proc/self/smaps_rollup", "r");
    if (file == NULL) fail("cannot read /proc/self/smaps_rollup", "(Linux 4.14 or newer is needed)");
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%255[^:]: %lf", key, &value) == 2)
            for (int i = 0; i < kKindCount; ++i)
                if (strcmp(key, kKinds[i]) == 0) kib[i] = value;
    fclose(file);
}

/* The ranks read while all others wait: what they share is shared out among all of them. */
static void print_memory(const char* when, const Point* p) {
    double mine[kKindCount], sum[kKindCount], largest[kKindCount];
    MPI_Barrier(MPI_COMM_WORLD);
    read_smaps(mine);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(mine, sum, kKindCount, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(mine, largest, kKindCount, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int i = 0; p->rank == 0 && i < kKindCount; ++i)
        printf("memory %s %s %.6g %.6g\n", when, kKinds[i], sum[i] / p->ranks, largest[i]);
}

/* Messages from each rank to each other. MPI_Alltoall may send small blocks by way of other ranks. */
static void send_to_every_peer(const Point* p, int messages, int bytes) {
    static char out[kBusyBytes], in[kBusyBytes];
    for (int distance = 1; distance < p->ranks; ++distance)
        for (int i = 0; i < messages; ++i)
            MPI_Sendrecv(out, bytes, MPI_BYTE, (p->rank + distance) % p->ranks, kTag, in, bytes, MPI_BYTE,
                         (p->rank + p->ranks - distance) % p->ranks, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void measure_memory(const Point* p) {
    print_memory("started", p);
    send_to_every_peer(p, 1, 64);
    print_memory("connected", p);
    send_to_every_peer(p, kBusyMessages, kBusyBytes);
    print_memory("used", p);
}

/* ---- */

static unsigned long number(const char* text, unsigned long least, unsigned long most) {
    char* end;
    const unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value < least || value > most)
        fail("wrong number:", text);
    return value;
}

static void print_library(const Point* p) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    for (char* c = text; *c; ++c)
        if (*c == '\n' || *c == '\t') *c = ' ';
    if (p->rank == 0) printf("versus 1 %d %.200s\n", p->ranks, text);
}

int main(int argc, char** argv) {
    Point p = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.ranks);
    if (p.ranks % 2) fail("an even number of ranks is needed", "");
    p.is_lower = p.rank < p.ranks / 2;
    p.partner = (p.rank + p.ranks / 2) % p.ranks;
    print_library(&p);
    if (argc == 2 && strcmp(argv[1], "memory") == 0) {
        measure_memory(&p);
    } else if (argc >= 5) {
        const Pattern* pattern = find_pattern(argv[1]);
        const double point_seconds = (double)number(argv[2], 1, 60000) / 1e3;
        p.window = (int)number(argv[3], 1, kMaxWindow);
        p.requests = malloc(sizeof(MPI_Request) * (size_t)(2 * p.window + 4));
        if (p.requests == NULL) fail("out of memory", "");
        for (int i = 4; i < argc; ++i) {
            p.bytes = number(argv[i], 0, 1ul << 30);
            measure_point(pattern, &p, point_seconds);
        }
        free(p.requests);
    } else {
        fail("usage:", "measure PATTERN POINT_MS WINDOW BYTES... | measure memory");
    }
    MPI_Finalize();
    if (p.rank == 0) printf("end\n");
    return 0;
}
