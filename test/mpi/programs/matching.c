/* Wildcards, probes and the order of messages, from all ranks to rank 0.
 * matching wildcard|tags|probe|iprobe|mprobe|improbe */
#include "common.h"

enum { kMessages = 60, kTags = 3 };

/* Sizes on both sides of the eager limit, so that large messages must not be overtaken. */
static size_t bytes_of(int sequence) {
    static const size_t kBytes[] = {8, 100, 0, 5000, 57, 70000, 4096};
    return kBytes[sequence % 7];
}

static int tag_of(int sequence) {
    return 10 + sequence % kTags;
}

static void send_sequence(void) {
    unsigned char* data = allocate(70000);
    for (int i = 0; i < kMessages; ++i) {
        pattern_fill(data, bytes_of(i), seed_of(my_rank, (uint64_t)i, 0));
        MPI_Send(data, (int)bytes_of(i), MPI_BYTE, 0, tag_of(i), MPI_COMM_WORLD);
    }
    free(data);
}

static void verify(const unsigned char* data, const MPI_Status* status, int sequence) {
    CHECK(status->MPI_TAG == tag_of(sequence), "tag %d from rank %d at message %d", status->MPI_TAG,
          status->MPI_SOURCE, sequence);
    CHECK((size_t)bytes_received(status) == bytes_of(sequence), "%d bytes from rank %d at message %d",
          bytes_received(status), status->MPI_SOURCE, sequence);
    pattern_check(data, bytes_of(sequence), seed_of(status->MPI_SOURCE, (uint64_t)sequence, 0), "matching");
}

/* MPI_ANY_SOURCE and MPI_ANY_TAG: the messages of each sender come in the order that they were sent. */
static void receive_any(const char* way) {
    unsigned char* data = allocate(70000);
    int* next = calloc((size_t)ranks, sizeof *next);
    for (int i = 0; i < kMessages * (ranks - 1); ++i) {
        MPI_Status probed, status;
        MPI_Message message = MPI_MESSAGE_NULL;
        int found = 0;
        if (strcmp(way, "wildcard") == 0) {
            MPI_Recv(data, 70000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            verify(data, &status, next[status.MPI_SOURCE]++);
            continue;
        }
        if (strcmp(way, "probe") == 0) MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &probed);
        if (strcmp(way, "mprobe") == 0)
            MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &probed);
        while (strcmp(way, "iprobe") == 0 && !found) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &probed);
        }
        while (strcmp(way, "improbe") == 0 && !found) {
            MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, &probed);
        }
        int bytes = bytes_received(&probed);
        if (message != MPI_MESSAGE_NULL) {
            MPI_Mrecv(data, bytes, MPI_BYTE, &message, &status);
        } else {
            MPI_Recv(data, bytes, MPI_BYTE, probed.MPI_SOURCE, probed.MPI_TAG, MPI_COMM_WORLD, &status);
        }
        CHECK(status.MPI_SOURCE == probed.MPI_SOURCE, "probed rank %d, received rank %d", probed.MPI_SOURCE,
              status.MPI_SOURCE);
        verify(data, &status, next[status.MPI_SOURCE]++);
    }
    free(next);
    free(data);
}

/* One tag after the other, the last first: within each tag the order is kept. */
static void receive_by_tag(void) {
    unsigned char* data = allocate(70000);
    for (int tag = kTags - 1; tag >= 0; --tag) {
        for (int source = ranks - 1; source > 0; --source) {
            for (int i = tag; i < kMessages; i += kTags) {
                MPI_Status status;
                MPI_Recv(data, 70000, MPI_BYTE, source, 10 + tag, MPI_COMM_WORLD, &status);
                verify(data, &status, i);
            }
        }
    }
    free(data);
}

/* The senders of receive_by_tag must not block on messages that nobody takes yet. */
static void send_sequence_nonblocking(void) {
    unsigned char* data = allocate((size_t)kMessages * 70000);
    MPI_Request requests[kMessages];
    for (int i = 0; i < kMessages; ++i) {
        unsigned char* message = data + (size_t)i * 70000;
        pattern_fill(message, bytes_of(i), seed_of(my_rank, (uint64_t)i, 0));
        MPI_Isend(message, (int)bytes_of(i), MPI_BYTE, 0, tag_of(i), MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
    free(data);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    const char* way = argc > 1 ? argv[1] : "wildcard";
    bool by_tag = strcmp(way, "tags") == 0;
    if (my_rank == 0) {
        if (by_tag) {
            receive_by_tag();
        } else {
            receive_any(way);
        }
        printf("received=%d\n", kMessages * (ranks - 1));
    } else if (by_tag) {
        send_sequence_nonblocking();
    } else {
        send_sequence();
    }
    MPI_Finalize();
    return 0;
}
