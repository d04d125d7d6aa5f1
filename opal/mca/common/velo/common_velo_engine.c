/* The engine that the components share: opened, published, closed. */
#include "common_velo_internal.h"

#include <stdio.h>
#include <string.h>

/* A process that exits without MPI_Finalize, or with MPI_T still open, never closes its engine. */
static __opal_attribute_destructor__ void abandon_engine(void)
{
    if (NULL != mca_common_velo.engine) {
        velo_engine_abandon(mca_common_velo.engine);
    }
    if (NULL != mca_common_velo.performer) {
        velo_performer_abandon(mca_common_velo.performer);
    }
}

void mca_common_velo_trace_board(const velo_board_event *event)
{
    if (NULL != mca_common_velo.engine) {
        velo_engine_trace_board(mca_common_velo.engine, event);
    }
}

static void gone(void *context, uint32_t place, uint64_t process_name)
{
    (void) context;
    for (const mca_common_velo_user_t *user = mca_common_velo.users; NULL != user; user = user->next) {
        user->gone(place, process_name);
    }
}

static void lost(void *context, uint64_t process_name)
{
    (void) context;
    for (const mca_common_velo_user_t *user = mca_common_velo.users; NULL != user; user = user->next) {
        if (NULL != user->lost) {
            user->lost(process_name);
        }
    }
}

void mca_common_velo_tell_of_both(velo_status status, char *error, size_t error_bytes)
{
    if (VELO_ERR_RESOURCE == status) {
        const size_t end = strlen(error);
        snprintf(error + end, error_bytes - end, " coll velo takes a mailbox of its own in each process: without velo in --mca coll there is none.");
    }
}

static velo_engine *open_engine(bool threads)
{
    mca_common_velo_job_t job = {.memory = {NULL}};
    if (!mca_common_velo_describe_job(&job, threads)) {
        mca_common_velo_give_up("out of memory");
    }
    /* An automatic limit is not compared: jobs of different sizes may communicate. */
    const bool automatic = mca_common_velo_is_default("eager_limit");
    mca_common_velo.eager_limit = mca_common_velo_of_base("eager_limit");
    velo_config config = job.config;
    config.eager_limit = automatic ? 0 : mca_common_velo.eager_limit;
    config.gone = gone;
    config.lost = lost;
    /* Open MPI 4.1 opens collectives after BTLs, 5.0 before. */
    const bool is_second = NULL != mca_common_velo.performer;
    config.second = is_second;
    char error[512];
    velo_engine *engine;
    velo_status status = velo_engine_open(&config, &engine, error, sizeof(error));
    mca_common_velo_forget_job(&job);
    if (VELO_OK != status) {
        if (is_second) {
            mca_common_velo_tell_of_both(status, error, sizeof(error));
        }
        mca_common_velo_give_up(error);
    }
    if (automatic && velo_engine_is_short(engine)) {
        mca_common_velo.eager_limit = MCA_COMMON_VELO_SMALL_EAGER_LIMIT;
    }
    return engine;
}

static int publish_address(const velo_engine *engine)
{
    size_t bytes;
    const void *address = velo_engine_address(engine, &bytes);
    int rc;
    OPAL_MODEX_SEND_STRING(rc, MCA_COMMON_VELO_SCOPE_GLOBAL, MCA_COMMON_VELO_ADDRESS_KEY, address, bytes);
    return rc;
}

static unsigned in_use; /* users that have not released it */

void mca_common_velo_sleep_together(void)
{
    if (NULL != mca_common_velo.performer && NULL != mca_common_velo.engine) {
        velo_performer_pair_idle_with(mca_common_velo.performer, mca_common_velo.engine);
    }
}

static void open_shared_engine(bool threads)
{
    const bool usable = mca_common_velo_need_parameters();
    const char *wrong = mca_common_velo_wrong_parameter();
    if (NULL == wrong && !usable) {
        wrong = "the parameters btl_velo_* cannot be registered";
    }
    if (NULL != wrong) {
        mca_common_velo_give_up(wrong);
    }
    velo_engine *engine = open_engine(threads);
    mca_common_velo.closed = false;
    mca_common_velo.engine = engine;
    mca_common_velo_sleep_together();
    if (OPAL_SUCCESS != publish_address(engine)) {
        mca_common_velo_give_up("cannot publish the address of the mailbox");
    }
    mca_common_velo_waits_progress();
    mca_common_velo_log(5, velo_engine_description(engine));
    if (0 == OPAL_PROC_MY_NAME.vpid) {
        mca_common_velo_warn_of_names();
    }
}

void mca_common_velo_say_if_unused(void)
{
    if (0 < in_use || 0 != OPAL_PROC_MY_NAME.vpid || !mca_common_velo_need_parameters()) {
        return;
    }
    const velo_config config = mca_common_velo_config();
    if (0 != strcmp("none", config.report) || (NULL != config.trace && '\0' != *config.trace)) {
        mca_common_velo_log(0, "not used: name velo in --mca btl to use it");
    }
    mca_common_velo_warn_of_names();
    mca_common_velo_leave_parameters();
}

velo_engine *mca_common_velo_acquire(mca_common_velo_user_t *user, bool threads)
{
    if (0 == in_use++) {
        open_shared_engine(threads);
    }
    user->next = mca_common_velo.users;
    mca_common_velo.users = user;
    if (NULL != user->message) {
        velo_engine_hand_messages_to(mca_common_velo.engine, user->message);
    }
    return mca_common_velo.engine;
}

static void forget(const mca_common_velo_user_t *user)
{
    mca_common_velo_user_t **link = &mca_common_velo.users;
    while (user != *link) {
        link = &(*link)->next;
    }
    *link = user->next;
}

void mca_common_velo_release(mca_common_velo_user_t *user)
{
    /* Its library may be gone when the engine is closed. */
    if (NULL == user->closed) {
        forget(user);
    }
    if (--in_use > 0) {
        return;
    }
    velo_engine *engine = mca_common_velo.engine;
    mca_common_velo_waits_end();
    mca_common_velo.engine = NULL;
    mca_common_velo.closed = true;
    velo_engine_close(engine);
    while (NULL != mca_common_velo.users) {
        const mca_common_velo_user_t *last = mca_common_velo.users;
        mca_common_velo.users = last->next;
        last->closed();
    }
    mca_common_velo_leave_parameters();
}

size_t mca_common_velo_eager_limit(void)
{
    return mca_common_velo.eager_limit;
}
