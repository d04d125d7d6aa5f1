/* The way to a peer: the address that it has published, and its place in the engine. */
#include "common_velo_internal.h"

#include <stdlib.h>

#include "opal/mca/hwloc/base/base.h"

/* Out of reach: another component may serve this peer. Logged once for each process, since the reason is mostly the
 * same for all peers. Any other status ends the job. */
static bool reported = false;

static void report_failure(velo_status status, const char *reason)
{
    if (VELO_ERR_UNREACHABLE != status) {
        mca_common_velo_give_up(reason);
    }
    mca_common_velo_log(reported ? 5 : 0, reason);
    reported = true;
}

static bool is_of_this_job(const opal_proc_t *proc)
{
    return proc->proc_name.jobid == OPAL_PROC_MY_NAME.jobid;
}

/* The launcher knows the nodes of this job's processes. Processes of another job are located by their addresses. */
static bool is_here(const opal_proc_t *proc, const void *address, size_t bytes)
{
    return OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags) || (!is_of_this_job(proc) && velo_address_is_here(address, bytes));
}

/* A job on one node opens no network, so processes of other jobs on other nodes cannot be reached. Another component
 * may serve them. */
static void report_unserved(const opal_proc_t *proc, const char *reason)
{
    static bool reported = false;
    if (reported || is_of_this_job(proc) || !mca_common_velo_spans_nodes()) {
        mca_common_velo_log(5, reason);
        return;
    }
    mca_common_velo_log(0, "a process of another job is on another node, and this job, on one node, has opened no network: "
                           "--mca btl_velo_network always opens one (for all jobs that are to meet)");
    reported = true;
}

bool mca_common_velo_expect(const opal_proc_t *proc, bool here_only, uint32_t *place)
{
    void *address = NULL;
    size_t bytes = 0;
    int rc;
    OPAL_MODEX_RECV_STRING(rc, MCA_COMMON_VELO_ADDRESS_KEY, &proc->proc_name, &address, &bytes);
    if (OPAL_SUCCESS != rc || NULL == address) {
        mca_common_velo_log(5, "a process does not use velo");
        return false;
    }
    char error[512] = "";
    bool here = is_here(proc, address, bytes);
    velo_status status = VELO_ERR_UNSUPPORTED;
    if (here || !here_only) {
        status = (here ? velo_peer_expect : velo_peer_expect_remote)(mca_common_velo.engine, address, bytes, place, error,
                                                                     sizeof(error));
    }
    free(address);
    if (VELO_ERR_UNSUPPORTED == status) {
        if ('\0' != *error) {
            report_unserved(proc, error);
        }
        return false;
    }
    if (VELO_OK != status) {
        report_failure(status, error);
        return false;
    }
    return true;
}

velo_peer *mca_common_velo_connect(const opal_proc_t *proc)
{
    uint32_t place;
    return mca_common_velo_expect(proc, false, &place) ? velo_peer_at(mca_common_velo.engine, place) : NULL;
}

void mca_common_velo_give_up_process(const char *text)
{
    if (!reported) {
        mca_common_velo_give_up(text);
    }
    mca_common_velo_abort(1, text);
    exit(1);
}

int mca_common_velo_publish(const mca_base_component_t *component, const void *data, size_t bytes)
{
    int rc;
    OPAL_MODEX_SEND(rc, MCA_COMMON_VELO_SCOPE_GLOBAL, component, data, bytes);
    return rc;
}

int mca_common_velo_published(const mca_base_component_t *component, const opal_process_name_t *process, void **data,
                              size_t *bytes)
{
    int rc;
    OPAL_MODEX_RECV(rc, component, process, data, bytes);
    return rc;
}
