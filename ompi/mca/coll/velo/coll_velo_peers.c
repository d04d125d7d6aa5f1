/* Addresses: each process publishes its mailbox and its values of the parameters that must be the same, one line for
 * each. */
#include "coll_velo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 512, LINE = 80 };

/* "coll_velo_priority 100\n..." of this process. */
static char ours[VALUES];

static int write_value(char *text, size_t room, const velo_parameter *parameter, const void *value)
{
    velo_performer_state state;
    switch (parameter->type) {
    case VELO_PARAMETER_CHOICE:
        return snprintf(text, room, "%s %s\n", parameter->name, *(const char *const *) value);
    case VELO_PARAMETER_TEXT: /* coll_velo_choices: what it says */
        velo_performer_observe(mca_coll_velo.performer, &state);
        return snprintf(text, room, "%s of digest %016llx\n", parameter->name, (unsigned long long) state.choices);
    case VELO_PARAMETER_INTEGER:
        return snprintf(text, room, "%s %d\n", parameter->name, *(const int *) value);
    default:
        return snprintf(text, room, "%s %u\n", parameter->name, *(const uint32_t *) value);
    }
}

static void write_values(void)
{
    const char *config = (const char *) &mca_coll_velo.config;
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

void mca_coll_velo_publish(const mca_coll_velo_place_t *place)
{
    size_t bytes;
    const void *address = velo_performer_address(mca_coll_velo.performer, &bytes);
    const size_t before = VALUES + sizeof(mca_coll_velo_place_t);
    char *all = calloc(1, before + bytes);
    int rc = OPAL_ERR_OUT_OF_RESOURCE;
    if (NULL != all) {
        write_values();
        memcpy(all, ours, VALUES);
        memcpy(all + VALUES, place, sizeof(*place));
        memcpy(all + before, address, bytes);
        rc = mca_common_velo_publish(mca_coll_velo.names, all, before + bytes);
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
                     "%.*s here, %.*s in rank %u: it must be the same in all processes", length, a,
                     their_length, b, (unsigned) process->vpid);
            mca_common_velo_give_up(text);
        }
    }
}

/* What the process has published; to be freed. */
static char *published(const opal_process_name_t *process, size_t *bytes)
{
    char *all = NULL;
    int rc = mca_common_velo_published(mca_coll_velo.names, process, (void **) &all, bytes);
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

static velo_peer *reach(void *context, uint32_t rank)
{
    const mca_coll_velo_module_t *module = (const mca_coll_velo_module_t *) context;
    ompi_proc_t *proc = ompi_group_peer_lookup(module->members, (int) rank);
    const size_t before = VALUES + sizeof(mca_coll_velo_place_t);
    velo_peer *peer = NULL;
    char error[512];
    size_t bytes;
    char *all = published(&proc->super.proc_name, &bytes);
    if (VELO_OK != velo_performer_connect(mca_coll_velo.performer, all + before, bytes - before, &peer, error,
                                          sizeof(error))) {
        mca_common_velo_give_up(error);
    }
    free(all);
    return peer;
}

velo_goal_group *mca_coll_velo_group(mca_coll_velo_module_t *module, mca_coll_velo_sequence_t sequence)
{
    velo_goal_group **group = &module->groups[sequence];
    const uint32_t id = MCA_COLL_VELO_SEQUENCES * module->id + sequence;
    if (OPAL_UNLIKELY(NULL == *group)) {
        if (VELO_OK != velo_goal_group_open(mca_coll_velo.performer, id, module->rank, module->size, reach, module,
                                            group)) {
            mca_common_velo_give_up("out of memory");
        }
        velo_goal_group_name(*group, module->name ^ (uint64_t) sequence << 63);
    }
    return *group;
}
