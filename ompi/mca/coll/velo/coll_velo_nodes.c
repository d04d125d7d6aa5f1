/* The nodes of the job, each led by its lowest rank, and how the ranks of a communicator lie on them. All processes
 * know it alike, from what each has published. */
#include "coll_velo.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static mca_coll_velo_nodes_t nodes;
static bool known;

uint32_t mca_coll_velo_own_leader(uint32_t *here)
{
    uint32_t leader = OPAL_PROC_MY_NAME.vpid;
    char *ranks = mca_common_velo_local_ranks();
    *here = 0;
    for (const char *at = ranks; NULL != at; at = strchr(at, ',')) {
        at += ',' == *at;
        const uint32_t rank = (uint32_t) strtoul(at, NULL, 10);
        leader = rank < leader ? rank : leader;
        ++*here;
    }
    free(ranks);
    return leader;
}

static void look(void)
{
    uint32_t here;
    const uint32_t leader = mca_coll_velo_own_leader(&here);
    nodes.size = mca_common_velo_job_size();
    nodes.leader = malloc(nodes.size * sizeof(*nodes.leader));
    for (uint32_t rank = 0; NULL != nodes.leader && rank < nodes.size; ++rank) {
        mca_coll_velo_place_t place = {.leader = leader};
        if (here < nodes.size) { /* else nobody needs to be asked */
            mca_coll_velo_place_of(rank, &place);
        }
        nodes.leader[rank] = place.leader;
        nodes.count += place.leader == rank;
    }
}

const mca_coll_velo_nodes_t *mca_coll_velo_nodes(void)
{
    static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&looking);
    if (!known) {
        known = true;
        look();
    }
    pthread_mutex_unlock(&looking);
    return &nodes;
}

void mca_coll_velo_forget_nodes(void)
{
    free(nodes.leader);
    memset(&nodes, 0, sizeof(nodes));
    known = false;
}

/* Built-in choices do not ask for nodes: then no process is asked where it is. */
static bool is_wanted(void)
{
    const velo_coll_config *config = &mca_coll_velo.config;
    return 0 != strcmp("off", config->multicast) || (NULL != config->choices && '\0' != *config->choices);
}

/* A node that comes again counts as another one. */
void mca_coll_velo_lie_on_nodes(mca_coll_velo_module_t *module)
{
    module->nodes_are_known = true;
    const mca_coll_velo_nodes_t *of_job = is_wanted() ? mca_coll_velo_nodes() : NULL;
    if (NULL == of_job || NULL == of_job->leader) {
        return;
    }
    uint32_t each = module->size, count = 0, leader = UINT32_MAX;
    bool leads = true;
    for (uint32_t rank = 0; rank < module->size; ++rank) {
        const uint32_t process = ompi_group_get_proc_name(module->members, (int) rank).vpid;
        if (process >= of_job->size) {
            return;
        }
        if (of_job->leader[process] == leader) {
            continue;
        }
        leader = of_job->leader[process];
        leads = leads && process == leader;
        each = 1 == count ? rank : each;
        if (rank != count * each) {
            return;
        }
        ++count;
    }
    if (module->size <= count * each) {
        module->ranks_on_node = each;
        module->spans_job = leads && count == of_job->count;
    }
}
