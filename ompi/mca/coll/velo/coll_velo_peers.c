/* The way to the members of a communicator: what each process publishes is its values of the parameters that have to be the same,
 * a line for each, and where its mailbox is. */
#include "coll_velo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/pmix/pmix.h"

enum { VALUES = 1024, LINE = 80 };

/* "coll_velo_priority 100\n..." */
static void write_values(char *text)
{
    const char *config = (const char *) &mca_coll_velo_component.config;
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < VELO_PARAMETERS; ++i) {
        const velo_parameter *parameter = velo_parameter_at(i);
        if (VELO_PARAMETER_OF_COLL != parameter->owner || !parameter->alike) {
            continue;
        }
        const void *value = config + parameter->offset;
        used += (size_t) (VELO_PARAMETER_CHOICE == parameter->type
                              ? snprintf(text + used, VALUES - used, "%s %s\n", parameter->name, *(const char *const *) value)
                              : snprintf(text + used, VALUES - used, "%s %u\n", parameter->name, *(const uint32_t *) value));
        if (used >= VALUES) {
            mca_common_velo_give_up("the values of coll_velo_* are too long");
        }
    }
}

void mca_coll_velo_publish(void)
{
    size_t bytes;
    const void *address = velo_performer_address(mca_coll_velo_component.performer, &bytes);
    char *all = calloc(1, VALUES + bytes);
    int rc = OPAL_ERR_OUT_OF_RESOURCE;
    if (NULL != all) {
        write_values(all);
        memcpy(all + VALUES, address, bytes);
        OPAL_MODEX_SEND(rc, OPAL_PMIX_GLOBAL, &mca_coll_velo_component.super.collm_version, all, VALUES + bytes);
        free(all);
    }
    if (OPAL_SUCCESS != rc) {
        mca_common_velo_give_up("cannot publish the address of the collectives' mailbox");
    }
}

static void compare(const char *theirs, const ompi_proc_t *proc)
{
    char ours[VALUES], text[2 * LINE + 200];
    write_values(ours);
    for (const char *a = ours, *b = theirs; '\0' != *a; a += strcspn(a, "\n") + 1, b += strcspn(b, "\n") + 1) {
        const int length = (int) strcspn(a, "\n"), their_length = (int) strcspn(b, "\n");
        if (length != their_length || 0 != memcmp(a, b, (size_t) length)) {
            snprintf(text, sizeof(text), "%.*s here, %.*s in process %s: it must be the same in all processes", length, a,
                     their_length, b, OPAL_NAME_PRINT(proc->super.proc_name));
            mca_common_velo_give_up(text);
        }
    }
}

velo_peer *mca_coll_velo_reach(void *context, uint32_t rank)
{
    const mca_coll_velo_module_t *module = (const mca_coll_velo_module_t *) context;
    ompi_proc_t *proc = ompi_group_peer_lookup(module->members, (int) rank);
    velo_peer *peer = NULL;
    char *all = NULL, error[512] = "a process does not use the collectives of velo, and another one does: name velo in --mca coll for all";
    size_t bytes = 0;
    int rc;
    OPAL_MODEX_RECV(rc, &mca_coll_velo_component.super.collm_version, &proc->super.proc_name, (void **) &all, &bytes);
    if (OPAL_SUCCESS != rc || bytes < VALUES) {
        mca_common_velo_give_up(error);
    }
    all[VALUES - 1] = '\0';
    compare(all, proc);
    if (VELO_OK != velo_performer_connect(mca_coll_velo_component.performer, all + VALUES, bytes - VALUES, &peer, error,
                                          sizeof(error))) {
        mca_common_velo_give_up(error);
    }
    free(all);
    return peer;
}
