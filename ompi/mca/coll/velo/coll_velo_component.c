/* The component: parameters, the decision whether it is used, the performer. */
#include "coll_velo.h"

#include <stdio.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/base/mca_base_var.h"

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int component_init(bool enable_progress_threads, bool enable_mpi_threads);

mca_coll_base_component_t mca_coll_velo_component = {
    .collm_version = {
        MCA_COLL_VELO_API,
        .mca_component_name = "velo",
        MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        .mca_open_component = component_open,
        .mca_close_component = component_close,
        .mca_register_component_params = component_register,
    },
    .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = component_init,
    .collm_comm_query = mca_coll_velo_comm_query,
};

static int component_register(void)
{
    const mca_base_component_t *names = &mca_coll_velo_component.collm_version;
    (void) mca_base_var_group_component_register(names, "Collective operations as schedules over a mailbox of their own");
    mca_coll_velo.config = velo_default_coll_config();
    int rc = mca_common_velo_register_rows(names, VELO_PARAMETER_OF_COLL, &mca_coll_velo.config);
    return OMPI_SUCCESS == rc ? OMPI_SUCCESS : OMPI_ERR_BAD_PARAM;
}

/* The component is in use if the user names it or gives it a priority. The engine opens here, because its address
 * must be published before processes exchange theirs. */
static int component_open(void)
{
    mca_coll_velo_t *component = &mca_coll_velo;
    const bool named = mca_common_velo_is_named(&ompi_coll_base_framework);
    if (!mca_common_velo_serves()) {
        return named ? mca_common_velo_check_version() : OMPI_ERR_NOT_AVAILABLE; /* the BTL says so, too */
    }
    mca_common_velo_choices(VELO_PARAMETER_OF_COLL, &component->config);
    if (0 == component->config.priority) {
        if (!named) {
            return OMPI_SUCCESS;
        }
        component->config.priority = 100;
    }
    mca_common_velo_performer_config(&component->config);
    char error[512];
    component->performer = mca_common_velo_performer_acquire(ompi_mpi_thread_multiple, error, sizeof(error));
    if (NULL == component->performer) {
        mca_common_velo_give_up(error);
    }
    mca_coll_velo_place_t place;
    component->names = &mca_coll_velo_component.collm_version;
    mca_coll_velo_describe_multicast(&place);
    mca_coll_velo_describe_boards(&place);
    mca_coll_velo_publish(&place);
    OBJ_CONSTRUCT(&component->requests, opal_free_list_t);
    int rc = opal_free_list_init(&component->requests, sizeof(mca_coll_velo_request_t), opal_cache_line_size,
                             OBJ_CLASS(mca_coll_velo_request_t), 0, 0, 0, -1, 16, NULL, 0, NULL, NULL, NULL);
    if (OPAL_SUCCESS != rc) {
        mca_common_velo_give_up("out of memory");
    }
    return OMPI_SUCCESS;
}

static void log_boards(void)
{
    char line[200];
    const velo_board_counts counts = velo_board_count();
    snprintf(line, sizeof(line), "boards: %llu, published %llu times, picked up %llu, directly %llu; %llu waits for credits, %llu long ones, %llu requests",
             (unsigned long long) counts.boards, (unsigned long long) counts.published, (unsigned long long) counts.picked_up,
             (unsigned long long) counts.direct, (unsigned long long) counts.credit_waits, (unsigned long long) counts.long_waits,
             (unsigned long long) counts.requests);
    mca_common_velo_log(5, line);
}

static int component_close(void)
{
    mca_coll_velo_t *component = &mca_coll_velo;
    if (NULL != component->performer) {
        component->performer = NULL;
        mca_coll_velo_forget_multicast();
        mca_coll_velo_forget_nodes();
        mca_coll_velo_forget_boards();
        log_boards();
        mca_common_velo_performer_release();
        OBJ_DESTRUCT(&component->requests);
    }
    return OMPI_SUCCESS;
}

/* Not in use: Open MPI closes the component and does not query it for communicators. */
static int component_init(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void) enable_progress_threads, (void) enable_mpi_threads;
    mca_common_velo_say_if_unused();
    if (NULL == mca_coll_velo.performer) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    if (mca_common_velo_is_fault_tolerant()) {
        if (0 == OPAL_PROC_MY_NAME.vpid) {
            mca_common_velo_log(0, "coll velo is not used with fault tolerance: it cannot end operations of a communicator that is revoked");
        }
        return OMPI_ERR_NOT_AVAILABLE;
    }
    static bool said;
    mca_common_velo_say_in_use("coll", &said);
    return OMPI_SUCCESS;
}
