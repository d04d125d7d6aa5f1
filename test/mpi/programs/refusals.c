/* The BTL gets no memory for descriptors beyond the few that it begins with, so that it refuses fragments of ob1's, among them
 * those that end a rendezvous (FIN, ACK), which ob1 tries again only when something else of that transport completes.
 * refusals MESSAGES BYTES: everyone sends to everyone while rank 0 and then rank 1 sleep; then nothing happens for a while; then
 * one more message goes around. Tells how often memory was refused. */
#include <dlfcn.h>

#include "common.h"

static volatile bool refusing;
static volatile long refused;

/* In place of Open MPI's, for the calls of Velo's plugin. */
typedef struct opal_free_list_t opal_free_list_t;
typedef struct opal_free_list_item_t opal_free_list_item_t;
__attribute__((visibility("default"))) int opal_free_list_grow_st(opal_free_list_t* list, size_t count,
                                                                  opal_free_list_item_t** item) {
    static int (*grow)(opal_free_list_t*, size_t, opal_free_list_item_t**);
    Dl_info caller;
    if (grow == NULL) {
        /* The comparison with NULL is what POSIX has instead of a cast that C permits. */
        *(void**)&grow = dlsym(RTLD_NEXT, "opal_free_list_grow_st");
        CHECK(grow != NULL, "no opal_free_list_grow_st");
    }
    if (refusing && dladdr(__builtin_return_address(0), &caller) != 0 && strstr(caller.dli_fname, "tl_velo.so") != NULL) {
        ++refused;
        if (item != NULL) *item = NULL;
        return -2; /* OPAL_ERR_OUT_OF_RESOURCE */
    }
    return grow(list, count, item);
}

static void all_to_all(int messages, size_t bytes, int sleeper) {
    size_t total = (size_t)messages * (size_t)ranks;
    unsigned char *out = allocate(bytes * total), *in = allocate(bytes * total);
    MPI_Request* requests = allocate(sizeof *requests * total * 2);
    int count = 0;
    for (size_t i = 0; i < total; ++i) {
        int peer = (int)(i % (size_t)ranks), sequence = (int)(i / (size_t)ranks);
        MPI_Irecv(in + i * bytes, (int)bytes, MPI_BYTE, peer, sequence, MPI_COMM_WORLD, &requests[count++]);
        pattern_fill(out + i * bytes, bytes, seed_of(my_rank, (uint64_t)sequence, peer));
        MPI_Isend(out + i * bytes, (int)bytes, MPI_BYTE, peer, sequence, MPI_COMM_WORLD, &requests[count++]);
    }
    if (my_rank == sleeper) sleep_ms(300);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < total; ++i) {
        int peer = (int)(i % (size_t)ranks), sequence = (int)(i / (size_t)ranks);
        pattern_check(in + i * bytes, bytes, seed_of(peer, (uint64_t)sequence, my_rank), "refusals");
    }
    free(out), free(in), free(requests);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int messages = (int)argument(argc, argv, 1, 50);
    size_t bytes = (size_t)argument(argc, argv, 2, 50000);
    MPI_Barrier(MPI_COMM_WORLD);
    refusing = true;
    all_to_all(messages, bytes, 0);
    all_to_all(messages, bytes, 1);
    sleep_ms(200);
    all_to_all(1, bytes, -1);
    refusing = false;
    long mine = refused, all;
    MPI_Reduce(&mine, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (my_rank == 0) printf("messages=%d\nrefused=%ld\n", (2 * messages + 1) * ranks * ranks, all);
    MPI_Finalize();
    return 0;
}
