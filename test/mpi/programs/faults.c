/* What goes wrong around a program: faults rendezvous|fork|descriptors
 *   rendezvous        rank 0 sends messages of 8 MiB to rank 1 for ever; both tell their process numbers
 *   fork              between messages every rank forks a child that exits at once, one that runs a program, and one that
 *                     lives for a while after its parent's memory has changed
 *   descriptors N     all ranks talk with N descriptors at most */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

enum { kBytes = 8 << 20 };

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

int main(int argc, char** argv) {
    if (argc > 2 && strcmp(argv[1], "descriptors") == 0) {
        struct rlimit limit = {(rlim_t)atol(argv[2]), (rlim_t)atol(argv[2])};
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    start(&argc, &argv);
    const char* what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "rendezvous") == 0) rendezvous();
    if (strcmp(what, "fork") == 0) forking();
    if (strcmp(what, "descriptors") == 0) few_descriptors();
    MPI_Finalize();
    return 0;
}
