/* Multicast between nodes: which process leads each node, what leaders publish, and which communicators multicast.
 * All processes decide alike, from what each has published. */
#include "coll_velo.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lowest rank of the job on its node leads it. */
static struct {
    bool known;
    uint32_t size;    /* of the job */
    uint32_t *leader; /* by rank in the job */
    uint32_t leaders;
} job;

void mca_coll_velo_describe_multicast(mca_coll_velo_place_t *place)
{
    char *ranks = mca_common_velo_local_ranks();
    memset(place, 0, sizeof(*place));
    place->leader = OPAL_PROC_MY_NAME.vpid;
    for (const char *at = ranks; NULL != at; at = strchr(at, ',')) {
        at += ',' == *at;
        const uint32_t rank = (uint32_t) strtoul(at, NULL, 10);
        if (rank < place->leader) {
            place->leader = rank;
        }
    }
    free(ranks);
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
static bool open_channel(void)
{
    enum { LATE_US = 800 }; /* design/multicast.md */
    const uint32_t leader = job.leader[OPAL_PROC_MY_NAME.vpid];
    velo_multicast_config config = {.count = job.leaders,
                                    .me = UINT32_MAX,
                                    .mtu = UINT32_MAX,
                                    .led = leader != OPAL_PROC_MY_NAME.vpid,
                                    .static_shares = 0 == strcmp("static", mca_coll_velo.config.multicast_shares),
                                    .attach_after_us = LATE_US,
                                    .stall_warning = mca_common_velo_config().stall_warning};
    uint32_t *addresses = calloc(job.leaders, sizeof(*addresses)), *ranks = calloc(job.leaders, sizeof(*ranks)), next = 0;
    char error[512] = "out of memory";
    bool possible = NULL != addresses && NULL != ranks;
    for (uint32_t rank = 0; possible && rank < job.size; ++rank) {
        if (job.leader[rank] != rank) {
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

static bool look_at_job(void)
{
    static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&looking);
    if (!job.known) {
        job.known = true;
        job.size = mca_common_velo_job_size();
        job.leader = calloc(job.size, sizeof(*job.leader));
        for (uint32_t rank = 0; NULL != job.leader && rank < job.size; ++rank) {
            mca_coll_velo_place_t place;
            mca_coll_velo_place_of(rank, &place);
            job.leader[rank] = place.leader;
            job.leaders += place.leader == rank;
        }
        if (NULL != job.leader && (2 > job.leaders || !open_channel())) {
            job.leaders = 0;
        }
    }
    const bool possible = NULL != job.leader && 0 < job.leaders;
    pthread_mutex_unlock(&looking);
    return possible;
}

void mca_coll_velo_forget_multicast(void)
{
    free(job.leader);
    memset(&job, 0, sizeof(job));
}

static uint32_t leader_of(const mca_coll_velo_module_t *module, uint32_t rank, bool *leads)
{
    const uint32_t process = ompi_group_get_proc_name(module->members, (int) rank).vpid;
    *leads = process < job.size && job.leader[process] == process;
    return process < job.size ? job.leader[process] : UINT32_MAX;
}

/* Ranks per node of a communicator that spans all nodes of the job: ranks are consecutive on each node, the leader
 * is the first, and only the last node may have fewer. 0: it is no such communicator. */
static uint32_t ranks_of_a_node(const mca_coll_velo_module_t *module)
{
    uint32_t nodes = 0, each = module->size, leader = UINT32_MAX;
    for (uint32_t rank = 0; rank < module->size; ++rank) {
        bool leads;
        const uint32_t led_by = leader_of(module, rank, &leads);
        if (leads) {
            each = 1 == nodes ? rank : each;
            if (0 < nodes && rank != nodes * each) {
                return 0;
            }
            leader = led_by;
            ++nodes;
        } else if (led_by != leader) {
            return 0;
        }
    }
    return nodes == job.leaders && module->size <= nodes * each ? each : 0;
}

void mca_coll_velo_multicast(mca_coll_velo_module_t *module, velo_goal_request *request)
{
    enum {
        LEAST_NODES = 3, /* to one other node there is nothing to multiply */
        MOST_BYTES = 65536 /* longer ones go from node to node */
    };
    const velo_coll_config *config = &mca_coll_velo.config;
    if (MCA_COLL_VELO_MULTICAST_UNKNOWN == module->on_node) {
        module->on_node = 0;
        if (0 != strcmp("off", config->multicast) && look_at_job() &&
            (LEAST_NODES <= job.leaders || 0 == strcmp("always", config->multicast))) {
            module->on_node = ranks_of_a_node(module);
        }
    }
    if (0 < module->on_node && 0 < request->bytes && request->bytes <= MOST_BYTES) {
        request->algorithm = "leaders";
        request->on_node = module->on_node;
        request->multicast = true;
    }
}
