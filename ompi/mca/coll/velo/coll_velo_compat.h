/* Every difference between the Open MPI series that the collectives are built for is in this file. */
#ifndef MCA_COLL_VELO_COMPAT_H
#define MCA_COLL_VELO_COMPAT_H

#include "ompi_config.h"

#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/coll.h"

#if OMPI_MAJOR_VERSION != 4 || OMPI_MINOR_VERSION != 1
#error "Velo supports the collective API of Open MPI 4.1"
#endif

/* Counts of elements, and what v-forms give of each rank. */
typedef int mca_coll_velo_count_t;
typedef const int *mca_coll_velo_counts_t;
typedef const int *mca_coll_velo_offsets_t;
typedef const MPI_Aint *mca_coll_velo_byte_offsets_t; /* of neighbours with a type for each */
#define MCA_COLL_VELO_COUNT(counts, i) ((size_t) (counts)[i])
#define MCA_COLL_VELO_OFFSET(offsets, i) ((ptrdiff_t) (offsets)[i])

/* The same at all processes of the communicator. */
#define MCA_COLL_VELO_ID(comm) ((uint32_t) (comm)->c_contextid)

#endif
