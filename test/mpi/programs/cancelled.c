/* Threads of rank 0 are cancelled while they are inside MPI, as others are: cancelled THREADS
 * They wait for messages that never come, and send messages to rank 1, which takes them. Open MPI has no word for that: it may
 * not notice, and what it keeps on their stacks is gone if it does. So rank 0 ends the job: MPI_Abort(42). */
#include <pthread.h>

#include "common.h"

enum { kNever = 1, kFlood = 2, kBytes = 3000 };

static void* wait_for_ever(void* unused) {
    char data;
    MPI_Recv(&data, 1, MPI_BYTE, 1, kNever, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return unused;
}

static void* flood(void* unused) {
    char data[kBytes] = {0};
    for (;;) {
        MPI_Send(data, kBytes, MPI_BYTE, 1, kFlood, MPI_COMM_WORLD);
        pthread_testcancel();
    }
    return unused;
}

int main(int argc, char** argv) {
    enum { kMost = 16 };
    pthread_t threads[kMost];
    start_threads(&argc, &argv);
    const int count = (int)argument(argc, argv, 1, 4);
    CHECK(count <= kMost, "%d threads", count);
    for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        for (int i = 0; i < count; ++i)
            CHECK(pthread_create(&threads[i], NULL, i % 2 ? flood : wait_for_ever, NULL) == 0, "no thread");
        sleep_ms(100);
        for (int i = 0; i < count; ++i) pthread_cancel(threads[i]);
        sleep_ms(100);
        MPI_Abort(MPI_COMM_WORLD, 42);
    }
    for (char data[kBytes];;) MPI_Recv(data, kBytes, MPI_BYTE, 0, kFlood, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
