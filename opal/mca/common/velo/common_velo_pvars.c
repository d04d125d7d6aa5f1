/* The engine's counters as MPI_T performance variables btl_velo_*. They run all the time and are only read. */
#include "common_velo_internal.h"

#include <string.h>

#include "opal/constants.h"
#include "opal/mca/base/mca_base_pvar.h"

/* What Open MPI is given as the context of a variable. */
typedef struct variable_t {
    unsigned index; /* of velo_counter_at */
    int handles;
    int values; /* fixed while there are handles: a read does not say how much room there is */
} variable_t;

static variable_t variables[VELO_COUNTERS];

/* Before the engine is open, which MPI_T allows, everything is 0. Open MPI takes the variables away when it closes the
 * component. */
static int get_value(const mca_base_pvar_t *pvar, void *value, void *object)
{
    const variable_t *variable = (const variable_t *) pvar->ctx;
    const velo_engine *engine = mca_common_velo.engine;
    uint64_t *values = (uint64_t *) value;
    (void) object;
    memset(values, 0, sizeof(*values) * (size_t) variable->values);
    if (NULL == engine) {
        return mca_common_velo.closed ? OPAL_ERR_NOT_AVAILABLE : OPAL_SUCCESS;
    }
    if (velo_counter_at(variable->index)->per_peer) {
        velo_counter_of_peers(engine, variable->index, values, (uint32_t) variable->values);
    } else {
        values[0] = velo_counter_value(engine, variable->index) +
                    velo_performer_counter(mca_common_velo.performer, velo_counter_at(variable->index)->name);
    }
    return OPAL_SUCCESS;
}

static int values_of(const variable_t *variable)
{
    if (!velo_counter_at(variable->index)->per_peer) {
        return 1;
    }
    return NULL != mca_common_velo.engine ? (int) velo_counter_peers(mca_common_velo.engine) : 0;
}

static int notify(mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object, int *count)
{
    variable_t *variable = (variable_t *) pvar->ctx;
    (void) object;
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        if (0 == variable->handles++) {
            variable->values = values_of(variable);
        }
        *count = variable->values;
    } else if (MCA_BASE_PVAR_HANDLE_UNBIND == event) {
        --variable->handles;
    }
    return OPAL_SUCCESS;
}

static int class_of(velo_counter_kind kind)
{
    switch (kind) {
    case VELO_COUNTER_SUM:
        return MCA_BASE_PVAR_CLASS_COUNTER;
    case VELO_COUNTER_TIME:
        return MCA_BASE_PVAR_CLASS_TIMER;
    case VELO_COUNTER_LEVEL:
        return MCA_BASE_PVAR_CLASS_LEVEL;
    case VELO_COUNTER_HIGH_WATER:
        return MCA_BASE_PVAR_CLASS_HIGHWATERMARK;
    case VELO_COUNTER_GENERIC:
        break;
    }
    return MCA_BASE_PVAR_CLASS_GENERIC;
}

int mca_common_velo_register_pvars(void)
{
    _Static_assert(sizeof(unsigned long long) == sizeof(uint64_t), "the type of the values");
    const mca_base_pvar_flag_t flags = MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS;
    const velo_counter *counter;
    for (unsigned i = 0; NULL != (counter = velo_counter_at(i)); ++i) {
        variables[i].index = i;
        int rc = mca_base_component_pvar_register(&mca_common_velo_names, counter->name,
                                                  counter->help, counter->per_peer ? OPAL_INFO_LVL_5 : OPAL_INFO_LVL_4,
                                                  class_of(counter->kind), MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
                                                  MCA_BASE_VAR_BIND_NO_OBJECT, flags, get_value, NULL, notify,
                                                  &variables[i]);
        if (rc < 0) {
            return rc;
        }
    }
    return OPAL_SUCCESS;
}
