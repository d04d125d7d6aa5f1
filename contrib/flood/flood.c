/* Rank 1 sends MESSAGES of BYTES to rank 0, which calls MPI all the time and receives none of them until they have all
 * been sent or SECONDS have gone by; then it receives all. Rank 0 prints its resident memory while that goes on:
 * "flood|receive seconds KiB".
 * flood MESSAGES BYTES SECONDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLOOD = 1, FINISHED = 2 };
static const double kStep = 0.02; /* seconds between two lines */

static double begin, printed;

static long resident_kib(void) {
    long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void print(const char* phase, int always) {
    double now = MPI_Wtime() - begin;
    if (!always && now - printed < kStep) return;
    printed = now;
    printf("%s %.3f %ld\n", phase, now, resident_kib());
}

static void send_all(int messages, char* data, int bytes) {
    for (int i = 0; i < messages; ++i) {
        memcpy(data, &i, sizeof i);
        MPI_Send(data, bytes, MPI_BYTE, 0, FLOOD, MPI_COMM_WORLD);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, FINISHED, MPI_COMM_WORLD);
}

static void receive_all(int messages, char* data, int bytes, double seconds) {
    /* Posted first: a probe would search all that has come, which slows the flood down. */
    int finished = 0;
    MPI_Request last;
    MPI_Irecv(NULL, 0, MPI_BYTE, 1, FINISHED, MPI_COMM_WORLD, &last);
    print("flood", 1);
    while (!finished && MPI_Wtime() - begin < seconds) {
        MPI_Test(&last, &finished, MPI_STATUS_IGNORE);
        print("flood", 0);
    }
    print("flood", 1);
    for (int i = 0; i < messages; ++i) {
        int number;
        MPI_Recv(data, bytes, MPI_BYTE, 1, FLOOD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memcpy(&number, data, sizeof number);
        if (number != i) {
            fprintf(stderr, "message %d has come in the place of %d\n", number, i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (i % 64 == 0) print("receive", 0);
    }
    if (!finished) MPI_Wait(&last, MPI_STATUS_IGNORE);
    print("receive", 1);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int messages = argc > 1 ? atoi(argv[1]) : 1000000, bytes = argc > 2 ? atoi(argv[2]) : 1024;
    double seconds = argc > 3 ? atof(argv[3]) : 10;
    char* data = bytes < (int)sizeof(int) ? NULL : calloc(1, (size_t)bytes);
    if (ranks != 2 || data == NULL) {
        if (rank == 0) fprintf(stderr, "flood MESSAGES BYTES SECONDS, with two ranks and 4 bytes at least\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    if (rank == 0) {
        receive_all(messages, data, bytes, seconds);
    } else {
        send_all(messages, data, bytes);
    }
    free(data);
    MPI_Finalize();
    return 0;
}
