/* Messages of each rank to itself, from several threads, each in a communicator of its own.
 * oneself THREADS
 *
 * All sizes around the limits, in one piece and with gaps, received before and after they are sent; a queue
 * of large messages that nothing has received yet; and the memory that many messages take after each other.
 * Prints `received`, of each rank, and the largest growth of a rank's memory. */
#include <pthread.h>

#include "common.h"

enum { kWord = 8, kStride = 24, kWaiting = 300, kLarge = 40000, kRepeats = 20000, kTag = 7, kGap = 0xa5 };

static const int kSizes[] = {0,    8,     56,    64,    1000,  4096,   8176,    8184,   8192,
                             8200, 16384, 32768, 65536, 98304, 131072, 1000000, 3000000};
enum { kSizeCount = sizeof kSizes / sizeof *kSizes };

typedef struct {
    MPI_Comm world;
    MPI_Datatype types[2]; /* a word, and a word with a gap behind it */
    int thread, received;
} Talk;

/* The words of a message lie one behind the other, or with gaps between them. */
static int stride(bool spread) {
    return spread ? kStride : kWord;
}

static unsigned char* buffer_for(bool spread, int bytes, unsigned char value) {
    size_t size = (size_t)(bytes / kWord * stride(spread));
    unsigned char* data = allocate(size);
    memset(data, value, size);
    return data;
}

static void fill(unsigned char* data, bool spread, int bytes, uint64_t seed) {
    for (int i = 0; i < bytes / kWord; ++i) {
        pattern_fill(data + (size_t)(i * stride(spread)), kWord, seed + (uint64_t)i);
    }
}

static void check(const unsigned char* data, bool spread, int bytes, uint64_t seed) {
    for (int i = 0; i < bytes / kWord; ++i) {
        const unsigned char* word = data + (size_t)(i * stride(spread));
        pattern_check(word, kWord, seed + (uint64_t)i, "oneself");
        for (int gap = kWord; gap < stride(spread); ++gap) CHECK(word[gap] == kGap, "a gap was written");
    }
}

/* `posted`: the receive is there before the message. */
static void one(Talk* talk, int bytes, bool spread_out, bool spread_in, bool posted) {
    uint64_t seed = seed_of(my_rank, (uint64_t)bytes << 20, talk->thread);
    unsigned char *out = buffer_for(spread_out, bytes, 0), *in = buffer_for(spread_in, bytes, kGap);
    int words = bytes / kWord, found;
    MPI_Request receive, send;
    MPI_Status status;
    fill(out, spread_out, bytes, seed);
    if (posted) MPI_Irecv(in, words, talk->types[spread_in], my_rank, kTag, talk->world, &receive);
    MPI_Isend(out, words, talk->types[spread_out], my_rank, kTag, talk->world, &send);
    if (!posted) {
        MPI_Probe(my_rank, kTag, talk->world, &status);
        MPI_Irecv(in, words, talk->types[spread_in], MPI_ANY_SOURCE, MPI_ANY_TAG, talk->world, &receive);
    }
    MPI_Wait(&receive, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Get_count(&status, talk->types[spread_in], &found);
    CHECK(found == words && status.MPI_SOURCE == my_rank, "%d words from %d instead of %d", found,
          status.MPI_SOURCE, words);
    check(in, spread_in, bytes, seed);
    ++talk->received;
    free(out), free(in);
}

static void all_sizes(Talk* talk) {
    for (int i = 0; i < kSizeCount; ++i) {
        for (int kind = 0; kind < 8; ++kind) one(talk, kSizes[i], kind & 1, kind & 2, kind & 4);
    }
}

/* Large messages that wait for receives, all at once and in order; each is answered within the call that
 * matches it. */
static void queue(Talk* talk, bool spread) {
    MPI_Request sends[kWaiting], receives[kWaiting];
    unsigned char *out[kWaiting], *in[kWaiting];
    for (int i = 0; i < kWaiting; ++i) {
        out[i] = buffer_for(spread, kLarge, 0);
        fill(out[i], spread, kLarge, seed_of(my_rank, (uint64_t)i << 20, talk->thread));
        MPI_Isend(out[i], kLarge / kWord, talk->types[spread], my_rank, kTag, talk->world, &sends[i]);
    }
    for (int i = 0; i < kWaiting; ++i) {
        in[i] = buffer_for(spread, kLarge, kGap);
        MPI_Irecv(in[i], kLarge / kWord, talk->types[spread], my_rank, kTag, talk->world, &receives[i]);
    }
    MPI_Waitall(kWaiting, receives, MPI_STATUSES_IGNORE);
    MPI_Waitall(kWaiting, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kWaiting; ++i) {
        check(in[i], spread, kLarge, seed_of(my_rank, (uint64_t)i << 20, talk->thread));
        ++talk->received;
        free(out[i]), free(in[i]);
    }
}

static void* talk_to_oneself(void* argument_) {
    Talk* talk = argument_;
    all_sizes(talk);
    queue(talk, false);
    queue(talk, true);
    return NULL;
}

/* How much the memory grows by messages of the largest eager size that are received one after the other. */
static long growth(void) {
    unsigned char out[8192], in[8192];
    memset(out, 1, sizeof out);
    long before = 0;
    for (int i = 0; i < kRepeats; ++i) {
        if (i == kRepeats / 10) before = resident_kib();
        MPI_Sendrecv(out, sizeof out, MPI_BYTE, my_rank, kTag, in, sizeof in, MPI_BYTE, my_rank, kTag,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return resident_kib() - before;
}

int main(int argc, char** argv) {
    start_threads(&argc, &argv);
    int count = (int)argument(argc, argv, 1, 1), received = 0;
    pthread_t* threads = allocate(sizeof *threads * (size_t)count);
    Talk* talks = allocate(sizeof *talks * (size_t)count);
    for (int i = 0; i < count; ++i) {
        talks[i] = (Talk){.thread = i};
        MPI_Comm_dup(MPI_COMM_WORLD, &talks[i].world);
        MPI_Type_contiguous(kWord, MPI_BYTE, &talks[i].types[false]);
        MPI_Type_create_resized(talks[i].types[false], 0, kStride, &talks[i].types[true]);
        for (int k = 0; k < 2; ++k) MPI_Type_commit(&talks[i].types[k]);
    }
    for (int i = 0; i < count; ++i) {
        CHECK(pthread_create(&threads[i], NULL, talk_to_oneself, &talks[i]) == 0, "no thread");
    }
    for (int i = 0; i < count; ++i) {
        pthread_join(threads[i], NULL);
        received += talks[i].received;
        MPI_Comm_free(&talks[i].world);
        for (int k = 0; k < 2; ++k) MPI_Type_free(&talks[i].types[k]);
    }
    free(threads), free(talks);
    long grown = growth(), most = 0;
    int least = 0;
    MPI_Reduce(&grown, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&received, &least, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (my_rank == 0) printf("received=%d growth_kib=%ld\n", least, most);
    MPI_Finalize();
    return 0;
}
