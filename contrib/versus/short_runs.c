/* Messages between two ranks as common benchmarks send them: few of each size, after a short warm-up, with one buffer for all.
 *
 *     short_runs PATTERN SMALLEST LARGEST
 *
 * prints the bytes and the microseconds of a message for each power of two. latency, bw and bibw do as OSU's programs of those
 * names, sendrecv and exchange as IMB's; touched: ping-pong of data that is written before and read behind; cold: windows of 16
 * from buffers of 32 MiB in turn; mixed: ping-pong of half to one and a half times the size. Warm-up and repetitions are OSU's, a
 * tenth above 256 KiB. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, COLD_WINDOW = 16, COLD_BYTES = 32 << 20, MOST_BYTES = 4 << 20, SKIPPED = 10 };

static char *out, *in;
static int rank, other;
static MPI_Request requests[2 * WINDOW];
static MPI_Status statuses[2 * WINDOW];

static void send_one(const char *from, int bytes)
{
    MPI_Send(from, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD);
}

static void receive_one(char *to, int bytes)
{
    MPI_Recv(to, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int ping_pong(int bytes)
{
    if (0 == rank) {
        send_one(out, bytes);
        receive_one(in, bytes);
    } else {
        receive_one(in, bytes);
        send_one(out, bytes);
    }
    return 2;
}

static int window(int bytes, int sends, int receives)
{
    int count = 0;
    for (int i = 0; receives && i < WINDOW; ++i) {
        MPI_Irecv(in, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD, &requests[count++]);
    }
    for (int i = 0; sends && i < WINDOW; ++i) {
        MPI_Isend(out, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD, &requests[count++]);
    }
    MPI_Waitall(count, requests, statuses);
    return WINDOW;
}

static void answer(int sends)
{
    if (sends) {
        send_one(out, 1);
    } else {
        receive_one(in, 1);
    }
}

static int latency(int bytes, int repetition)
{
    (void) repetition;
    return ping_pong(bytes);
}

static int bw(int bytes, int repetition)
{
    (void) repetition;
    const int count = window(bytes, 0 == rank, 1 == rank);
    answer(1 == rank);
    return count;
}

static int bibw(int bytes, int repetition)
{
    (void) repetition;
    return 2 * window(bytes, 1, 1);
}

static int sendrecv(int bytes, int repetition)
{
    (void) repetition;
    MPI_Sendrecv(out, bytes, MPI_CHAR, other, 1, in, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 1;
}

static int exchange(int bytes, int repetition)
{
    (void) repetition;
    for (int i = 0; i < 2; ++i) {
        MPI_Isend(out, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < 2; ++i) {
        receive_one(in, bytes);
    }
    MPI_Waitall(2, requests, statuses);
    return 1;
}

static int touched(int bytes, int repetition)
{
    memset(out, repetition, bytes);
    const int count = ping_pong(bytes);
    volatile char sum = 0;
    for (int i = 0; i < bytes; i += 64) {
        sum += in[i];
    }
    return count;
}

static int cold(int bytes, int repetition)
{
    (void) repetition;
    static size_t at;
    const int all = COLD_BYTES / bytes / 2, count = all < COLD_WINDOW ? all : COLD_WINDOW;
    for (int i = 0; i < count; ++i) {
        if (0 == rank) {
            MPI_Isend(out + at, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Irecv(in + at, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD, &requests[i]);
        }
        at = at + 2 * (size_t) bytes > COLD_BYTES ? 0 : at + bytes;
    }
    MPI_Waitall(count, requests, statuses);
    answer(1 == rank);
    return count;
}

static int mixed(int bytes, int repetition)
{
    static unsigned seed;
    if (0 == repetition) {
        seed = 1;
    }
    seed = seed * 1103515245 + 12345;
    const int length = bytes / 2 + (int) ((seed >> 8) % (unsigned) (bytes + 1));
    return ping_pong(length < MOST_BYTES ? length : MOST_BYTES);
}

static const struct {
    const char *name;
    int (*run)(int bytes, int repetition); /* returns how many messages there were */
    int windows;
} patterns[] = {{"latency", latency, 0}, {"bw", bw, 1}, {"bibw", bibw, 1}, {"sendrecv", sendrecv, 0}, {"exchange", exchange, 0},
                {"touched", touched, 0}, {"cold", cold, 1}, {"mixed", mixed, 0}};

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    other = 1 - rank;
    size_t pattern = 0;
    while (count == 4 && pattern < sizeof(patterns) / sizeof(patterns[0]) && 0 != strcmp(patterns[pattern].name, words[1])) {
        ++pattern;
    }
    if (4 != count || 2 != ranks || atoi(words[2]) < 1 || pattern == sizeof(patterns) / sizeof(patterns[0])) {
        fprintf(stderr, "usage: two ranks of short_runs PATTERN SMALLEST LARGEST\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    out = aligned_alloc(4096, COLD_BYTES);
    in = aligned_alloc(4096, COLD_BYTES);
    memset(out, 'a', COLD_BYTES);
    memset(in, 'b', COLD_BYTES);
    for (int bytes = atoi(words[2]); bytes <= atoi(words[3]) && bytes <= MOST_BYTES; bytes *= 2) {
        const int large = bytes > 8192, windows = patterns[pattern].windows;
        const int repetitions = windows ? (large ? 20 : 100) : (large ? 1000 : 10000) / (bytes > 262144 ? 10 : 1);
        double began = 0;
        int messages = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = -SKIPPED; i < repetitions; ++i) {
            if (0 == i) {
                MPI_Barrier(MPI_COMM_WORLD);
                began = MPI_Wtime();
                messages = 0;
            }
            messages += patterns[pattern].run(bytes, i + SKIPPED);
        }
        const double usec = 1e6 * (MPI_Wtime() - began) / messages;
        if (0 == rank) {
            printf("%d %.3f\n", bytes, usec);
            fflush(stdout);
        }
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
