/* The module of a communicator: whether it is served. */
#include "coll_velo.h"

#include <string.h>

#include "opal/runtime/opal_progress.h"

static void construct(mca_coll_velo_module_t *module)
{
    module->enabled = false;
    module->members = NULL;
    memset(module->groups, 0, sizeof(module->groups));
    module->nodes_are_known = false;
    module->ranks_on_node = 0;
    module->spans_job = false;
    module->multicasts = MCA_COLL_VELO_UNKNOWN;
    module->knows_store = false;
    module->store = NULL;
    memset(module->boards, 0, sizeof(module->boards));
    module->persistent = 0;
    memset(&module->told, 0, sizeof(module->told));
    module->name = 0;
    atomic_init(&module->under_way, 0);
}

/* A later communicator may get the same id, so operations under way must end first. */
static void destruct(mca_coll_velo_module_t *module)
{
    while (0 < atomic_load(&module->under_way)) {
        opal_progress();
    }
    for (unsigned i = 0; i < MCA_COLL_VELO_SEQUENCES; ++i) {
        velo_goal_group_close(module->groups[i]);
        mca_coll_velo_close_board(module, &module->boards[i]);
    }
    if (module->enabled) {
        mca_coll_velo_drop_previous(module);
    }
    if (NULL != module->members) {
        OBJ_RELEASE(module->members);
    }
}

OBJ_CLASS_INSTANCE(mca_coll_velo_module_t, mca_coll_base_module_t, construct, destruct);

/* What decides is known to all members alike. */
static bool serves(ompi_communicator_t *comm)
{
    if (OMPI_COMM_IS_INTER(comm) || !MCA_COLL_VELO_HAS_ID(comm) ||
        MCA_COLL_VELO_ID(comm) >= VELO_GOAL_FIRST_FREE_ID / MCA_COLL_VELO_SEQUENCES ||
        OPAL_ENABLE_HETEROGENEOUS_SUPPORT) {
        return false;
    }
    for (int rank = 0; rank < ompi_comm_size(comm); ++rank) {
        if (ompi_group_get_proc_name(comm->c_local_group, rank).jobid != OPAL_PROC_MY_NAME.jobid) {
            return false;
        }
    }
    return true;
}

static void name(mca_coll_velo_module_t *module)
{
    uint64_t members = MCA_COMMON_VELO_DIGEST;
    for (uint32_t rank = 0; rank < module->size; ++rank) {
        members = mca_common_velo_digest(members, ompi_group_get_proc_name(module->members, (int) rank).vpid);
    }
    if (1 < module->size &&
        VELO_OK != velo_goal_new_name(mca_coll_velo.performer, members, module->id, &module->name)) {
        mca_common_velo_give_up("out of memory");
    }
}

static int enable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
    mca_coll_velo_module_t *module = (mca_coll_velo_module_t *) base;
    module->id = MCA_COLL_VELO_ID(comm);
    module->rank = (uint32_t) ompi_comm_rank(comm);
    module->size = (uint32_t) ompi_comm_size(comm);
    module->comm = comm;
    module->members = comm->c_local_group;
    OBJ_RETAIN(module->members);
    name(module);
    mca_coll_velo_take_over(module, comm->c_coll);
    module->enabled = true;
    return OMPI_SUCCESS;
}

static int disable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
    mca_coll_velo_give_back((mca_coll_velo_module_t *) base, comm->c_coll);
    return OMPI_SUCCESS;
}

mca_coll_base_module_t *mca_coll_velo_comm_query(ompi_communicator_t *comm, int *priority)
{
    if (!serves(comm)) {
        return NULL;
    }
    mca_coll_velo_module_t *module = OBJ_NEW(mca_coll_velo_module_t);
    if (NULL == module) {
        return NULL;
    }
    module->super.coll_module_enable = enable;
    module->super.coll_module_disable = MCA_COLL_VELO_ENTERS_ITSELF ? disable : NULL;
    mca_coll_velo_offer(&module->super);
    *priority = (int) mca_coll_velo.config.priority;
    return &module->super;
}
