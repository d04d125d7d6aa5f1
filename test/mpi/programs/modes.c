/* The send modes, persistent requests and a cancelled receive, between pairs of ranks.
 * modes ssend|issend|bsend|rsend|persistent|cancel BYTES */
#include "common.h"

enum { kRounds = 20, kTag = 4 };

static int bytes;
static int partner;
static unsigned char* data;

static void receive(uint64_t sequence) {
    memset(data, 0, (size_t)bytes);
    MPI_Recv(data, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pattern_check(data, (size_t)bytes, seed_of(partner, sequence, 0), "modes");
}

static void fill(uint64_t sequence) {
    pattern_fill(data, (size_t)bytes, seed_of(my_rank, sequence, 0));
}

static bool is_sender(void) {
    return my_rank % 2 == 0;
}

static void ssend(void) {
    for (uint64_t i = 0; i < kRounds; ++i) {
        if (is_sender()) {
            fill(i);
            MPI_Ssend(data, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD);
        } else {
            receive(i);
        }
    }
}

/* Not complete before the receive has started. */
static void issend(void) {
    for (uint64_t i = 0; i < kRounds; ++i) {
        if (is_sender()) {
            MPI_Request request;
            int done;
            fill(i);
            MPI_Issend(data, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &request);
            for (int k = 0; k < 100; ++k) {
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
                CHECK(!done, "a synchronous send completed before the receive");
            }
            MPI_Send(NULL, 0, MPI_BYTE, partner, kTag + 1, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, partner, kTag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            receive(i);
        }
    }
}

static void bsend(void) {
    int size = kRounds * (bytes + MPI_BSEND_OVERHEAD);
    void* buffer = allocate((size_t)size);
    if (is_sender()) {
        MPI_Buffer_attach(buffer, size);
        for (uint64_t i = 0; i < kRounds; ++i) {
            fill(i);
            MPI_Bsend(data, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD);
        }
        MPI_Buffer_detach(&buffer, &size);
    } else {
        for (uint64_t i = 0; i < kRounds; ++i) receive(i);
    }
    free(buffer);
}

static void rsend(void) {
    for (uint64_t i = 0; i < kRounds; ++i) {
        if (is_sender()) {
            fill(i);
            MPI_Recv(NULL, 0, MPI_BYTE, partner, kTag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Rsend(data, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD);
        } else {
            MPI_Request request;
            memset(data, 0, (size_t)bytes);
            MPI_Irecv(data, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, partner, kTag + 1, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            pattern_check(data, (size_t)bytes, seed_of(partner, i, 0), "rsend");
        }
    }
}

static void persistent(void) {
    unsigned char* incoming = allocate((size_t)bytes);
    MPI_Request requests[2];
    MPI_Recv_init(incoming, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(data, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &requests[1]);
    for (uint64_t i = 0; i < kRounds; ++i) {
        memset(incoming, 0, (size_t)bytes);
        fill(i);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        pattern_check(incoming, (size_t)bytes, seed_of(partner, i, 0), "persistent");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    free(incoming);
}

static void cancel(void) {
    for (uint64_t i = 0; i < kRounds; ++i) {
        MPI_Request request;
        MPI_Status status;
        int cancelled;
        MPI_Irecv(data, bytes, MPI_BYTE, partner, kTag + 9, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled, "the receive was not cancelled");
        if (is_sender()) {
            fill(i);
            MPI_Send(data, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD);
        } else {
            receive(i);
        }
    }
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } kModes[] = {{"ssend", ssend}, {"issend", issend},         {"bsend", bsend},
                  {"rsend", rsend}, {"persistent", persistent}, {"cancel", cancel}};
    start(&argc, &argv);
    partner = my_rank ^ 1;
    bytes = (int)argument(argc, argv, 2, 8);
    data = allocate((size_t)bytes);
    bool found = false;
    for (size_t i = 0; i < sizeof kModes / sizeof *kModes; ++i) {
        if (argc < 2 || strcmp(argv[1], kModes[i].name) != 0) continue;
        kModes[i].run();
        found = true;
    }
    CHECK(found, "no such mode");
    free(data);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) printf("rounds=%d\n", kRounds);
    MPI_Finalize();
    return 0;
}
