/* The parameters: registers the rows of the engine's table (velo_parameter_at) with Open MPI, and checks what Open MPI does
 * not. */
#include "common_velo_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

/* Enumerator values that Open MPI has set for CHOICE parameters, by row. */
static int chosen[VELO_PARAMETERS];

/* What is wrong with a value that Open MPI has refused; NULL if it took them all. */
static const char *refused;

/* Value of a parameter in the environment, where mpirun puts its command line; NULL: not there. */
static const char *getenv_parameter(const velo_parameter *parameter)
{
    char variable[128];
    snprintf(variable, sizeof variable, "OMPI_MCA_%s", parameter->name);
    return getenv(variable);
}

static const char *objection(const velo_parameter *parameter, const char *value)
{
    static char text[512];
    velo_parameter_objection(parameter, value, text, sizeof(text));
    return text;
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
    /* Open MPI has refused the value, but its message may not reach mpirun. It drops the component, and another one
     * that needs the parameter would use the default. */
    refused = objection(parameter, getenv_parameter(parameter));
    mca_common_velo_complain(refused);
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

int mca_common_velo_register_rows(const mca_base_component_t *component, velo_parameter_owner owner, void *config)
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

void mca_common_velo_choices(velo_parameter_owner owner, void *config)
{
    for (unsigned i = 0; i < VELO_PARAMETERS; ++i) {
        const velo_parameter *parameter = velo_parameter_at(i);
        if (parameter->owner == owner && VELO_PARAMETER_CHOICE == parameter->type) {
            *(const char **) ((char *) config + parameter->offset) = parameter->permitted.choice((unsigned) chosen[i]);
        }
    }
}

static bool registered;

static bool are_registered(void)
{
    return registered && mca_base_var_find("opal", "btl", "velo", "slots_per_peer") >= 0;
}

static void deregister(void)
{
    int group = mca_base_var_group_find("opal", "btl", "velo");
    if (group >= 0) {
        (void) mca_base_var_group_deregister(group);
    }
}

int mca_common_velo_register(void)
{
    registered = true;
    refused = NULL;
    (void) mca_base_var_group_component_register(&mca_common_velo_names,
                                                 "VELO packets into one bounded mailbox per process, with credit flow "
                                                 "control");
    mca_common_velo.config = velo_default_config();
    int rc = mca_common_velo_register_rows(&mca_common_velo_names, VELO_PARAMETER_OF_ENGINE, &mca_common_velo.config);
    rc |= mca_common_velo_register_pvars();
    return OPAL_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
}

/* The engine's, where the BTL does not register them, and those that every BTL has. */
static int register_all(void)
{
    static size_t values[VELO_PARAMETERS];
    int rc = mca_common_velo_register();
    for (unsigned i = 0; i < VELO_PARAMETERS; ++i) {
        const velo_parameter *parameter = velo_parameter_at(i);
        if (VELO_PARAMETER_OF_BASE == parameter->owner) {
            values[i] = (size_t) parameter->number;
            rc |= add(&mca_common_velo_names, parameter, MCA_BASE_VAR_TYPE_SIZE_T, NULL, &values[i]);
        }
    }
    return OPAL_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
}

static unsigned parameters_needed; /* by engines that are open */
static bool registered_here;       /* the parameters are there because of this alone */

/* Where the BTL is not used, Open MPI has not asked it for its parameters, or has dropped them already; or it drops them after
 * an engine has been opened, as 5.0 does with pml/ucx. */
static bool parameters_are_there(void)
{
    if (!are_registered()) {
        registered_here = true;
        return OPAL_SUCCESS == register_all();
    }
    return true;
}

bool mca_common_velo_need_parameters(void)
{
    if (!parameters_are_there()) {
        return false;
    }
    ++parameters_needed;
    return true;
}

/* They are there again where Open MPI has dropped them although somebody needs them. */
static void keep_parameters(void)
{
    if (0 < parameters_needed && !parameters_are_there()) {
        mca_common_velo_give_up("the parameters btl_velo_* cannot be registered");
    }
}

/* Nobody else takes them away before this library goes. */
void mca_common_velo_leave_parameters(void)
{
    if (0 == --parameters_needed && registered_here) {
        registered_here = false;
        deregister();
    }
}

velo_config mca_common_velo_config(void)
{
    keep_parameters();
    velo_config config = mca_common_velo.config;
    mca_common_velo_choices(VELO_PARAMETER_OF_ENGINE, &config);
    return config;
}

bool mca_common_velo_spans_nodes(void)
{
    return 0 != strcmp("none", mca_common_velo_config().network);
}

bool mca_common_velo_is_default(const char *name)
{
    mca_base_var_source_t source;
    int index = mca_base_var_find("opal", "btl", "velo", name);
    return index >= 0 && OPAL_SUCCESS == mca_base_var_get_value(index, NULL, &source, NULL) &&
           MCA_BASE_VAR_SOURCE_DEFAULT == source;
}

size_t mca_common_velo_of_base(const char *key)
{
    const size_t *value = NULL;
    (void) mca_base_var_get_value(mca_base_var_find("opal", "btl", "velo", key), &value, NULL, NULL);
    return NULL != value ? *value : 0;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t mca_common_velo_fragment_bytes(void)
{
    return larger(mca_common_velo_of_base("max_send_size"),
                  larger(mca_common_velo_of_base("eager_limit"), mca_common_velo_of_base("rndv_eager_limit")));
}

size_t mca_common_velo_max_message_bytes(void)
{
    return larger(mca_common_velo_fragment_bytes(), VELO_MOST_NETWORK_EAGER_BYTES);
}

/* Open MPI reads a text that is no number as 0 and truncates one that is too large. The environment still has the
 * text. */
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

const char *mca_common_velo_wrong_parameter(void)
{
    const char *wrong = NULL != refused ? refused : wrong_text();
    for (unsigned i = 0; NULL == wrong && i < VELO_PARAMETERS; ++i) {
        const velo_parameter *parameter = velo_parameter_at(i);
        if (VELO_PARAMETER_OF_BASE == parameter->owner) {
            char value[24];
            snprintf(value, sizeof(value), "%zu", mca_common_velo_of_base(parameter->key));
            wrong = velo_parameter_permits(parameter, value) ? NULL : objection(parameter, value);
        }
    }
    return wrong;
}

/* Open MPI takes any name. */
static void warn_of_name(const char *name)
{
    static const char *const ours[] = {"btl_velo_", "mtl_velo_", "coll_velo_"};
    bool velo = false;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); ++i) {
        velo |= 0 == strncmp(name, ours[i], strlen(ours[i]));
    }
    const velo_parameter *like = velo ? velo_parameter_like(name) : NULL;
    int index;
    if (!velo || (NULL != like && 0 == strcmp(like->name, name)) ||
        OPAL_SUCCESS == mca_base_var_find_by_name(name, &index)) {
        return;
    }
    const char *instead = velo_parameter_instead_of(name);
    if (NULL != instead) {
        opal_output(0, "btl:velo: the parameter %s is gone, and it is ignored: %s", name, instead);
    } else if (NULL != like) {
        opal_output(0, "btl:velo: there is no parameter %s, and it is ignored: did you mean %s?", name, like->name);
    } else {
        opal_output(0, "btl:velo: there is no parameter %s, and it is ignored", name);
    }
}

/* A line of a file: NAME = VALUE. */
static void warn_of_line(char *line)
{
    char *name = line + strspn(line, " \t");
    name[strcspn(name, " \t=\n")] = '\0';
    warn_of_name(name);
}

static void warn_of_file(const char *path)
{
    char line[1024];
    FILE *file = fopen(path, "r");
    while (NULL != file && NULL != fgets(line, sizeof(line), file)) {
        warn_of_line(line);
    }
    if (NULL != file) {
        (void) fclose(file);
    }
}

/* mpirun hands its command line on in the environment. */
static void warn_of_environment(void)
{
    extern char **environ;
    static const char prefix[] = "OMPI_MCA_";
    for (char **variable = environ; NULL != *variable; ++variable) {
        if (0 == strncmp(*variable, prefix, strlen(prefix))) {
            char name[128];
            snprintf(name, sizeof(name), "%.*s", (int) strcspn(*variable + strlen(prefix), "="), *variable + strlen(prefix));
            warn_of_name(name);
        }
    }
}

void mca_common_velo_warn_of_names(void)
{
    warn_of_environment();
    const char *const *files = NULL;
    int index;
    if (OPAL_SUCCESS != mca_base_var_find_by_name("mca_base_param_files", &index) ||
        OPAL_SUCCESS != mca_base_var_get_value(index, &files, NULL, NULL) || NULL == files || NULL == *files) {
        return;
    }
    char *rest = NULL, *list = strdup(*files);
    for (char *path = NULL != list ? strtok_r(list, ",:", &rest) : NULL; NULL != path; path = strtok_r(NULL, ",:", &rest)) {
        warn_of_file(path);
    }
    free(list);
}
