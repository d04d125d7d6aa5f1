/* Every difference between the Open MPI series in what Velo's components share: the process manager, which is a framework of
 * Open MPI in 4.1 and PMIx itself later. */
#ifndef MCA_COMMON_VELO_COMPAT_H
#define MCA_COMMON_VELO_COMPAT_H

#include "opal_config.h"

#if OPAL_MAJOR_VERSION == 4 && OPAL_MINOR_VERSION == 1

#include "opal/mca/pmix/pmix.h"

#define MCA_COMMON_VELO_MANAGER_IS_A_FRAMEWORK 1

#define MCA_COMMON_VELO_SCOPE_GLOBAL OPAL_PMIX_GLOBAL
#define MCA_COMMON_VELO_LOCAL_PEERS OPAL_PMIX_LOCAL_PEERS
#define MCA_COMMON_VELO_LOCALITY OPAL_PMIX_LOCALITY_STRING
#define MCA_COMMON_VELO_STRING OPAL_STRING
#define MCA_COMMON_VELO_JOB_SIZE OPAL_PMIX_JOB_SIZE
#define MCA_COMMON_VELO_UINT32 OPAL_UINT32

/* Ends the job. Returns if the process manager is not there (any more). */
static inline void mca_common_velo_abort(int status, const char *text)
{
    if (NULL != opal_pmix.abort) {
        (void) opal_pmix.abort(status, text, NULL);
    }
}

#elif OPAL_MAJOR_VERSION == 5 || OPAL_MAJOR_VERSION == 6

#include "opal/mca/pmix/pmix-internal.h"

#define MCA_COMMON_VELO_MANAGER_IS_A_FRAMEWORK 0

#define MCA_COMMON_VELO_SCOPE_GLOBAL PMIX_GLOBAL
#define MCA_COMMON_VELO_LOCAL_PEERS PMIX_LOCAL_PEERS
#define MCA_COMMON_VELO_LOCALITY PMIX_LOCALITY_STRING
#define MCA_COMMON_VELO_STRING PMIX_STRING
#define MCA_COMMON_VELO_JOB_SIZE PMIX_JOB_SIZE
#define MCA_COMMON_VELO_UINT32 PMIX_UINT32

static inline void mca_common_velo_abort(int status, const char *text)
{
    if (PMIx_Initialized()) {
        (void) PMIx_Abort(status, text, NULL, 0);
    }
}

#else
#error "Velo supports Open MPI 4.1, 5.0 and 6.0"
#endif

/* --- fault tolerance: from 5.0 on, where it is built in */

#if defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI
#include "ompi/proc/proc.h"
extern bool ompi_ftmpi_enabled; /* ompi/runtime/params.h */
#define MCA_COMMON_VELO_IS_FAULT_TOLERANT ompi_ftmpi_enabled
#define MCA_COMMON_VELO_COUNTS_AS_FAILED(proc) (!((const ompi_proc_t *) (proc))->proc_active)
#else
#define MCA_COMMON_VELO_COUNTS_AS_FAILED(proc) false
#define MCA_COMMON_VELO_IS_FAULT_TOLERANT false
#endif

#endif
