/* The messenger's counters as MPI_T performance variables mtl_velo_*. They run all the time and are only read. */
#include "mtl_velo.h"

#include "opal/mca/base/mca_base_pvar.h"

typedef struct variable_t {
    const char *name;
    int class;
    size_t offset; /* in velo_messenger_state */
    const char *help;
} variable_t;

#define STATE(member) offsetof(velo_messenger_state, member)

static const variable_t variables[] = {
    {"pool_bytes", MCA_BASE_PVAR_CLASS_GENERIC, STATE(pool_bytes), "Bytes that unmatched messages may take here"},
    {"pool_used_bytes", MCA_BASE_PVAR_CLASS_LEVEL, STATE(pool_used_bytes), "Bytes that unmatched messages take here"},
    {"pool_used_bytes_max", MCA_BASE_PVAR_CLASS_HIGHWATERMARK, STATE(pool_most_bytes),
     "Bytes that unmatched messages have taken here at most"},
    {"headers", MCA_BASE_PVAR_CLASS_LEVEL, STATE(headers),
     "Unmatched messages whose data waits at their senders; 256 bytes each"},
    {"headers_max", MCA_BASE_PVAR_CLASS_HIGHWATERMARK, STATE(headers_most), "High-water mark of headers"},
    {"held", MCA_BASE_PVAR_CLASS_LEVEL, STATE(held),
     "Messages that this process holds back because their receivers have no room for their headers"},
    {"held_max", MCA_BASE_PVAR_CLASS_HIGHWATERMARK, STATE(held_most), "High-water mark of held"},
    {"memory_bytes", MCA_BASE_PVAR_CLASS_HIGHWATERMARK, STATE(memory_bytes),
     "Bytes taken from the system for unmatched messages and headers"},
    {"eager", MCA_BASE_PVAR_CLASS_COUNTER, STATE(eager), "Messages sent with their data"},
    {"rendezvous", MCA_BASE_PVAR_CLASS_COUNTER, STATE(rendezvous), "Messages sent as a header, whose data is fetched"},
    {"degraded", MCA_BASE_PVAR_CLASS_COUNTER, STATE(degraded),
     "Of them, those that were short enough to be sent eagerly but met a full pool"},
    {"expected", MCA_BASE_PVAR_CLASS_COUNTER, STATE(matched_at_once), "Messages that met a receive when they came"},
    {"unexpected", MCA_BASE_PVAR_CLASS_COUNTER, STATE(unexpected), "Messages that met none"},
};

/* Before the messenger is open, which MPI_T allows, and after the end everything is 0. */
static int get_value(const mca_base_pvar_t *pvar, void *value, void *object)
{
    (void) object;
    velo_messenger_state state = {0};
    if (NULL != mca_mtl_velo_module.messenger) {
        velo_messenger_observe(mca_mtl_velo_module.messenger, &state);
    }
    const variable_t *variable = (const variable_t *) pvar->ctx;
    *(uint64_t *) value = *(const uint64_t *) ((const char *) &state + variable->offset);
    return OPAL_SUCCESS;
}

int mca_mtl_velo_register_pvars(void)
{
    _Static_assert(sizeof(unsigned long long) == sizeof(uint64_t), "the type of the values");
    const mca_base_pvar_flag_t flags = MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); ++i) {
        const variable_t *variable = &variables[i];
        int rc = mca_base_component_pvar_register(&mca_mtl_velo_component.super.mtl_version, variable->name,
                                                  variable->help, OPAL_INFO_LVL_4, variable->class,
                                                  MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
                                                  MCA_BASE_VAR_BIND_NO_OBJECT, flags, get_value, NULL, NULL,
                                                  (void *) variable);
        if (rc < 0) {
            return rc;
        }
    }
    return OMPI_SUCCESS;
}
