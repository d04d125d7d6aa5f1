#include "many_procs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "opal/mca/btl/velo/btl_velo.h"
#include "opal/mca/common/velo/common_velo_compat.h"

#include "opal/class/opal_bitmap.h"
#include "opal/runtime/opal.h"

#if MCA_COMMON_VELO_MANAGER_IS_A_FRAMEWORK

static uint32_t size;
static opal_proc_t **procs;
static struct mca_btl_base_endpoint_t **endpoints;
static opal_bitmap_t reachable;
static void (*renamed)(void *address, uint64_t name);
static void *published;
static size_t published_bytes;
static uint64_t lookups;

static int put(opal_pmix_scope_t scope, opal_value_t *value)
{
    (void) scope;
    published_bytes = value->data.bo.size;
    published = realloc(published, published_bytes);
    memcpy(published, value->data.bo.bytes, published_bytes);
    return OPAL_SUCCESS;
}

static char *all_ranks(void)
{
    char *text = malloc((size_t) size * 7 + 1), *end = text;
    for (uint32_t rank = 0; rank < size; ++rank) {
        end += sprintf(end, "%s%u", 0 == rank ? "" : ",", rank);
    }
    return text;
}

static int get(const opal_process_name_t *proc, const char *key, opal_list_t *info, opal_value_t **value)
{
    (void) info;
    if (0 == strcmp(key, MCA_COMMON_VELO_LOCALITY)) {
        return OPAL_ERR_NOT_FOUND;
    }
    *value = OBJ_NEW(opal_value_t);
    if (0 == strcmp(key, MCA_COMMON_VELO_LOCAL_PEERS)) {
        (*value)->type = OPAL_STRING;
        (*value)->data.string = all_ranks();
    } else if (0 == strcmp(key, MCA_COMMON_VELO_JOB_SIZE)) {
        (*value)->type = OPAL_UINT32;
        (*value)->data.uint32 = size;
    } else {
        ++lookups;
        (*value)->type = OPAL_BYTE_OBJECT;
        (*value)->data.bo.bytes = malloc(published_bytes);
        (*value)->data.bo.size = (int32_t) published_bytes;
        memcpy((*value)->data.bo.bytes, published, published_bytes);
        renamed((*value)->data.bo.bytes, (uint64_t) proc->jobid << 32 | proc->vpid);
    }
    return OPAL_SUCCESS;
}

static void gone(uint32_t place, uint64_t process_name)
{
    (void) place, (void) process_name;
}

static mca_common_velo_user_t user = {.gone = gone};

bool many_procs_possible(void)
{
    return true;
}

velo_engine *many_procs_open(const char *flow_control, uint32_t processes, void (*rename)(void *address, uint64_t name))
{
    setenv("OMPI_MCA_btl_velo_flow_control", flow_control, 1);
    setenv("OMPI_MCA_btl_velo_spare_peers", "1024", 1);
    opal_init_util(NULL, NULL);
    opal_pmix.put = put;
    opal_pmix.get = get;
    OBJ_CONSTRUCT(&mca_btl_base_modules_initialized, opal_list_t);
    OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
    opal_bitmap_init(&reachable, (int) processes);
    size = processes;
    renamed = rename;
    lookups = 0;
    procs = calloc(size, sizeof(*procs));
    endpoints = calloc(size, sizeof(struct mca_btl_base_endpoint_t *));
    for (uint32_t rank = 0; rank < size; ++rank) {
        procs[rank] = OBJ_NEW(opal_proc_t);
        procs[rank]->proc_name = (opal_process_name_t) {.jobid = MANY_PROCS_JOB, .vpid = rank};
        procs[rank]->proc_flags = OPAL_PROC_ON_NODE;
    }
    opal_proc_local_set(procs[0]);
    mca_btl_velo_register();
    mca_btl_velo_module.engine = mca_common_velo_acquire(&user, false);
    return mca_btl_velo_module.engine;
}

void many_procs_close(void)
{
    mca_common_velo_release(&user);
    mca_btl_velo_module.engine = NULL;
    mca_btl_velo_free_endpoints(&mca_btl_velo_module);
    opal_proc_local_set(NULL);
    for (uint32_t rank = 0; rank < size; ++rank) {
        OBJ_RELEASE(procs[rank]);
    }
    free(procs);
    free(endpoints);
    OBJ_DESTRUCT(&reachable);
    OBJ_DESTRUCT(&mca_btl_base_modules_initialized);
    opal_finalize_util();
}

void many_procs_visit(void)
{
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    mca_common_velo_user_t *visitor = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    visitor->gone = gone;
    mca_common_velo_acquire(visitor, false);
    mca_common_velo_release(visitor);
    munmap(visitor, page);
}

void many_procs_add(uint32_t first, uint32_t count)
{
    (void) mca_btl_velo_add_procs(&mca_btl_velo_module.super, count, procs + first, endpoints + first, &reachable);
}

const void *many_procs_endpoint(uint32_t rank)
{
    return endpoints[rank];
}

bool many_procs_reachable(uint32_t rank)
{
    return opal_bitmap_is_set_bit(&reachable, (int) rank);
}

uint64_t many_procs_lookups(void)
{
    return lookups;
}

#else

bool many_procs_possible(void)
{
    return false;
}

velo_engine *many_procs_open(const char *flow_control, uint32_t processes, void (*rename)(void *address, uint64_t name))
{
    (void) flow_control, (void) processes, (void) rename;
    return NULL;
}

void many_procs_close(void)
{
}

void many_procs_visit(void)
{
}

void many_procs_add(uint32_t first, uint32_t count)
{
    (void) first, (void) count;
}

const void *many_procs_endpoint(uint32_t rank)
{
    return NULL;
}

bool many_procs_reachable(uint32_t rank)
{
    return false;
}

uint64_t many_procs_lookups(void)
{
    return 0;
}

#endif
