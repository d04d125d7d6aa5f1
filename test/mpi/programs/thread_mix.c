/* Threads of all ranks that do different things at once: nonblocking exchanges, synchronous rings, probes with and without a
 * claim, collectives, and one-sided communication. Threads of the same number on all ranks go through the same random list of
 * steps, on communicators and a window of their own and on MPI_COMM_WORLD with a tag of their own.
 * thread_mix THREADS STEPS SEED [two-sided] */
#include <pthread.h>

#include "common.h"

enum { kMost = 60000, kWindow = 8192 };

typedef struct {
    int number, steps;
    uint64_t state, own_state;
    MPI_Comm communicator;
    MPI_Win window;
    unsigned char *out, *in, *memory;
    long counted;
} Thread;

static bool one_sided = true;

static int right_of(int distance) {
    return (my_rank + distance) % ranks;
}

static int left_of(int distance) {
    return (my_rank + ranks - distance) % ranks;
}

static uint64_t seed_at(const Thread* thread, int rank, int step) {
    return seed_of(rank, (uint64_t)step, thread->number);
}

/* Everyone with everyone, on MPI_COMM_WORLD. */
static void exchange(Thread* thread, int step, int bytes) {
    int each = bytes % (kMost / 8), peers = ranks - 1;
    MPI_Request requests[2 * peers];
    for (int peer = 0; peer < peers; ++peer) {
        unsigned char* in = thread->in + peer * each;
        MPI_Irecv(in, each, MPI_BYTE, left_of(peer + 1), thread->number, MPI_COMM_WORLD, &requests[peer]);
    }
    pattern_fill(thread->out, (size_t)each, seed_at(thread, my_rank, step));
    for (int peer = 0; peer < peers; ++peer) {
        MPI_Isend(thread->out, each, MPI_BYTE, right_of(peer + 1), thread->number, MPI_COMM_WORLD, &requests[peers + peer]);
    }
    MPI_Waitall(2 * peers, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < peers; ++peer) {
        pattern_check(thread->in + peer * each, (size_t)each, seed_at(thread, left_of(peer + 1), step), "exchange");
    }
}

static void ring(Thread* thread, int step, int bytes) {
    MPI_Request request;
    pattern_fill(thread->out, (size_t)bytes, seed_at(thread, my_rank, step));
    MPI_Issend(thread->out, bytes, MPI_BYTE, right_of(1), 0, thread->communicator, &request);
    MPI_Recv(thread->in, kMost, MPI_BYTE, left_of(1), 0, thread->communicator, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    pattern_check(thread->in, (size_t)bytes, seed_at(thread, left_of(1), step), "ring");
}

/* The receiver does not know who sends, nor how much. */
static void probing(Thread* thread, int step, int bytes) {
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    int found = 0;
    pattern_fill(thread->out, (size_t)bytes, seed_at(thread, my_rank, step));
    MPI_Isend(thread->out, bytes, MPI_BYTE, right_of(1), step, thread->communicator, &request);
    switch (next_random(&thread->own_state) % 4) {
    case 0: MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, thread->communicator, &message, &status); break;
    case 1:
        while (!found) MPI_Improbe(MPI_ANY_SOURCE, step, thread->communicator, &found, &message, &status);
        break;
    case 2:
        while (!found) MPI_Iprobe(left_of(1), MPI_ANY_TAG, thread->communicator, &found, &status);
        message = MPI_MESSAGE_NULL;
        break;
    default:
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, thread->communicator, &status);
        message = MPI_MESSAGE_NULL;
    }
    int count = bytes_received(&status);
    CHECK(count == bytes && status.MPI_SOURCE == left_of(1) && status.MPI_TAG == step, "thread %d: probed %d bytes from rank %d",
          thread->number, count, status.MPI_SOURCE);
    if (message != MPI_MESSAGE_NULL) {
        MPI_Mrecv(thread->in, count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(thread->in, count, MPI_BYTE, status.MPI_SOURCE, step, thread->communicator, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    pattern_check(thread->in, (size_t)bytes, seed_at(thread, left_of(1), step), "probing");
}

static void collective(Thread* thread, int step, int bytes) {
    long mine = (my_rank + 1L) * (step + 1), sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, thread->communicator);
    CHECK(sum == ranks * (ranks + 1L) / 2 * (step + 1), "sum %ld", sum);
    int root = step % ranks;
    if (my_rank == root) pattern_fill(thread->in, (size_t)bytes, seed_at(thread, root, step));
    MPI_Bcast(thread->in, bytes, MPI_BYTE, root, thread->communicator);
    pattern_check(thread->in, (size_t)bytes, seed_at(thread, root, step), "broadcast");
}

/* A put to the right, a get from there, and a sum that all ranks count up. The first long of the window is that sum. */
static void windows(Thread* thread, int step, int bytes) {
    int size = bytes % (kWindow - (int)sizeof(long));
    long one = 1, before;
    pattern_fill(thread->out, (size_t)size, seed_at(thread, my_rank, step));
    MPI_Win_lock_all(0, thread->window);
    MPI_Put(thread->out, size, MPI_BYTE, right_of(1), sizeof(long), size, MPI_BYTE, thread->window);
    MPI_Win_flush(right_of(1), thread->window);
    MPI_Get(thread->in, size, MPI_BYTE, right_of(1), sizeof(long), size, MPI_BYTE, thread->window);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, thread->window);
    MPI_Win_unlock_all(thread->window);
    pattern_check(thread->in, (size_t)size, seed_at(thread, my_rank, step), "get");
    CHECK(before >= thread->counted * ranks && before < (thread->counted + 1) * ranks, "thread %d: counted %ld in turn %ld",
          thread->number, before, thread->counted);
    ++thread->counted;
    MPI_Barrier(thread->communicator);
}

static void* work(void* argument_) {
    static void (*const kSteps[])(Thread*, int, int) = {exchange, ring, probing, collective, windows};
    Thread* thread = argument_;
    for (int step = 0; step < thread->steps; ++step) {
        uint32_t kind = next_random(&thread->state) % 5, scale = next_random(&thread->state) % 3;
        int bytes = (int)(next_random(&thread->state) % (scale == 0 ? 100 : scale == 1 ? 4200 : kMost));
        kSteps[kind == 4 && !one_sided ? 0 : kind](thread, step, bytes);
    }
    return NULL;
}

static void prepare(Thread* thread, int number, int steps, long seed) {
    *thread = (Thread){.number = number, .steps = steps, .state = (uint64_t)seed * 100 + (uint64_t)number};
    thread->own_state = thread->state * 1000 + (uint64_t)my_rank;
    thread->out = allocate(kMost), thread->in = allocate(kMost), thread->memory = allocate(kWindow);
    memset(thread->memory, 0, kWindow);
    MPI_Comm_dup(MPI_COMM_WORLD, &thread->communicator);
    thread->window = MPI_WIN_NULL;
    if (one_sided) MPI_Win_create(thread->memory, kWindow, 1, MPI_INFO_NULL, thread->communicator, &thread->window);
}

int main(int argc, char** argv) {
    start_threads(&argc, &argv);
    int count = (int)argument(argc, argv, 1, 4), steps = (int)argument(argc, argv, 2, 40);
    one_sided = argc < 5;
    Thread* threads = allocate(sizeof *threads * (size_t)count);
    pthread_t* handles = allocate(sizeof *handles * (size_t)count);
    for (int i = 0; i < count; ++i) prepare(&threads[i], i, steps, argument(argc, argv, 3, 1));
    for (int i = 0; i < count; ++i) CHECK(pthread_create(&handles[i], NULL, work, &threads[i]) == 0, "no thread");
    for (int i = 0; i < count; ++i) pthread_join(handles[i], NULL);
    for (int i = 0; i < count; ++i) {
        if (one_sided) MPI_Win_free(&threads[i].window);
        MPI_Comm_free(&threads[i].communicator);
        free(threads[i].out), free(threads[i].in), free(threads[i].memory);
    }
    free(threads), free(handles);
    if (my_rank == 0) printf("steps=%d\n", count * steps);
    MPI_Finalize();
    return 0;
}
