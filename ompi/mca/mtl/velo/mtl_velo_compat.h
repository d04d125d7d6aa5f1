/* Every difference between the Open MPI series that the MTL is built for is in this file. */
#ifndef MCA_MTL_VELO_COMPAT_H
#define MCA_MTL_VELO_COMPAT_H

#include "ompi_config.h"

#include "ompi/mca/mtl/base/base.h"
#include "ompi/mca/mtl/mtl.h"

#if OMPI_MAJOR_VERSION != 4 || OMPI_MINOR_VERSION != 1
#error "Velo supports the MTL API of Open MPI 4.1"
#endif

#define MCA_MTL_VELO_CONTEXT(comm) ((uint32_t) (comm)->c_contextid)

#endif
