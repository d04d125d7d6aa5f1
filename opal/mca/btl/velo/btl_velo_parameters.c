/* The parameters btl_velo_*: registers the rows of the engine's table (velo_parameter_at) with Open MPI, and checks what
 * Open MPI does not. */
#include "btl_velo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

/* Open MPI's numbers for the words of parameters with enumerators, by row. */
static int chosen[VELO_PARAMETERS];

/* The text that mpirun was given for a parameter of Velo's, NULL if it came in another way. */
static const char *getenv_parameter(const velo_parameter *parameter)
{
    char variable[128];
    snprintf(variable, sizeof variable, "OMPI_MCA_%s", parameter->name);
    return getenv(variable);
}

static int add(const mca_base_component_t *component, const velo_parameter *parameter, mca_base_var_type_t type,
               mca_base_var_enum_t *enumerator, void *storage)
{
    char text[1024];
    velo_parameter_help(parameter, text, sizeof(text));
    int index = mca_base_component_var_register(component, parameter->key, text, type, enumerator, 0, 0,
                                                (mca_base_var_info_lvl_t) (parameter->level - 1),
                                                parameter->alike ? MCA_BASE_VAR_SCOPE_ALL_EQ : MCA_BASE_VAR_SCOPE_LOCAL,
                                                storage);
    if (index >= 0) {
        return OPAL_SUCCESS;
    }
    /* Open MPI has refused the value and said so, but its message may get lost on the way to mpirun. */
    velo_parameter_objection(parameter, getenv_parameter(parameter), text, sizeof(text));
    opal_output(0, "btl:velo: %s", text);
    return index;
}

static int add_choice(const mca_base_component_t *component, const velo_parameter *parameter, int *storage)
{
    enum { MOST = 32 };
    mca_base_var_enum_value_t values[MOST + 1] = {{0, NULL}};
    for (int i = 0; i < MOST && NULL != parameter->permitted.choice((unsigned) i); ++i) {
        values[i].value = i;
        values[i].string = parameter->permitted.choice((unsigned) i);
        if (0 == strcmp(parameter->text, values[i].string)) {
            *storage = i;
        }
    }
    mca_base_var_enum_t *enumerator;
    int rc = mca_base_var_enum_create(parameter->key, values, &enumerator);
    if (OPAL_SUCCESS == rc) {
        rc = add(component, parameter, MCA_BASE_VAR_TYPE_INT, enumerator, storage);
        OBJ_RELEASE(enumerator);
    }
    return rc;
}

int mca_btl_velo_register_rows(const mca_base_component_t *component, velo_parameter_owner owner, void *config)
{
    _Static_assert(sizeof(unsigned long long) == sizeof(uint64_t), "the type of VELO_PARAMETER_LARGE");
    static const mca_base_var_type_t types[] = {
        [VELO_PARAMETER_BOOL] = MCA_BASE_VAR_TYPE_BOOL,
        [VELO_PARAMETER_COUNT] = MCA_BASE_VAR_TYPE_UNSIGNED_INT,
        [VELO_PARAMETER_INTEGER] = MCA_BASE_VAR_TYPE_INT,
        [VELO_PARAMETER_LARGE] = MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
        [VELO_PARAMETER_SIZE] = MCA_BASE_VAR_TYPE_SIZE_T,
        [VELO_PARAMETER_TEXT] = MCA_BASE_VAR_TYPE_STRING,
    };
    int rc = OPAL_SUCCESS;
    for (unsigned i = 0; i < VELO_PARAMETERS; ++i) {
        const velo_parameter *parameter = velo_parameter_at(i);
        if (parameter->owner == owner) {
            rc |= VELO_PARAMETER_CHOICE == parameter->type
                      ? add_choice(component, parameter, &chosen[i])
                      : add(component, parameter, types[parameter->type], NULL, (char *) config + parameter->offset);
        }
    }
    return rc;
}

velo_config mca_btl_velo_config(void)
{
    velo_config config = mca_btl_velo_component.config;
    for (unsigned i = 0; i < VELO_PARAMETERS; ++i) {
        const velo_parameter *parameter = velo_parameter_at(i);
        if (VELO_PARAMETER_OF_ENGINE == parameter->owner && VELO_PARAMETER_CHOICE == parameter->type) {
            *(const char **) ((char *) &config + parameter->offset) = parameter->permitted.choice((unsigned) chosen[i]);
        }
    }
    return config;
}

bool mca_btl_velo_spans_nodes(void)
{
    return 0 == strcmp("ucx", mca_btl_velo_config().network);
}

/* Where Open MPI keeps the value of a parameter that every BTL has. */
static size_t *of_base(mca_btl_base_module_t *module, const velo_parameter *parameter)
{
    return 0 == strcmp("eager_limit", parameter->key)        ? &module->btl_eager_limit
           : 0 == strcmp("rndv_eager_limit", parameter->key) ? &module->btl_rndv_eager_limit
                                                             : &module->btl_max_send_size;
}

/* Defaults of the parameters that every BTL has. mca_btl_base_param_register comes last: it removes flags of verbs
 * that are not there. */
static int register_module_parameters(mca_btl_base_module_t *module)
{
    /* Above sm and vader, so that a user who names velo gets it; component_init keeps out where nobody does. */
    module->btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH + 1;
    /* Payload and ob1's header: fastest on one node (design/shared-memory.md). */
    for (unsigned i = 0; i < VELO_PARAMETERS; ++i) {
        if (VELO_PARAMETER_OF_BASE == velo_parameter_at(i)->owner) {
            *of_base(module, velo_parameter_at(i)) = (size_t) velo_parameter_at(i)->number;
        }
    }
    module->btl_min_rdma_pipeline_size = INT_MAX;
    module->btl_rdma_pipeline_send_length = module->btl_eager_limit;
    module->btl_rdma_pipeline_frag_size = module->btl_eager_limit;
    module->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS |
                        MCA_BTL_VELO_REMOTE_COMPLETION;
    module->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_AND | MCA_BTL_ATOMIC_SUPPORTS_OR |
                               MCA_BTL_ATOMIC_SUPPORTS_XOR | MCA_BTL_ATOMIC_SUPPORTS_SWAP | MCA_BTL_ATOMIC_SUPPORTS_MIN |
                               MCA_BTL_ATOMIC_SUPPORTS_MAX | MCA_BTL_ATOMIC_SUPPORTS_CSWAP |
                               MCA_BTL_ATOMIC_SUPPORTS_32BIT | MCA_BTL_ATOMIC_SUPPORTS_GLOB;
    module->btl_bandwidth = 40000; /* Mbit/s; ob1 only compares it with other BTLs' */
    module->btl_latency = 1;       /* microseconds */
    return mca_btl_base_param_register(&mca_btl_velo_component.super.btl_version, module);
}

bool mca_btl_velo_is_default(const char *name)
{
    mca_base_var_source_t source;
    int index = mca_base_var_find("opal", "btl", "velo", name);
    return index >= 0 && OPAL_SUCCESS == mca_base_var_get_value(index, NULL, &source, NULL) &&
           MCA_BASE_VAR_SOURCE_DEFAULT == source;
}

static bool registered;

bool mca_btl_velo_registered(void)
{
    return registered && mca_base_var_find("opal", "btl", "velo", "slots_per_peer") >= 0;
}

void mca_btl_velo_deregister(void)
{
    int group = mca_base_var_group_find("opal", "btl", "velo");
    if (group >= 0) {
        (void) mca_base_var_group_deregister(group);
    }
}

int mca_btl_velo_register(void)
{
    mca_btl_velo_component_t *component = &mca_btl_velo_component;
    registered = true;
    (void) mca_base_var_group_component_register(&component->super.btl_version,
                                                 "VELO packets into one bounded mailbox per process, with credit flow "
                                                 "control");
    component->config = velo_default_config();
    int rc = mca_btl_velo_register_rows(&component->super.btl_version, VELO_PARAMETER_OF_ENGINE, &component->config);
    rc |= register_module_parameters(&mca_btl_velo_module.super);
    rc |= mca_btl_velo_register_pvars();
    return OPAL_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
}

static const char *objection(const velo_parameter *parameter, const char *value)
{
    static char text[512];
    velo_parameter_objection(parameter, value, text, sizeof(text));
    return text;
}

/* Open MPI takes a text that is no number for 0, and cuts one that is too large. mpirun hands its command line on in the
 * environment, where the text can still be seen. */
static const char *wrong_text(void)
{
    for (unsigned i = 0; i < VELO_PARAMETERS; ++i) {
        const velo_parameter *parameter = velo_parameter_at(i);
        const char *value = getenv_parameter(parameter);
        if (NULL != value && '\0' != *value && !velo_parameter_permits(parameter, value)) {
            return objection(parameter, value);
        }
    }
    return NULL;
}

const char *mca_btl_velo_wrong_parameter(mca_btl_base_module_t *module)
{
    const char *wrong = wrong_text();
    for (unsigned i = 0; NULL == wrong && i < VELO_PARAMETERS; ++i) {
        const velo_parameter *parameter = velo_parameter_at(i);
        if (VELO_PARAMETER_OF_BASE == parameter->owner) {
            char value[24];
            snprintf(value, sizeof(value), "%zu", *of_base(module, parameter));
            wrong = velo_parameter_permits(parameter, value) ? NULL : objection(parameter, value);
        }
    }
    return wrong;
}
