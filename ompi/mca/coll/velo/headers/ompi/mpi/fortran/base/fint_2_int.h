/* Stands in for a header of Open MPI's that ompi/op/op.h includes and no installation has. Of it op.h uses what follows, in
 * inline functions that call operations written in Fortran; nothing here calls them. */
#ifndef OMPI_FORTRAN_BASE_FINT_2_INT_H
#define OMPI_FORTRAN_BASE_FINT_2_INT_H

#include "ompi_config.h"

#define OMPI_INT_2_FINT(a) (a)
#define OMPI_FINT_2_INT(a) (a)

#endif
