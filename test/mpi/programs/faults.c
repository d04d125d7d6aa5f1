/* What goes wrong around a program: faults WHAT
 *   rendezvous        rank 0 sends messages of 8 MiB to rank 1 for ever; both tell their process numbers
 *   fork              between messages every rank forks a child that exits at once, one that runs a program, and one that
 *                     lives for a while after its parent's memory has changed
 *   descriptors N     all ranks talk with N descriptors at most
 *   none_left         Velo finds no descriptor left for the shared memory of this process
 *   taken             after MPI_Init each rank takes all descriptors that are left, and only then they talk
 *   jailed            likewise with an empty directory for its root
 *   full              likewise when nothing is left of /dev/shm
 *   bereft            rank 1 kills itself; the others send to it until that fails, and wait for a message of it
 *   waiting [SECONDS] likewise, and the others wait alone
 *   left              rank 1 kills itself, and the others are in a barrier with it
 *   killed CALL       likewise, and the others receive from it, send to it or are in a barrier, and handle no error */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

enum { kBytes = 8 << 20 };

static bool none_left;

/* In place of the C library's, for the calls of Velo's plugin: its own shared memory has no name (O_TMPFILE). */
__attribute__((visibility("default"))) int open(const char* path, int flags, ...) {
    static int (*next)(const char*, int, ...);
    if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "open");
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    Dl_info caller;
    bool velo = dladdr(__builtin_return_address(0), &caller) != 0 && strstr(caller.dli_fname, "tl_velo.so") != NULL;
    if (!velo || !none_left || (flags & O_TMPFILE) != O_TMPFILE) return next(path, flags, mode);
    struct rlimit all, none;
    getrlimit(RLIMIT_NOFILE, &all);
    none = (struct rlimit){0, all.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    int file = next(path, flags, mode), error = errno;
    setrlimit(RLIMIT_NOFILE, &all);
    errno = error;
    return file;
}

static void rendezvous(void) {
    char* data = calloc(1, kBytes);
    printf("rank %d pid=%d\n", my_rank, (int)getpid());
    fflush(stdout);
    for (;;) {
        if (my_rank == 0) MPI_Send(data, kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        if (my_rank == 1) MPI_Recv(data, kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (my_rank > 1) sleep(1);
    }
}

/* A ring of messages, each small or by rendezvous. */
static void round_trip(unsigned char* out, unsigned char* in, int bytes, int round) {
    const int right = (my_rank + 1) % ranks, left = (my_rank + ranks - 1) % ranks;
    memset(out, (my_rank * 31 + round) & 0xff, (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_BYTE, right, round, in, bytes, MPI_BYTE, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; ++i) CHECK(in[i] == ((left * 31 + round) & 0xff), "byte %d of round %d", i, round);
}

static int status_of(pid_t child) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void forking(void) {
    enum { kRounds = 12 };
    static unsigned char out[100000], in[100000];
    for (int round = 0; round < kRounds; ++round) {
        pid_t quick = fork();
        if (quick == 0) _exit(7);
        pid_t program = fork();
        if (program == 0) {
            execlp("true", "true", (char*)NULL);
            _exit(1);
        }
        pid_t lasting = fork();
        if (lasting == 0) {
            usleep(30000);
            _exit(9);
        }
        round_trip(out, in, round % 2 ? 40 : (int)sizeof out, round);
        round_trip(out, in, 3000, round + 1000);
        CHECK(status_of(quick) == 7 && status_of(program) == 0 && status_of(lasting) == 9, "children of round %d", round);
    }
    if (my_rank == 0) printf("rounds=%d\n", kRounds);
}

static void few_descriptors(void) {
    static unsigned char out[100000], in[100000];
    for (int round = 0; round < 20; ++round) round_trip(out, in, round % 2 ? 40 : (int)sizeof out, round);
    if (my_rank == 0) printf("rounds=20\n");
}

static void take_descriptors(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 256;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit: %s", strerror(errno));
    while (dup(0) >= 0) {
    }
    CHECK(errno == EMFILE, "dup: %s", strerror(errno));
}

static void enter_jail(void) {
    char directory[] = "/tmp/velo-jail-XXXXXX";
    CHECK(mkdtemp(directory) != NULL && chdir(directory) == 0 && rmdir(directory) == 0 && chroot(".") == 0, "chroot: %s",
          strerror(errno));
}

static void fill_shared_memory(void) {
    static char block[1 << 16];
    /* Each rank has its mailbox, and a board that has served: its chunks alone have no memory yet. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        const int file = open("/dev/shm/full", O_WRONLY | O_CREAT | O_EXCL, 0600);
        CHECK(file >= 0 && unlink("/dev/shm/full") == 0, "/dev/shm/full: %s", strerror(errno));
        for (size_t bytes = sizeof block; bytes > 0;)
            if (write(file, block, bytes) <= 0) bytes /= 2;
        CHECK(errno == ENOSPC, "write: %s", strerror(errno));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* But for barriers nobody has talked before. */
static void talk_late(void) {
    static unsigned char data[4096];
    for (int round = 0; round < 3 * ranks; ++round) {
        const uint64_t seed = seed_of(round % ranks, (uint64_t)round, 0);
        if (my_rank == round % ranks) pattern_fill(data, sizeof data, seed);
        MPI_Bcast(data, sizeof data, MPI_BYTE, round % ranks, MPI_COMM_WORLD);
        pattern_check(data, sizeof data, seed, "late");
    }
    static unsigned char out[100000], in[100000];
    round_trip(out, in, 40, 0);
    round_trip(out, in, (int)sizeof out, 1);
    if (my_rank == 0) printf("rounds=%d\n", 3 * ranks);
}

static int until_it_fails(void) {
    static char data[2000];
    int error = MPI_SUCCESS;
    for (const double end = MPI_Wtime() + 20; error == MPI_SUCCESS && MPI_Wtime() < end; usleep(1000))
        error = MPI_Send(data, sizeof data, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    return error;
}

/* Of what has come before it has died all is there, a message too that nobody had asked for. */
static void outlive(bool sends, double seconds) {
    int value = my_rank, done = 0, error = MPI_SUCCESS;
    MPI_Request early, late;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (my_rank != 1) MPI_Irecv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &early);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 1) {
        for (int to = 0; to < ranks; ++to)
            if (to != 1) MPI_Send(&value, 1, MPI_INT, to, 8, MPI_COMM_WORLD);
        usleep(200000);
        kill(getpid(), SIGKILL);
    }
    const int sent = sends ? until_it_fails() : MPI_SUCCESS;
    for (const double end = MPI_Wtime() + seconds; !done && MPI_Wtime() < end;) error = MPI_Test(&early, &done, MPI_STATUS_IGNORE);
    CHECK(MPI_Recv(&value, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS && value == 1, "what it has sent");
    int late_done = 0, late_error = MPI_SUCCESS;
    MPI_Irecv(&value, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &late);
    for (const double end = MPI_Wtime() + 1; !late_done && MPI_Wtime() < end;)
        late_error = MPI_Test(&late, &late_done, MPI_STATUS_IGNORE);
    if (my_rank == 0) printf("sent=%d received=%d late=%d\n", sent != MPI_SUCCESS, error != MPI_SUCCESS, late_error != MPI_SUCCESS);
    fflush(stdout);
    usleep(300000);
    _exit(0); /* MPI_Finalize would wait for it */
}

static void leave_others_in_barrier(void) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 1) kill(getpid(), SIGKILL);
    int failed = MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS, other = 0;
    const int friend = 2 - my_rank;
    CHECK(MPI_Sendrecv(&failed, 1, MPI_INT, friend, 0, &other, 1, MPI_INT, friend, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "the others go on");
    if (my_rank == 0) printf("failed=%d\n", failed + other);
    fflush(stdout);
    usleep(300000);
    _exit(0);
}

static void leave_others_in(const char* call) {
    static char data[2000];
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 1) {
        usleep(200000);
        kill(getpid(), SIGKILL);
    }
    if (strcmp(call, "receive") == 0) MPI_Recv(data, sizeof data, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (strcmp(call, "send") == 0) MPI_Send(data, sizeof data, MPI_BYTE, 1, 8, MPI_COMM_WORLD);
    if (strcmp(call, "barrier") == 0) MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    if (argc > 2 && strcmp(argv[1], "descriptors") == 0) {
        struct rlimit limit = {(rlim_t)atol(argv[2]), (rlim_t)atol(argv[2])};
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    none_left = argc > 1 && strcmp(argv[1], "none_left") == 0;
    start(&argc, &argv);
    const char* what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "rendezvous") == 0) rendezvous();
    if (strcmp(what, "fork") == 0) forking();
    if (strcmp(what, "left") == 0) leave_others_in_barrier();
    if (strcmp(what, "killed") == 0) leave_others_in(argc > 2 ? argv[2] : "");
    if (strcmp(what, "bereft") == 0 || strcmp(what, "waiting") == 0) outlive(strcmp(what, "bereft") == 0, argc > 2 ? atof(argv[2]) : 5);
    if (strcmp(what, "descriptors") == 0 || strcmp(what, "none_left") == 0) few_descriptors();
    if (strcmp(what, "taken") == 0 || strcmp(what, "jailed") == 0 || strcmp(what, "full") == 0) {
        if (strcmp(what, "taken") == 0) take_descriptors();
        else if (strcmp(what, "jailed") == 0) enter_jail();
        else fill_shared_memory();
        talk_late();
    }
    MPI_Finalize();
    return 0;
}
