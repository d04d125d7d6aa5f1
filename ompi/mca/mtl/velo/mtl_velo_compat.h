/* Every difference between the Open MPI series that the MTL is built for is in this file. */
#ifndef MCA_MTL_VELO_COMPAT_H
#define MCA_MTL_VELO_COMPAT_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/mtl/base/base.h"
#include "ompi/mca/mtl/mtl.h"

/* --- the number of a communicator: as its receivers know it, and as that one does to whom a message goes. From 5.0 on they
 * differ for a communicator that was made from a group alone. */

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1

#define MCA_MTL_VELO_CONTEXT(comm) ((uint32_t) (comm)->c_contextid)
#define MCA_MTL_VELO_FLAGS 0

static inline bool mca_mtl_velo_context_at(ompi_communicator_t *comm, int rank, uint32_t *context)
{
    (void) rank;
    *context = MCA_MTL_VELO_CONTEXT(comm);
    return true;
}

#elif OMPI_MAJOR_VERSION == 5 || OMPI_MAJOR_VERSION == 6

#define MCA_MTL_VELO_CONTEXT(comm) ((comm)->c_index)
#define MCA_MTL_VELO_FLAGS MCA_MTL_BASE_FLAG_SUPPORTS_EXT_CID

static inline bool mca_mtl_velo_context_at(ompi_communicator_t *comm, int rank, uint32_t *context)
{
    return OMPI_SUCCESS == ompi_comm_get_remote_cid(comm, rank, context);
}

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
