/* What the files of the component share, and the words for what has failed. */
#include "coll_velo.h"

#include <stdio.h>

mca_coll_velo_t mca_coll_velo;

static bool is_told(const mca_coll_velo_module_t *module, velo_goal_result result)
{
    return result.status == module->told.status && result.rank == module->told.rank && result.peer == module->told.peer;
}

int mca_coll_velo_report(mca_coll_velo_module_t *module, velo_goal_result result)
{
    char text[240], peer[40] = "";
    bool is_said = false;
    if (VELO_OK == result.status) {
        return OMPI_SUCCESS;
    }
    const int error = VELO_ERR_MISMATCH == result.status ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
    if (is_told(module, result)) {
        return error;
    }
    module->told = result;
    if (VELO_GOAL_ANY != result.peer) {
        snprintf(peer, sizeof(peer), ", with rank %u", result.peer);
        /* Of a process that has ended, or whose memory the kernel refuses, its node is told. */
        is_said = (VELO_ERR_UNREACHABLE == result.status || VELO_ERR_REMOTE == result.status) &&
                  OPAL_PROC_ON_LOCAL_NODE(ompi_group_peer_lookup(module->members, (int) result.peer)->super.proc_flags);
    }
    snprintf(text, sizeof(text), "a collective operation of communicator %u has failed at rank %u (operation %u of its schedule%s): %s",
             module->id, result.rank, result.vertex, peer, velo_goal_reason(result.status));
    mca_common_velo_log(is_said ? 5 : VELO_LOG_ONCE_A_NODE, text);
    return error;
}
