/* BTL verbs add_procs and del_procs. Called for all processes of the job at once, for some of them later, or for
 * processes of another job; peers are known by their process name only. */
#include "btl_velo.h"

#include <stdlib.h>
#include <string.h>

static mca_btl_velo_places_t *places_of(const mca_btl_base_module_t *btl)
{
    return &mca_btl_velo_module.places[&mca_btl_velo_network == btl];
}

struct mca_btl_base_endpoint_t *mca_btl_velo_endpoint_of(const mca_btl_base_module_t *btl, uint32_t place)
{
    return (struct mca_btl_base_endpoint_t *) mca_btl_velo_places_find(places_of(btl), place);
}

/* The endpoint of a peer in a module, the same one each time. */
static struct mca_btl_base_endpoint_t *endpoint_for(mca_btl_base_module_t *btl, uint32_t place, const opal_proc_t *proc)
{
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    struct mca_btl_base_endpoint_t *known = mca_btl_velo_endpoint_of(btl, place);
    if (NULL != known) {
        return known;
    }
    struct mca_btl_base_endpoint_t *endpoint = calloc(1, sizeof(*endpoint));
    if (NULL == endpoint || !mca_btl_velo_places_set(places_of(btl), place, endpoint)) {
        free(endpoint);
        return NULL;
    }
    endpoint->btl = btl;
    endpoint->place = place;
    endpoint->proc = proc;
    endpoint->next = module->endpoints;
    module->endpoints = endpoint;
    return endpoint;
}

/* The module for this node leaves processes on other nodes to that of the network, if there is one. */
static bool serves_here_only(const mca_btl_base_module_t *btl)
{
    return &mca_btl_velo_module.super == btl && mca_btl_velo_has_network();
}

/* Open MPI asks for modules in the order of their exclusivity, in which this one comes before BTL self: where that is there
 * too it is the one for messages of a process to itself. */
static bool self_is_there(void)
{
    mca_btl_base_selected_module_t *selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        if (0 == strcmp("self", selected->btl_module->btl_component->btl_version.mca_component_name)) {
            return true;
        }
    }
    return false;
}

int mca_btl_velo_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    const opal_proc_t *self = opal_proc_local_get();
    const bool spans_nodes = mca_common_velo_spans_nodes(), here_only = serves_here_only(btl);
    static bool said;
    mca_common_velo_say_in_use("btl", &said);
    /* A module with this flag that reaches all processes of a window but one, this process among them, osc/rdma takes for one
     * that reaches all but this process. */
    if (here_only && !self_is_there()) {
        btl->btl_atomic_flags &= ~MCA_BTL_ATOMIC_SUPPORTS_GLOB;
    }
    for (size_t i = 0; i < count; ++i) {
        endpoints[i] = NULL;
        /* Open MPI does not know where the processes of another mpirun are. */
        bool candidate = OPAL_PROC_ON_LOCAL_NODE(procs[i]->proc_flags) || spans_nodes ||
                         procs[i]->proc_name.jobid != self->proc_name.jobid;
        uint32_t place = MCA_BTL_VELO_OWN_PLACE;
        if (procs[i] == self) {
            candidate = &mca_btl_velo_network == btl || !self_is_there();
        } else {
            candidate = candidate && mca_common_velo_expect(procs[i], here_only, &place);
        }
        endpoints[i] = candidate ? endpoint_for(btl, place, procs[i]) : NULL;
        if (NULL != endpoints[i] && NULL != reachable) {
            (void) opal_bitmap_set_bit(reachable, (int) i);
        }
    }
    return OPAL_SUCCESS;
}

void mca_btl_velo_gone(uint32_t place, uint64_t process_name)
{
    mca_btl_velo_module_t *module = &mca_btl_velo_module;
    (void) process_name;
    for (int i = 0; i < 2; ++i) {
        struct mca_btl_base_endpoint_t *endpoint = mca_btl_velo_places_find(&module->places[i], place);
        if (NULL != endpoint) {
            endpoint->place = MCA_BTL_VELO_NOWHERE;
            endpoint->peer = velo_peer_nobody(module->engine);
            (void) mca_btl_velo_places_set(&module->places[i], place, NULL);
        }
    }
}

int mca_btl_velo_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints)
{
    /* Peers and endpoints stay: Open MPI calls this at the end, and not when a process of another job has been
     * disconnected. Of those the engine tells: mca_btl_velo_gone. */
    (void) btl, (void) count, (void) procs, (void) endpoints;
    return OPAL_SUCCESS;
}

void mca_btl_velo_free_endpoints(mca_btl_velo_module_t *module)
{
    while (NULL != module->endpoints) {
        struct mca_btl_base_endpoint_t *endpoint = module->endpoints;
        module->endpoints = endpoint->next;
        free(endpoint);
    }
    mca_btl_velo_places_clear(&module->places[0]);
    mca_btl_velo_places_clear(&module->places[1]);
}
