/* What a message executes, instruction by instruction.
 * path SAMPLES BYTES  rank 0 sends to rank 1, which receives when the message is there; each prints, for the cheapest of its
 *                     samples, of the plugin: entries (calls from outside), calls (inside), leaves (calls to outside), branches
 *                     (conditional), locked and all instructions; `mpi`: all instructions of the call, wherever. A process of
 *                     its own traces the rank. */
#include "common.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

typedef struct {
    int entries, calls, leaves, branches, locked, instructions, mpi;
} Path;

typedef struct {
    volatile int wanted, ready, over;
    volatile uintptr_t from, to; /* code of the plugin */
    Path path;
} Board;

static Board* board;

__attribute__((noinline)) static void begin_path(void) {
    __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) static void end_path(void) {
    __asm__ volatile("nop" ::: "memory");
}

#ifdef __x86_64__

typedef enum { kOther, kCall, kReturn, kBranch } Kind;

static Kind kind_of(const unsigned char* code, bool* locked) {
    *locked = false;
    for (;; ++code) {
        if (*code == 0xf0) *locked = true;
        const bool prefix = *code == 0xf0 || *code == 0xf2 || *code == 0xf3 || *code == 0x66 || *code == 0x2e ||
                            *code == 0x3e || (*code & 0xf0) == 0x40;
        if (!prefix) break;
    }
    if (*code == 0x87) *locked = (code[1] & 0xc0) != 0xc0; /* xchg with memory */
    if (*code == 0xe8 || (*code == 0xff && (code[1] >> 3 & 7) == 2)) return kCall;
    if (*code == 0xc3 || *code == 0xc2) return kReturn;
    if ((*code & 0xf0) == 0x70 || (*code == 0x0f && (code[1] & 0xf0) == 0x80)) return kBranch;
    return kOther;
}

static uintptr_t next_instruction(pid_t rank, unsigned char* code) {
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, rank, NULL, &registers);
    struct iovec mine = {code, 15}, its = {(void*)registers.rip, 15};
    if (process_vm_readv(rank, &mine, 1, &its, 1, 0) < 0) memset(code, 0x90, 15);
    return registers.rip;
}

static void step(pid_t rank) {
    int status;
    do {
        ptrace(PTRACE_SINGLESTEP, rank, NULL, NULL);
        if (waitpid(rank, &status, 0) < 0 || !WIFSTOPPED(status)) _exit(0);
    } while (WSTOPSIG(status) != SIGTRAP);
}

static void trace_path(pid_t rank) {
    unsigned char code[16] = {0};
    Path path = {0};
    bool counts = false, was_inside = false, locked;
    Kind before = kOther;
    for (uintptr_t at, last = 0;; last = at) {
        at = next_instruction(rank, code);
        counts = counts || at == (uintptr_t)begin_path;
        if (at == (uintptr_t)end_path) break;
        if (counts && at != last) { /* one with a repeat prefix stops each time */
            const bool inside = at >= board->from && at < board->to;
            const Kind kind = kind_of(code, &locked);
            path.entries += inside && !was_inside && before != kReturn;
            path.leaves += !inside && was_inside && before != kReturn;
            path.calls += inside && was_inside && before == kCall;
            path.branches += inside && kind == kBranch;
            path.locked += inside && locked;
            path.instructions += inside;
            ++path.mpi;
            was_inside = inside, before = kind;
        }
        step(rank);
    }
    board->path = path;
}

static void tracer(pid_t rank) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        while (!board->wanted) {
            if (board->over) _exit(0);
            sleep_ms(1);
        }
        int status;
        if (ptrace(PTRACE_SEIZE, rank, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, rank, NULL, NULL) != 0) {
            board->path.entries = -1;
        } else {
            waitpid(rank, &status, 0);
        }
        board->wanted = 0;
        board->ready = 1;
        if (board->path.entries != -1) {
            trace_path(rank);
            ptrace(PTRACE_DETACH, rank, NULL, NULL);
        }
    }
}

#else

static void tracer(pid_t rank) {
    (void)rank;
    _exit(0);
}

#endif

static void find_plugin(void) {
    char line[4096];
    FILE* maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL, "no /proc/self/maps");
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        char rights[8];
        if (strstr(line, "/mca_btl_velo.so") != NULL && sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 &&
            rights[2] == 'x') {
            board->from = from, board->to = to;
        }
    }
    fclose(maps);
    CHECK(board->to != 0, "the plugin is not in this process");
}

static void want_path(void) {
    board->ready = 0;
    board->wanted = 1;
    while (!board->ready) {
    }
    CHECK(board->path.entries != -1, "tracing is not permitted");
}

int main(int argc, char** argv) {
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED, "mmap");
    const pid_t rank = getpid();
    const pid_t helper = fork();
    if (helper == 0) tracer(rank);
    prctl(PR_SET_PTRACER, helper);
    start(&argc, &argv);
    const int samples = (int)argument(argc, argv, 1, 10), bytes = (int)argument(argc, argv, 2, 8), other = 1 - my_rank;
    find_plugin();
    char* value = allocate(bytes);
    for (int warm = 0; warm < 200; ++warm) {
        if (my_rank == 0) MPI_Send(value, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        MPI_Recv(value, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (my_rank == 1) MPI_Send(value, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    }
    Path best = {.instructions = INT32_MAX};
    for (int sample = 0; sample < samples; ++sample) {
        if (my_rank == 0) {
            int any; /* nothing was sent for some looks: as one that waits for an answer finds it */
            for (int look = 0; look < 10; ++look) MPI_Iprobe(other, 4, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
            want_path();
            begin_path();
            MPI_Send(value, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD);
            end_path();
            MPI_Recv(value, bytes, MPI_BYTE, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            sleep_ms(100); /* the message is there before it is looked for */
            want_path();
            begin_path();
            MPI_Recv(value, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            end_path();
            MPI_Send(value, bytes, MPI_BYTE, other, 3, MPI_COMM_WORLD);
        }
        while (board->wanted) {
        }
        if (board->path.instructions < best.instructions) best = board->path;
    }
    board->over = 1;
    const char* what = my_rank == 0 ? "send" : "receive";
    printf("%s_entries=%d %s_calls=%d %s_leaves=%d %s_branches=%d %s_locked=%d %s_instructions=%d %s_mpi=%d\n",
           what, best.entries, what, best.calls, what, best.leaves, what, best.branches, what, best.locked, what,
           best.instructions, what, best.mpi);
    free(value);
    MPI_Finalize();
    waitpid(helper, NULL, 0);
    return 0;
}
