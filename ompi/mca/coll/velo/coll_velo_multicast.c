/* Multicast between nodes: what leaders publish, and which communicators multicast. All processes decide alike. */
#include "coll_velo.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mca_coll_velo_describe_multicast(mca_coll_velo_place_t *place)
{
    uint32_t here;
    memset(place, 0, sizeof(*place));
    place->leader = mca_coll_velo_own_leader(&here);
    if (0 == strcmp("off", mca_coll_velo.config.multicast) || place->leader != OPAL_PROC_MY_NAME.vpid) {
        return;
    }
    (void) velo_multicast_interface(mca_coll_velo.config.multicast_interface, &place->address, &place->mtu);
    if (!velo_multicast_new_key(place->key)) {
        place->address = 0;
    }
}

/* The first process says it for all. */
static void report_no_interface(uint32_t rank)
{
    const char *name = mca_coll_velo.config.multicast_interface;
    char text[512];
    if (0 == OPAL_PROC_MY_NAME.vpid) {
        snprintf(text, sizeof(text), "the node of rank %u has no interface %s that is up and multicasts: broadcasts use schedules "
                 "(coll_velo_multicast_interface)", rank, NULL == name || '\0' == *name ? "of UCX_NET_DEVICES, or any," : name);
        mca_common_velo_log(0, text);
    }
}

/* Opens the channel between the leaders; false if one of them cannot multicast. */
static bool open_channel(const mca_coll_velo_nodes_t *nodes)
{
    enum { LATE_US = 800 }; /* design/multicast.md */
    const uint32_t leader = nodes->leader[OPAL_PROC_MY_NAME.vpid];
    velo_multicast_config config = {.count = nodes->count,
                                    .me = UINT32_MAX,
                                    .mtu = UINT32_MAX,
                                    .led = leader != OPAL_PROC_MY_NAME.vpid,
                                    .chosen = &mca_coll_velo.config,
                                    .attach_after_us = LATE_US,
                                    .stall_warning = mca_common_velo_config().stall_warning};
    uint32_t *addresses = calloc(nodes->count, sizeof(*addresses)), *ranks = calloc(nodes->count, sizeof(*ranks)), next = 0;
    char error[512] = "out of memory";
    bool possible = NULL != addresses && NULL != ranks;
    for (uint32_t rank = 0; possible && rank < nodes->size; ++rank) {
        if (nodes->leader[rank] != rank) {
            continue;
        }
        mca_coll_velo_place_t place;
        mca_coll_velo_place_of(rank, &place);
        if (0 == next) {
            memcpy(config.key, place.key, sizeof(config.key));
        }
        if (rank == leader) {
            config.me = next;
        }
        addresses[next] = place.address;
        ranks[next++] = rank;
        config.mtu = place.mtu < config.mtu ? place.mtu : config.mtu;
        possible = 0 != place.address;
        if (!possible) {
            report_no_interface(rank);
        }
    }
    config.addresses = addresses;
    config.ranks = ranks;
    /* A leader that cannot open its sockets does not answer, and the others notice. */
    if (possible && UINT32_MAX != config.me &&
        VELO_OK != velo_performer_multicast(mca_coll_velo.performer, &config, error, sizeof(error))) {
        mca_common_velo_log(1, error);
    }
    free(addresses);
    free(ranks);
    return possible;
}

static enum { UNKNOWN, IMPOSSIBLE, POSSIBLE } state;

static bool is_possible(void)
{
    static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&looking);
    if (UNKNOWN == state) {
        const mca_coll_velo_nodes_t *nodes = mca_coll_velo_nodes();
        state = NULL != nodes->leader && 2 <= nodes->count && open_channel(nodes) ? POSSIBLE : IMPOSSIBLE;
    }
    const bool possible = POSSIBLE == state;
    pthread_mutex_unlock(&looking);
    return possible;
}

void mca_coll_velo_forget_multicast(void)
{
    state = UNKNOWN;
}

void mca_coll_velo_multicast(mca_coll_velo_module_t *module, velo_goal_request *request)
{
    enum {
        LEAST_NODES = 3, /* to one other node there is nothing to multiply */
        MOST_BYTES = 65536 /* longer ones go from node to node */
    };
    const velo_coll_config *config = &mca_coll_velo.config;
    if (MCA_COLL_VELO_UNKNOWN == module->multicasts) {
        const uint32_t least = 0 == strcmp("always", config->multicast) ? 2 : LEAST_NODES;
        module->multicasts = 0 != strcmp("off", config->multicast) && module->spans_job && least <= mca_coll_velo_nodes()->count &&
                             is_possible();
    }
    if (module->multicasts && 0 < request->bytes && request->bytes <= MOST_BYTES) {
        request->algorithm = "leaders";
        request->multicast = true;
    }
}
