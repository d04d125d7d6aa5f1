/* What the user is told, and which Open MPI is served. */
#include "common_velo_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "opal/mca/btl/base/base.h"
#include "opal/runtime/opal.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "velo_config.h"

enum { MOST_MS_TO_SAY = 1000 };

mca_common_velo_t mca_common_velo;

const mca_base_component_t mca_common_velo_names = {
    .mca_project_name = "opal", .mca_type_name = "btl", .mca_component_name = "velo"};

/* A directory of this text, as far as its first ": ", and `what`, beside the one that Open MPI makes for the job on a node, where its launcher takes all away
 * at the end. A process that fails in MPI_Init empties that of the job. False:
 * there is none. */
static bool place_of(const char *text, const char *what, char path[PATH_MAX])
{
    const char *directory = opal_process_info.job_session_dir;
    uint64_t digest = MCA_COMMON_VELO_DIGEST;
    for (const char *at = text; '\0' != *at && 0 != strncmp(at, ": ", 2); ++at) {
        digest = mca_common_velo_digest(digest, (unsigned char) *at);
    }
    return NULL != directory && PATH_MAX > snprintf(path, PATH_MAX, "%s-velo-%s-%016" PRIx64, directory, what, digest);
}

/* False: not within MOST_MS_TO_SAY. */
static bool is_said_soon(const char *said)
{
    for (int ms = 0; 0 != access(said, F_OK); ++ms) {
        if (MOST_MS_TO_SAY == ms) {
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

/* Mostly all processes of a node find the same, if not for the same reason, which stands behind ": ": who comes first says it. What
 * ends the job ends that one, too, perhaps before it has said anything: then another one does. */
static void say_once_a_node(const char *text, bool ends_the_job)
{
    char claimed[PATH_MAX], said[PATH_MAX];
    const bool has_place = place_of(text, "claimed", claimed) && place_of(text, "said", said);
    if (has_place && 0 != mkdir(claimed, 0700) && EEXIST == errno && (!ends_the_job || is_said_soon(said))) {
        return;
    }
    opal_output(0, "btl:velo: %s", text);
    if (has_place) {
        (void) mkdir(said, 0700);
    }
}

void mca_common_velo_complain(const char *text)
{
    say_once_a_node(text, false);
}

void mca_common_velo_say_killed(uint32_t rank)
{
    char text[240];
    velo_death_text((uint64_t) OPAL_PROC_MY_NAME.jobid << 32 | rank, text, sizeof(text));
    mca_common_velo_complain(text);
}

void mca_common_velo_give_up(const char *text)
{
    say_once_a_node(text, true);
    mca_common_velo_abort(1, text);
    exit(1);
}

void mca_common_velo_log(int level, const char *text)
{
    if (VELO_LOG_ONCE_A_NODE == level) {
        mca_common_velo_complain(text);
    } else if (level <= mca_common_velo.config.verbose) {
        opal_output(0, "btl:velo: %s", text);
    } else {
        opal_output_verbose(level, opal_btl_base_framework.framework_output, "btl:velo: %s", text);
    }
}

/* The loader checks the version of the component framework only, which is the same in Open MPI 4.1, 5.0 and 6.0,
 * although the layout of the module is not. */
bool mca_common_velo_serves(void)
{
    int major = 0, minor = 0;
    return 2 == sscanf(opal_version_string + strcspn(opal_version_string, "0123456789"), "%d.%d", &major, &minor) &&
           VELO_BUILD_OPENMPI_MAJOR == major && VELO_BUILD_OPENMPI_MINOR == minor;
}

int mca_common_velo_check_version(void)
{
    if (mca_common_velo_serves()) {
        return OPAL_SUCCESS;
    }
    opal_output(0,
                "btl:velo: this plugin was built for Open MPI %s and does not serve %.*s; rebuild Velo for the "
                "Open MPI that runs",
                VELO_BUILD_OPENMPI_VERSION, (int) strcspn(opal_version_string, ","), opal_version_string);
    return OPAL_ERR_NOT_AVAILABLE;
}

bool mca_common_velo_is_named(const mca_base_framework_t *framework)
{
    const char *selection = framework->framework_selection;
    if (NULL == selection || '^' == selection[0]) {
        return false;
    }
    char **names = opal_argv_split(selection, ',');
    bool found = false;
    for (char **name = names; NULL != name && NULL != *name; ++name) {
        found = found || 0 == strcmp("velo", *name);
    }
    opal_argv_free(names);
    return found;
}
