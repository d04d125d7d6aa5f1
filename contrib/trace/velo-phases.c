/* A program whose communication pattern changes: executions of MPI_Alltoall over all ranks, a quarter, a half, all, a
 * half, a quarter and all again, with a barrier of everybody after each phase (thesis section 7.3, figure 7.4). All data
 * is checked. Rank 0 prints when each phase began and ended, on the clock of btl_velo_trace. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_PHASES = 64 };

struct options {
    long executions;
    long bytes;
    int divisors[MOST_PHASES]; /* a phase takes the first ranks / divisor ranks */
    int phases;
};

static const char usage[] =
    "usage: velo-phases [executions] [bytes] [divisors]\n"
    "  executions  of MPI_Alltoall in each phase (default 100)\n"
    "  bytes       to each rank, a multiple of 4 (default 2048)\n"
    "  divisors    one for each phase: 4 means a quarter of the ranks (default 1,4,2,1,2,4,1)\n";

static long number(const char* text, long least, long most) {
    char* end;
    long value = strtol(text, &end, 10);
    return end == text || (*end != '\0' && *end != ',') || value < least || value > most ? -1 : value;
}

static int parse_divisors(const char* text, struct options* options) {
    options->phases = 0;
    for (;;) {
        long value = number(text, 1, 1 << 20);
        if (value < 0 || options->phases == MOST_PHASES) return 0;
        options->divisors[options->phases++] = (int)value;
        text = strchr(text, ',');
        if (text == NULL) return 1;
        ++text;
    }
}

static int parse(int argc, char** argv, struct options* options) {
    options->executions = argc > 1 ? number(argv[1], 1, 1000000000) : 100;
    options->bytes = argc > 2 ? number(argv[2], 4, 1 << 24) : 2048;
    return argc <= 4 && options->executions > 0 && options->bytes > 0 && options->bytes % 4 == 0 &&
           parse_divisors(argc > 3 ? argv[3] : "1,4,2,1,2,4,1", options);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint32_t word_of(int from, int to, long execution) {
    return (uint32_t)from * 2654435761U ^ (uint32_t)to * 40503U ^ (uint32_t)execution;
}

static void alltoall(MPI_Comm group, long execution, long words, uint32_t* out, uint32_t* in) {
    int rank, ranks;
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &ranks);
    for (int peer = 0; peer < ranks; ++peer) {
        for (long i = 0; i < words; ++i) out[peer * words + i] = word_of(rank, peer, execution + i);
    }
    MPI_Alltoall(out, (int)words, MPI_UINT32_T, in, (int)words, MPI_UINT32_T, group);
    for (int peer = 0; peer < ranks; ++peer) {
        for (long i = 0; i < words; ++i) {
            if (in[peer * words + i] == word_of(peer, rank, execution + i)) continue;
            fprintf(stderr, "velo-phases: rank %d: word %ld from %d is wrong\n", rank, i, peer);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
}

int main(int argc, char** argv) {
    struct options options;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!parse(argc, argv, &options)) {
        if (rank == 0) fputs(usage, stderr);
        MPI_Finalize();
        return 2;
    }
    const long words = options.bytes / 4;
    uint32_t* out = malloc((size_t)ranks * (size_t)options.bytes);
    uint32_t* in = malloc((size_t)ranks * (size_t)options.bytes);
    if (out == NULL || in == NULL) {
        fprintf(stderr, "velo-phases: no memory for %d x %ld bytes\n", ranks, options.bytes);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int phase = 0; phase < options.phases; ++phase) {
        const int members = ranks / options.divisors[phase] > 0 ? ranks / options.divisors[phase] : 1;
        MPI_Comm group;
        MPI_Comm_split(MPI_COMM_WORLD, rank < members ? 0 : MPI_UNDEFINED, rank, &group);
        const uint64_t begin = now_ns();
        if (group != MPI_COMM_NULL) {
            for (long i = 0; i < options.executions; ++i) alltoall(group, i, words, out, in);
            MPI_Comm_free(&group);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            printf("phase %d ranks %d executions %ld begin_ns %llu end_ns %llu\n", phase, members, options.executions,
                   (unsigned long long)begin, (unsigned long long)now_ns());
        }
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
