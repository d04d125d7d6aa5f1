/* What the test programs share: a byte pattern that tells who sent what, and checks that end the job.
 *
 * A program prints `key=value` words on rank 0 for the test to compare, and nothing else. */
#ifndef VELO_TEST_COMMON_H
#define VELO_TEST_COMMON_H

#include <dirent.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static int my_rank, ranks;

__attribute__((noreturn, format(printf, 3, 4), unused)) static void fail(const char* file, int line,
                                                                         const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "FAILED rank %d %s:%d: ", my_rank, file, line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    MPI_Abort(MPI_COMM_WORLD, 99);
    abort();
}

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__FILE__, __LINE__, __VA_ARGS__))

/* How many threads of this process, without this one, are not asleep. */
static int busy_threads(void) {
    DIR* tasks = opendir("/proc/self/task");
    int busy = 0;
    for (struct dirent* entry; tasks != NULL && (entry = readdir(tasks)) != NULL;) {
        char path[300], state = 'S';
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        FILE* file = atol(entry->d_name) > 0 && atol(entry->d_name) != getpid() ? fopen(path, "r") : NULL;
        if (file == NULL) continue;
        busy += fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state != 'S';
        fclose(file);
    }
    if (tasks != NULL) closedir(tasks);
    return busy;
}

/* MPI_Init of Open MPI 4.1 leaves an event (OPAL_ERR_MODEL_DECLARED) for the thread of its run-time layer. If that
 * thread does not get a processor before MPI_Finalize, as in a program of some milliseconds on a loaded machine, it
 * calls process_event of mca_pmix_ext3x.so when that has been unloaded, and crashes, whatever the transport. */
static void let_runtime_settle(void) {
    for (int i = 0; i < 1000 && busy_threads() > 0; ++i) usleep(1000);
}

/* With VELO_TEST_CONCEALED a program does as those that guard secrets: nobody but root may look into it. */
static void conceal(void) {
    if (getenv("VELO_TEST_CONCEALED") != NULL)
        CHECK(prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0, "still dumpable");
}

static void settle(void) {
    let_runtime_settle();
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

__attribute__((unused)) static void start(int* argc, char*** argv) {
    conceal();
    MPI_Init(argc, argv);
    settle();
}

/* For programs whose threads all call MPI. */
__attribute__((unused)) static void start_threads(int* argc, char*** argv) {
    int provided;
    conceal();
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    settle();
    CHECK(provided == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE");
}

__attribute__((unused)) static long argument(int argc, char** argv, int index, long otherwise) {
    return index < argc ? atol(argv[index]) : otherwise;
}

/* Identifies one message: who, how many-th, of which kind. */
__attribute__((unused)) static uint64_t seed_of(int source, uint64_t sequence, int kind) {
    return ((uint64_t)(source + 1) << 44) ^ ((uint64_t)kind << 36) ^ sequence;
}

/* Eight bytes of the pattern of `seed`; every bit depends on both. */
static inline uint64_t pattern_word(uint64_t seed, uint64_t index) {
    uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15ULL + index * 0xbf58476d1ce4e5b9ULL;
    return word ^ word >> 29;
}

__attribute__((unused)) static void pattern_fill(void* data, size_t bytes, uint64_t seed) {
    unsigned char* to = data;
    size_t words = bytes / 8;
    for (size_t i = 0; i < words; ++i) {
        uint64_t word = pattern_word(seed, i);
        memcpy(to + i * 8, &word, 8);
    }
    uint64_t tail = pattern_word(seed, words);
    memcpy(to + words * 8, &tail, bytes % 8);
}

/* Index of the first wrong byte, or `bytes` if all are right. */
__attribute__((unused)) static size_t pattern_mismatch(const void* data, size_t bytes, uint64_t seed) {
    const unsigned char* from = data;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = pattern_word(seed, i / 8);
        size_t count = bytes - i < 8 ? bytes - i : 8;
        if (memcmp(from + i, &word, count) == 0) continue;
        for (size_t k = 0; k < count; ++k) {
            if (from[i + k] != ((const unsigned char*)&word)[k]) return i + k;
        }
    }
    return bytes;
}

__attribute__((unused)) static void pattern_check(const void* data, size_t bytes, uint64_t seed,
                                                  const char* what) {
    size_t wrong = pattern_mismatch(data, bytes, seed);
    CHECK(wrong == bytes, "%s: byte %zu of %zu is wrong", what, wrong, bytes);
}

__attribute__((unused)) static int bytes_received(const MPI_Status* status) {
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    return count;
}

/* Stays away from MPI, and so from its progress, for a while. */
__attribute__((unused)) static void sleep_ms(long ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

__attribute__((unused)) static void* allocate(size_t bytes) {
    void* data = malloc(bytes ? bytes : 1);
    CHECK(data != NULL, "no memory for %zu bytes", bytes);
    return data;
}

/* Deterministic numbers, the same on every rank that uses the same state. */
__attribute__((unused)) static uint32_t next_random(uint64_t* state) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*state >> 33);
}

/* Memory of this process, shared pages included. */
__attribute__((unused)) static long resident_kib(void) {
    FILE* file = fopen("/proc/self/statm", "r");
    long pages = 0;
    CHECK(file != NULL && fscanf(file, "%*d %ld", &pages) == 1, "no /proc/self/statm");
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#endif
