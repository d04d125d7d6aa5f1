/* Persistent collective operations: those of MPI 4, or what Open MPI 4.1 has of them. */
#ifndef VELO_TEST_PERSISTENT_H
#define VELO_TEST_PERSISTENT_H

#include <mpi.h>

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#define PERSISTENT_INIT(name) MPI_##name##_init
#else
#include <mpi-ext.h>
#define PERSISTENT_INIT(name) MPIX_##name##_init
#endif

#endif
