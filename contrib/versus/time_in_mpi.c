/* Preloaded by velo-measure transports --program: the seconds between MPI_Init and MPI_Finalize, and those of them in
 * calls of MPI.
 *
 * It stands in front of any MPI, in C and in Fortran, and knows the header of none: addresses, integers and
 * handles are passed on as words, as the calling conventions of 64-bit machines have them. Calls that only
 * compute are not among them. Rank by rank a line goes to standard error: velo-time SECONDS SECONDS_IN_MPI.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define WORDS long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l
#define PASSED a, b, c, d, e, f, g, h, i, j, k, l
typedef long call(WORDS);

static double begin, inside;
static __thread int depth; /* MPI's own calls of itself count once */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static call* next(const char* name) {
    call* found = (call*)dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "velo-time: no %s\n", name);
        abort();
    }
    return found;
}

#define BETWEEN(name, before, after)      \
    EXPORT long name(WORDS) {             \
        static call* real;                \
        if (!real) real = next(#name);    \
        before;                           \
        const long result = real(PASSED); \
        after;                            \
        return result;                    \
    }
#define START \
    if (begin == 0) begin = now()
#define REPORT                                                                        \
    if (begin > 0) fprintf(stderr, "\nvelo-time %.6f %.6f\n", now() - begin, inside); \
    begin = -1
BETWEEN(MPI_Init, , START)
BETWEEN(MPI_Init_thread, , START)
BETWEEN(MPI_Finalize, REPORT, )
BETWEEN(mpi_init_, , START)
BETWEEN(mpi_init_thread_, , START)
BETWEEN(mpi_finalize_, REPORT, )

#define TIMED(name) \
    BETWEEN(name, const double start = depth++ ? 0 : now(), if (--depth == 0) inside += now() - start)
#define BOTH(in_c, in_fortran) TIMED(MPI_##in_c) TIMED(mpi_##in_fortran##_)
/* clang-format off */
BOTH(Send, send) BOTH(Ssend, ssend) BOTH(Bsend, bsend) BOTH(Rsend, rsend) BOTH(Recv, recv)
BOTH(Isend, isend) BOTH(Issend, issend) BOTH(Irsend, irsend) BOTH(Irecv, irecv)
BOTH(Sendrecv, sendrecv) BOTH(Sendrecv_replace, sendrecv_replace)
BOTH(Start, start) BOTH(Startall, startall)
BOTH(Wait, wait) BOTH(Waitall, waitall) BOTH(Waitany, waitany) BOTH(Waitsome, waitsome)
BOTH(Test, test) BOTH(Testall, testall) BOTH(Testany, testany) BOTH(Testsome, testsome)
BOTH(Probe, probe) BOTH(Iprobe, iprobe) BOTH(Mprobe, mprobe) BOTH(Improbe, improbe) BOTH(Mrecv, mrecv)
BOTH(Barrier, barrier) BOTH(Bcast, bcast) BOTH(Reduce, reduce) BOTH(Allreduce, allreduce)
BOTH(Gather, gather) BOTH(Gatherv, gatherv) BOTH(Scatter, scatter) BOTH(Scatterv, scatterv)
BOTH(Allgather, allgather) BOTH(Allgatherv, allgatherv)
BOTH(Alltoall, alltoall) BOTH(Alltoallv, alltoallv) BOTH(Alltoallw, alltoallw)
BOTH(Reduce_scatter, reduce_scatter) BOTH(Reduce_scatter_block, reduce_scatter_block) BOTH(Scan, scan) BOTH(Exscan, exscan)
BOTH(Comm_dup, comm_dup) BOTH(Comm_split, comm_split) BOTH(Comm_create, comm_create) BOTH(Comm_free, comm_free)
BOTH(Put, put) BOTH(Get, get) BOTH(Accumulate, accumulate) BOTH(Win_fence, win_fence)
BOTH(Win_lock, win_lock) BOTH(Win_unlock, win_unlock) BOTH(Win_flush, win_flush)
