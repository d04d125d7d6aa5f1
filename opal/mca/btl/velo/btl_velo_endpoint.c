/* BTL verbs add_procs and del_procs. Called for all processes of the job at once, for some of them later, or for
 * processes of another job; peers are known by their process name only. */
#include "btl_velo.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/hwloc/base/base.h"

/* Out of reach: another BTL may serve this peer, so say why, once for each process: with many peers it is mostly the
 * same reason. Anything else concerns the job as a whole. */
static void report_failure(velo_status status, const char *reason)
{
    static bool reported = false;
    if (VELO_ERR_UNREACHABLE != status) {
        mca_btl_velo_give_up(reason);
    }
    mca_btl_velo_log(NULL, reported ? 5 : 0, reason);
    reported = true;
}

static mca_btl_velo_places_t *places_of(const mca_btl_base_module_t *btl)
{
    return &mca_btl_velo_module.places[&mca_btl_velo_network == btl];
}

struct mca_btl_base_endpoint_t *mca_btl_velo_endpoint_of(const mca_btl_base_module_t *btl, uint32_t place)
{
    return (struct mca_btl_base_endpoint_t *) mca_btl_velo_places_find(places_of(btl), place);
}

/* The endpoint of a peer in a module, the same one each time. */
static struct mca_btl_base_endpoint_t *endpoint_for(mca_btl_base_module_t *btl, uint32_t place)
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
    endpoint->next = module->endpoints;
    module->endpoints = endpoint;
    return endpoint;
}

/* The launcher says where the processes of this job are; it may not know those of another one, whose addresses tell. */
static bool is_here(const opal_proc_t *proc, const void *address, size_t bytes)
{
    bool same_job = proc->proc_name.jobid == OPAL_PROC_MY_NAME.jobid;
    return OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags) || (!same_job && velo_address_is_here(address, bytes));
}

/* The module for this node leaves processes on other nodes to that of the network, if there is one. */
static bool serves(const mca_btl_base_module_t *btl, bool here)
{
    return here || &mca_btl_velo_module.super != btl || !mca_btl_velo_has_network();
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

/* The place of a process in the engine; false if velo cannot reach it, or not through this module. */
static bool expect(const mca_btl_base_module_t *btl, const opal_proc_t *proc, uint32_t *place)
{
    void *address = NULL;
    size_t bytes = 0;
    int rc;
    OPAL_MODEX_RECV_STRING(rc, MCA_BTL_VELO_ADDRESS_KEY, &proc->proc_name, &address, &bytes);
    if (OPAL_SUCCESS != rc || NULL == address) {
        mca_btl_velo_log(NULL, 5, "a process does not use velo");
        return false;
    }
    char error[512] = "";
    bool here = is_here(proc, address, bytes);
    velo_status status = VELO_ERR_UNSUPPORTED;
    if (serves(btl, here)) {
        status = (here ? velo_peer_expect : velo_peer_expect_remote)(mca_btl_velo_module.engine, address, bytes, place,
                                                                     error, sizeof(error));
    }
    free(address);
    if (VELO_ERR_UNSUPPORTED == status) {
        if ('\0' != *error) {
            mca_btl_velo_log(NULL, 5, error);
        }
        return false;
    }
    if (VELO_OK != status) {
        report_failure(status, error);
        return false;
    }
    return true;
}

velo_peer *mca_btl_velo_connect(const opal_proc_t *proc)
{
    uint32_t place;
    return expect(NULL, proc, &place) ? velo_peer_at(mca_btl_velo_module.engine, place) : NULL;
}

int mca_btl_velo_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    const opal_proc_t *self = opal_proc_local_get();
    const bool spans_nodes = mca_btl_velo_spans_nodes();
    for (size_t i = 0; i < count; ++i) {
        endpoints[i] = NULL;
        /* Open MPI does not know where the processes of another mpirun are. */
        bool candidate = OPAL_PROC_ON_LOCAL_NODE(procs[i]->proc_flags) || spans_nodes ||
                         procs[i]->proc_name.jobid != self->proc_name.jobid;
        uint32_t place = MCA_BTL_VELO_OWN_PLACE;
        if (procs[i] == self) {
            candidate = &mca_btl_velo_network == btl || !self_is_there();
        } else {
            candidate = candidate && expect(btl, procs[i], &place);
        }
        endpoints[i] = candidate ? endpoint_for(btl, place) : NULL;
        if (NULL != endpoints[i] && NULL != reachable) {
            (void) opal_bitmap_set_bit(reachable, (int) i);
        }
    }
    return OPAL_SUCCESS;
}

void mca_btl_velo_gone(void *context, uint32_t place, uint64_t process_name)
{
    mca_btl_velo_module_t *module = (mca_btl_velo_module_t *) context;
    for (int i = 0; i < 2; ++i) {
        struct mca_btl_base_endpoint_t *endpoint = mca_btl_velo_places_find(&module->places[i], place);
        if (NULL != endpoint) {
            endpoint->place = MCA_BTL_VELO_NOWHERE;
            endpoint->peer = velo_peer_nobody(module->engine);
            (void) mca_btl_velo_places_set(&module->places[i], place, NULL);
        }
    }
    if (NULL != module->gone) {
        module->gone(process_name);
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
