/* Messages that nobody has posted a receive for must not hold up one that is waited for.
 * unexpected MESSAGES BYTES one_way|both_ways */
#include "common.h"

enum { kUnmatched = 1, kMatched = 2 };

static int messages;
static size_t bytes;

static MPI_Request* post_unmatched(unsigned char* data, int to) {
    MPI_Request* requests = allocate(sizeof(MPI_Request) * (size_t)messages);
    for (int i = 0; i < messages; ++i) {
        unsigned char* message = data + bytes * (size_t)i;
        pattern_fill(message, bytes, seed_of(my_rank, (uint64_t)i, kUnmatched));
        MPI_Isend(message, (int)bytes, MPI_BYTE, to, kUnmatched, MPI_COMM_WORLD, &requests[i]);
    }
    return requests;
}

static void receive_unmatched(int from) {
    unsigned char* message = allocate(bytes);
    for (int i = 0; i < messages; ++i) {
        MPI_Recv(message, (int)bytes, MPI_BYTE, from, kUnmatched, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pattern_check(message, bytes, seed_of(from, (uint64_t)i, kUnmatched), "unexpected");
    }
    free(message);
}

static void send_matched(int to) {
    uint64_t value = seed_of(my_rank, 0, kMatched);
    MPI_Request request;
    MPI_Isend(&value, 8, MPI_BYTE, to, kMatched, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void receive_matched(int from) {
    uint64_t value = 0;
    MPI_Recv(&value, 8, MPI_BYTE, from, kMatched, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == seed_of(from, 0, kMatched), "the matched message is wrong");
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    messages = (int)argument(argc, argv, 1, 200);
    bytes = (size_t)argument(argc, argv, 2, 8);
    bool both_ways = argc > 3 && strcmp(argv[3], "both_ways") == 0;
    int partner = my_rank ^ 1;
    bool sends = both_ways || my_rank == 1, receives = both_ways || my_rank == 0;
    unsigned char* data = allocate(bytes * (size_t)messages);
    MPI_Request* requests = NULL;

    if (sends) requests = post_unmatched(data, partner);
    if (my_rank == 0) {
        if (both_ways) send_matched(partner);
        receive_matched(partner);
    } else {
        if (both_ways) receive_matched(partner);
        send_matched(partner);
    }
    if (receives) receive_unmatched(partner);
    if (sends) MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(data);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) printf("received=%d\n", messages);
    MPI_Finalize();
    return 0;
}
