/* The way to the members of a communicator: what each process publishes is its values of the parameters that have to be the same,
 * a line for each, and where its mailbox is. */
#include "coll_velo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 1408, LINE = 80 };

/* "coll_velo_priority 100\n..." of this process. */
static char ours[VALUES];

static int write_value(char *text, size_t room, const velo_parameter *parameter, const void *value)
{
    velo_performer_state state;
    switch (parameter->type) {
    case VELO_PARAMETER_CHOICE:
        return snprintf(text, room, "%s %s\n", parameter->name, *(const char *const *) value);
    case VELO_PARAMETER_TEXT: /* coll_velo_choices: what the file says */
        velo_performer_observe(mca_coll_velo_component.performer, &state);
        return snprintf(text, room, "%s of digest %016llx\n", parameter->name, (unsigned long long) state.choices);
    default:
        return snprintf(text, room, "%s %u\n", parameter->name, *(const uint32_t *) value);
    }
}

static void write_values(void)
{
    const char *config = (const char *) &mca_coll_velo_component.config;
    size_t used = 0;
    for (unsigned i = 0; i < VELO_PARAMETERS; ++i) {
        const velo_parameter *parameter = velo_parameter_at(i);
        if (VELO_PARAMETER_OF_COLL != parameter->owner || !parameter->alike) {
            continue;
        }
        used += (size_t) write_value(ours + used, VALUES - used, parameter, config + parameter->offset);
        if (used >= VALUES) {
            mca_common_velo_give_up("the values of coll_velo_* are too long");
        }
    }
}

void mca_coll_velo_publish(void)
{
    size_t bytes;
    const void *address = velo_performer_address(mca_coll_velo_component.performer, &bytes);
    const size_t before = VALUES + sizeof(mca_coll_velo_place_t);
    char *all = calloc(1, before + bytes);
    int rc = OPAL_ERR_OUT_OF_RESOURCE;
    mca_coll_velo_place_t place;
    if (NULL != all) {
        write_values();
        memcpy(all, ours, VALUES);
        mca_coll_velo_describe_multicast(&place);
        mca_coll_velo_describe_boards(&place);
        memcpy(all + VALUES, &place, sizeof(place));
        memcpy(all + before, address, bytes);
        rc = mca_common_velo_publish(&mca_coll_velo_component.super.collm_version, all, before + bytes);
        free(all);
    }
    if (OPAL_SUCCESS != rc) {
        mca_common_velo_give_up("cannot publish the address of the collectives' mailbox");
    }
}

static void compare(const char *theirs, const opal_process_name_t *process)
{
    char text[2 * LINE + 200];
    for (const char *a = ours, *b = theirs; '\0' != *a; a += strcspn(a, "\n") + 1, b += strcspn(b, "\n") + 1) {
        const int length = (int) strcspn(a, "\n"), their_length = (int) strcspn(b, "\n");
        if (length != their_length || 0 != memcmp(a, b, (size_t) length)) {
            snprintf(text, sizeof(text),
                     "%.*s here, %.*s in process %s: it must be the same in all processes", length, a,
                     their_length, b, OPAL_NAME_PRINT(*process));
            mca_common_velo_give_up(text);
        }
    }
}

/* What the process has published; to be freed. */
static char *published(const opal_process_name_t *process, size_t *bytes)
{
    char *all = NULL;
    int rc = mca_common_velo_published(&mca_coll_velo_component.super.collm_version, process, (void **) &all, bytes);
    if (OPAL_SUCCESS != rc || *bytes < VALUES + sizeof(mca_coll_velo_place_t)) {
        mca_common_velo_give_up("a process does not use the collectives of velo, and another one does: name velo in --mca coll for "
                                "all");
    }
    all[VALUES - 1] = '\0';
    compare(all, process);
    return all;
}

void mca_coll_velo_place_of(uint32_t process, mca_coll_velo_place_t *place)
{
    const opal_process_name_t name = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = process};
    size_t bytes;
    char *all = published(&name, &bytes);
    memcpy(place, all + VALUES, sizeof(*place));
    free(all);
}

velo_peer *mca_coll_velo_reach(void *context, uint32_t rank)
{
    const mca_coll_velo_module_t *module = (const mca_coll_velo_module_t *) context;
    ompi_proc_t *proc = ompi_group_peer_lookup(module->members, (int) rank);
    const size_t before = VALUES + sizeof(mca_coll_velo_place_t);
    velo_peer *peer = NULL;
    char error[512];
    size_t bytes;
    char *all = published(&proc->super.proc_name, &bytes);
    if (VELO_OK != velo_performer_connect(mca_coll_velo_component.performer, all + before, bytes - before, &peer, error,
                                          sizeof(error))) {
        mca_common_velo_give_up(error);
    }
    free(all);
    return peer;
}
