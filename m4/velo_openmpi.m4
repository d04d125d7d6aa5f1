# VELO_OPENMPI
# ------------
# Finds the Open MPI that the plugin is built for and refuses one that it cannot serve.
# Sets and substitutes
#   VELO_OPENMPI_PREFIX, VELO_OPENMPI_VERSION, VELO_OPENMPI_PKGLIBDIR  as ompi_info tells them
#   VELO_OPENMPI_CPPFLAGS  component headers (opal/..., ompi/...), as system headers
#   VELO_OPENMPI_CFLAGS    what else they need
#   VELO_OPENMPI_LIBS      libopen-pal
#   VELO_MPI_CPPFLAGS, VELO_MPI_LIBS  to build MPI programs
#   MPICC, MPIRUN, OMPI_INFO          its commands
#   VELO_BTL_VERSION       3.1.0
# and defines VELO_BUILD_OPENMPI_*.

# VELO_OPENMPI_REFUSE(WHAT)
AC_DEFUN([VELO_OPENMPI_REFUSE],
[AC_MSG_ERROR([$1
    Velo is a plugin for Open MPI 4.1. On Debian 12: apt-get install libopenmpi-dev openmpi-bin
    Open MPI somewhere else: ./configure --with-openmpi=PREFIX])])

# VELO_OPENMPI_FIND_WRAPPER
# mpicc by itself may be any MPI's: mpicc.openmpi, Debian's unmistakable name, is asked first.
AC_DEFUN([VELO_OPENMPI_FIND_WRAPPER],
[AC_ARG_WITH([openmpi],
   [AS_HELP_STRING([--with-openmpi=PREFIX], [Open MPI to build for @<:@default: mpicc.openmpi or mpicc on PATH@:>@])],
   [], [with_openmpi=yes])
 AC_ARG_VAR([MPICC], [C compiler wrapper of the Open MPI to build for])
 AC_ARG_VAR([OMPI_INFO], [its ompi_info])
 AC_ARG_VAR([MPIRUN], [its mpirun])
 AS_CASE([$with_openmpi],
   [yes], [velo_path=$PATH velo_where="on PATH"],
   [no],  [AC_MSG_ERROR([--without-openmpi: there is nothing to build without Open MPI.])],
   [velo_path=$with_openmpi/bin velo_where="in $velo_path"])
 velo_names=${MPICC:-mpicc.openmpi mpicc}
 AC_PATH_PROGS([MPICC], [$velo_names], [], [$velo_path])
 AS_IF([test -z "$MPICC"], [VELO_OPENMPI_REFUSE([No $velo_names $velo_where.])])

 AC_MSG_CHECKING([whether $MPICC is Open MPI's])
 velo_mpi=`$MPICC --showme:version 2>/dev/null`
 AS_CASE([$velo_mpi],
   [*"Open MPI"*], [AC_MSG_RESULT([$velo_mpi])],
   [AC_MSG_RESULT([no])
    velo_mpi=`$MPICC -v 2>/dev/null </dev/null | sed -n 's/^mpicc for \(.*\)/\1/p'`
    VELO_OPENMPI_REFUSE([$MPICC belongs to ${velo_mpi:-something else than Open MPI}.])])

 velo_bindir=`AS_DIRNAME(["$MPICC"])`
 velo_path=$velo_bindir$PATH_SEPARATOR$velo_path
 AC_PATH_PROGS([OMPI_INFO], [ompi_info.openmpi ompi_info], [], [$velo_path])
 AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun], [], [$velo_path])
 AS_IF([test -z "$OMPI_INFO" || test -z "$MPIRUN"],
   [VELO_OPENMPI_REFUSE([$MPICC is there but its ompi_info or mpirun is not.])])
])

# VELO_OPENMPI_HEADERS
# The component headers are installed only by an Open MPI that was configured --with-devel-headers, as Debian's was.
AC_DEFUN([VELO_OPENMPI_HEADERS],
[VELO_OPENMPI_CPPFLAGS=
 VELO_MPI_CPPFLAGS=`$MPICC --showme:compile`
 velo_dirs=`$MPICC --showme:incdirs`
 for velo_dir in $velo_dirs; do
   # -isystem: warnings in Open MPI's headers are not ours. Never for /usr/include, which it would put out of order.
   AS_CASE([$velo_dir], [/usr/include], [], [AS_VAR_APPEND([VELO_OPENMPI_CPPFLAGS], [" -isystem $velo_dir"])])
 done

 velo_save_CPPFLAGS=$CPPFLAGS
 CPPFLAGS="$CPPFLAGS $VELO_OPENMPI_CPPFLAGS"
 velo_missing=
 for velo_header in opal_config.h opal/mca/btl/btl.h ompi/mca/mtl/mtl.h; do
   AC_MSG_CHECKING([for $velo_header])
   AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include "$velo_header"]])],
     [AC_MSG_RESULT([yes])],
     [AC_MSG_RESULT([no]); AS_VAR_APPEND([velo_missing], [" $velo_header"])])
 done
 AS_IF([test -n "$velo_missing"],
   [VELO_OPENMPI_REFUSE([Open MPI's component headers are missing:$velo_missing (looked in: $velo_dirs).
    They are installed by an Open MPI that was configured with --with-devel-headers.])])

 AC_COMPUTE_INT([velo_major], [OPAL_MAJOR_VERSION], [[#include "opal_config.h"]], [velo_major=unknown])
 AC_COMPUTE_INT([velo_minor], [OPAL_MINOR_VERSION], [[#include "opal_config.h"]], [velo_minor=unknown])
 AC_COMPUTE_INT([velo_release], [OPAL_RELEASE_VERSION], [[#include "opal_config.h"]], [velo_release=unknown])
 AC_MSG_CHECKING([the version of Open MPI's component headers])
 VELO_OPENMPI_VERSION=$velo_major.$velo_minor.$velo_release
 AC_MSG_RESULT([$VELO_OPENMPI_VERSION])
 AS_IF([test "$velo_major.$velo_minor" != 4.1],
   [VELO_OPENMPI_REFUSE([This Open MPI is $VELO_OPENMPI_VERSION; this Velo serves the 4.1 series.])])

 AC_COMPUTE_INT([velo_btl], [BTL_VERSION],
   [[#include "opal_config.h"
     #include "opal/mca/btl/btl.h"]], [velo_btl=unknown])
 AS_IF([test "$velo_btl" != 310],
   [VELO_OPENMPI_REFUSE([The BTL API of Open MPI $VELO_OPENMPI_VERSION is $velo_btl; this Velo is written for 310 (3.1.0).])])
 VELO_BTL_VERSION=3.1.0
 CPPFLAGS=$velo_save_CPPFLAGS
])

# VELO_OPENMPI_RUNTIME
# What the headers belong to: the installed libraries, and where they look for components.
AC_DEFUN([VELO_OPENMPI_RUNTIME],
[AC_MSG_CHECKING([the version that $OMPI_INFO reports])
 velo_info=`$OMPI_INFO --parsable --all 2>/dev/null`
 velo_runtime=`AS_ECHO(["$velo_info"]) | sed -n 's/^opal:version:full://p'`
 AC_MSG_RESULT([${velo_runtime:-none}])
 AS_IF([test "$velo_runtime" != "$VELO_OPENMPI_VERSION"],
   [VELO_OPENMPI_REFUSE([The component headers are of Open MPI $VELO_OPENMPI_VERSION, but $OMPI_INFO is of ${velo_runtime:-an unknown version}.])])

 AC_MSG_CHECKING([whether this Open MPI loads plugins])
 velo_dlopen=`AS_ECHO(["$velo_info"]) | sed -n 's/^option:dlopen://p'`
 AC_MSG_RESULT([${velo_dlopen:-unknown}])
 AS_IF([test "$velo_dlopen" = no],
   [VELO_OPENMPI_REFUSE([This Open MPI was built with --disable-dlopen: it never loads a plugin.])])

 VELO_OPENMPI_PREFIX=`AS_ECHO(["$velo_info"]) | sed -n 's/^path:prefix://p'`
 VELO_OPENMPI_PKGLIBDIR=`AS_ECHO(["$velo_info"]) | sed -n '/^path:pkglibdir:/{s///p;q;}'`
 AS_IF([test ! -d "$VELO_OPENMPI_PKGLIBDIR"],
   [VELO_OPENMPI_REFUSE([The component directory '$VELO_OPENMPI_PKGLIBDIR' that $OMPI_INFO reports does not exist.])])
])

# VELO_OPENMPI_LIBRARIES
AC_DEFUN([VELO_OPENMPI_LIBRARIES],
[VELO_MPI_LIBS=`$MPICC --showme:link`
 velo_libdirs=
 for velo_dir in `$MPICC --showme:libdirs`; do AS_VAR_APPEND([velo_libdirs], [" -L$velo_dir"]); done
 velo_save_LIBS=$LIBS
 VELO_OPENMPI_LIBS="$velo_libdirs -lopen-pal"
 LIBS="$LIBS $VELO_OPENMPI_LIBS"
 AC_MSG_CHECKING([for libopen-pal])
 AC_LINK_IFELSE([AC_LANG_PROGRAM([[int opal_progress_register(int (*)(void));]], [[return opal_progress_register(0);]])],
   [AC_MSG_RESULT([yes])],
   [AC_MSG_RESULT([no]); VELO_OPENMPI_REFUSE([libopen-pal does not link ($VELO_OPENMPI_LIBS).])])
 LIBS=$velo_save_LIBS
])

# VELO_OPENMPI_ATOMICS
# Open MPI's inline free lists swap 16 bytes at once if Open MPI was built so, and libopen-pal works on the same
# lists. On x86-64 the compiler does it only when told to.
AC_DEFUN([VELO_OPENMPI_ATOMICS],
[velo_save_CPPFLAGS=$CPPFLAGS velo_save_CFLAGS=$CFLAGS
 CPPFLAGS="$CPPFLAGS $VELO_OPENMPI_CPPFLAGS"
 AC_MSG_CHECKING([for the compiler option of Open MPI's atomics])
 VELO_OPENMPI_CFLAGS=unknown
 for velo_option in '' -mcx16; do
   CFLAGS="$velo_save_CFLAGS -std=gnu11 $velo_option"
   AC_LINK_IFELSE([AC_LANG_PROGRAM(
     [[#include "opal_config.h"
       #include "opal/sys/atomic.h"
       #if OPAL_HAVE_ATOMIC_COMPARE_EXCHANGE_128
       volatile opal_int128_t value;
       #endif]],
     [[#if OPAL_HAVE_ATOMIC_COMPARE_EXCHANGE_128
       opal_int128_t before = 0;
       return opal_atomic_compare_exchange_strong_128(&value, &before, 1);
       #endif]])],
     [VELO_OPENMPI_CFLAGS=$velo_option; break])
 done
 AC_MSG_RESULT([${VELO_OPENMPI_CFLAGS:-none needed}])
 CPPFLAGS=$velo_save_CPPFLAGS CFLAGS=$velo_save_CFLAGS
 AS_IF([test "$VELO_OPENMPI_CFLAGS" = unknown],
   [VELO_OPENMPI_REFUSE([$CC does not link the atomics of this Open MPI; use the compiler that it was built with.])])
])

AC_DEFUN([VELO_OPENMPI],
[VELO_OPENMPI_FIND_WRAPPER
 VELO_OPENMPI_HEADERS
 VELO_OPENMPI_RUNTIME
 VELO_OPENMPI_LIBRARIES
 VELO_OPENMPI_ATOMICS
 AC_DEFINE_UNQUOTED([VELO_BUILD_OPENMPI_VERSION], ["$VELO_OPENMPI_VERSION"], [Open MPI that this was built for])
 AC_DEFINE_UNQUOTED([VELO_BUILD_OPENMPI_MAJOR], [$velo_major], [its major version])
 AC_DEFINE_UNQUOTED([VELO_BUILD_OPENMPI_MINOR], [$velo_minor], [its minor version])
 AC_DEFINE_UNQUOTED([VELO_BUILD_OPENMPI_RELEASE], [$velo_release], [its release])
 AC_SUBST([VELO_OPENMPI_PREFIX])
 AC_SUBST([VELO_OPENMPI_VERSION])
 AC_SUBST([VELO_OPENMPI_PKGLIBDIR])
 AC_SUBST([VELO_OPENMPI_CPPFLAGS])
 AC_SUBST([VELO_OPENMPI_CFLAGS])
 AC_SUBST([VELO_OPENMPI_LIBS])
 AC_SUBST([VELO_MPI_CPPFLAGS])
 AC_SUBST([VELO_MPI_LIBS])
])
