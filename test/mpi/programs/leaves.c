/* What has been sent by calls that block arrives while the sender calls nothing of MPI.
 * leaves send|gaps|bsend MESSAGES BYTES */
#include <signal.h>
#include <sys/syscall.h>

#include "common.h"

int main(int argc, char** argv) {
    sigset_t all_have_come;
    sigemptyset(&all_have_come);
    sigaddset(&all_have_come, SIGUSR1);
    sigprocmask(SIG_BLOCK, &all_have_come, NULL);
    start(&argc, &argv);
    const char* how = argc > 1 ? argv[1] : "send";
    const int count = (int)argument(argc, argv, 2, 40), bytes = (int)argument(argc, argv, 3, 8);
    const bool gaps = strcmp(how, "gaps") == 0, buffered = strcmp(how, "bsend") == 0;
    MPI_Datatype type = MPI_BYTE;
    const int width = gaps ? 2 * bytes : bytes;
    if (gaps) {
        MPI_Type_create_resized(MPI_BYTE, 0, 2, &type);
        MPI_Type_commit(&type);
    }
    unsigned char* data = allocate((size_t)width + 1);
    pid_t sender = getpid();
    MPI_Bcast(&sender, sizeof sender, MPI_BYTE, 0, MPI_COMM_WORLD);
    /* Nobody waits until the connection for a buffered one is made. */
    if (buffered && my_rank < 2) {
        char from_other;
        MPI_Sendrecv(how, 1, MPI_BYTE, 1 - my_rank, 1, &from_other, 1, MPI_BYTE, 1 - my_rank, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    if (my_rank == 0) {
        int size = count * (bytes + MPI_BSEND_OVERHEAD), signal;
        void* attached = allocate((size_t)size);
        if (buffered) MPI_Buffer_attach(attached, size);
        for (int i = 0; i < count; ++i) {
            pattern_fill(data, (size_t)width, seed_of(0, (uint64_t)i, 0));
            if (buffered)
                MPI_Bsend(data, bytes, type, 1, 0, MPI_COMM_WORLD);
            else
                MPI_Send(data, bytes, type, 1, 0, MPI_COMM_WORLD);
        }
        sigwait(&all_have_come, &signal);
        if (buffered) MPI_Buffer_detach(&attached, &size);
        free(attached);
    } else if (my_rank == 1) {
        unsigned char* expected = allocate((size_t)width + 1);
        for (int i = 0; i < count; ++i) {
            MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            pattern_fill(expected, (size_t)width, seed_of(0, (uint64_t)i, 0));
            for (int k = 0; k < bytes; ++k)
                CHECK(data[k] == expected[gaps ? 2 * k : k], "byte %d of message %d is wrong", k, i);
        }
        free(expected);
        /* Its first thread alone: those of Open MPI do not wait for that. */
        CHECK(syscall(SYS_tgkill, sender, sender, SIGUSR1) == 0, "no process %d", (int)sender);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) printf("received=%d\n", count);
    MPI_Finalize();
    return 0;
}
