/* Every difference between the Open MPI series that the collectives are built for is in this file: what the
 * API of coll counts in, which communicators have a number, and who enters a module into a communicator. */
#ifndef MCA_COLL_VELO_COMPAT_H
#define MCA_COLL_VELO_COMPAT_H

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/coll.h"
#include "ompi_config.h"

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
#define MCA_COLL_VELO_API MCA_COLL_BASE_VERSION_2_0_0
#elif OMPI_MAJOR_VERSION == 5
#define MCA_COLL_VELO_API MCA_COLL_BASE_VERSION_2_4_0
#elif OMPI_MAJOR_VERSION == 6
#define MCA_COLL_VELO_API MCA_COLL_BASE_VERSION_3_0_0
#else
#error "Velo supports the collective API of Open MPI 4.1, 5.0 and 6.0"
#endif

/* --- the number of a communicator: the same at all its processes, and no other's that two of them share.
 * From 5.0 on a communicator that was made from a group alone has none, but those made from it have. */

#if OMPI_MAJOR_VERSION == 4
#define MCA_COLL_VELO_HAS_ID(comm) true
#define MCA_COLL_VELO_ID(comm) ((uint32_t) (comm)->c_contextid)
#else
#define MCA_COLL_VELO_HAS_ID(comm) (!!OMPI_COMM_IS_GLOBAL_INDEX(comm))
#define MCA_COLL_VELO_ID(comm) ((comm)->c_index)
#endif

/* --- counts of elements, and what v-forms give of each rank */

#if OMPI_MAJOR_VERSION < 6
typedef int mca_coll_velo_count_t;
typedef const int* mca_coll_velo_counts_t;
typedef const int* mca_coll_velo_offsets_t;
typedef const MPI_Aint* mca_coll_velo_byte_offsets_t; /* of neighbours with a type for each */
#define MCA_COLL_VELO_COUNT(counts, i) ((size_t)(counts)[i])
#define MCA_COLL_VELO_OFFSET(offsets, i) ((ptrdiff_t)(offsets)[i])
#else
typedef size_t mca_coll_velo_count_t;
typedef ompi_count_array_t mca_coll_velo_counts_t;
typedef ompi_disp_array_t mca_coll_velo_offsets_t, mca_coll_velo_byte_offsets_t;
#define MCA_COLL_VELO_COUNT(counts, i) ompi_count_array_get(counts, (size_t)(i))
#define MCA_COLL_VELO_OFFSET(offsets, i) ompi_disp_array_get(offsets, (size_t)(i))
#endif

/* --- up to 5.0 Open MPI copies what an enabled module offers; from 6.0 on a module enters it into the
 * communicator by itself, and puts back what was there when it is disabled */
#define MCA_COLL_VELO_ENTERS_ITSELF (OMPI_MAJOR_VERSION >= 6)

#endif
