/* Every difference between the Open MPI series that the MTL is built for is in this file. */
#ifndef MCA_MTL_VELO_COMPAT_H
#define MCA_MTL_VELO_COMPAT_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/mtl/base/base.h"
#include "ompi/mca/mtl/mtl.h"

/* --- the number of a communicator: the same at all its processes, and no other's that two of them share. From 5.0 on a
 * communicator that was made from a group alone is known by another index in each process; what they share is the context that
 * PMIx has given it, one number after the other. Indices end at INT_MAX. */

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
#define MCA_MTL_VELO_CONTEXT(comm) ((uint32_t) (comm)->c_contextid)
#define MCA_MTL_VELO_FLAGS 0
#elif OMPI_MAJOR_VERSION == 5 || OMPI_MAJOR_VERSION == 6
#define MCA_MTL_VELO_CONTEXT(comm) \
    (OPAL_LIKELY(OMPI_COMM_IS_GLOBAL_INDEX(comm)) ? (comm)->c_index : (uint32_t) (comm)->c_contextid.cid_base | 1u << 31)
#define MCA_MTL_VELO_FLAGS MCA_MTL_BASE_FLAG_SUPPORTS_EXT_CID
#else
#error "Velo supports the MTL API of Open MPI 4.1, 5.0 and 6.0"
#endif

/* --- from 5.0 on mtl_init is asked about memory of accelerators, too: there is none */

#if OMPI_MAJOR_VERSION == 4
#define MCA_MTL_VELO_INIT_ARGUMENTS bool enable_progress_threads, bool enable_mpi_threads
#else
#define MCA_MTL_VELO_INIT_ARGUMENTS bool enable_progress_threads, bool enable_mpi_threads, bool *accelerator_support __opal_attribute_unused__
#endif

#endif
