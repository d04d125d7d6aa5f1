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
#   VELO_BTL_VERSION       3.1.0 or 3.3.0
# and defines VELO_BUILD_OPENMPI_*.

# VELO_OPENMPI_REFUSE(WHAT)
AC_DEFUN([VELO_OPENMPI_REFUSE],
[AC_MSG_ERROR([$1
    Velo is a plugin for Open MPI 4.1, 5.0 and 6.0. On Debian: apt-get install libopenmpi-dev openmpi-bin
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

# VELO_OPENMPI_SOURCE
# --with-ompi-source=DIR: a source tree of the same Open MPI stands in for component headers that are not installed.
AC_DEFUN([VELO_OPENMPI_SOURCE],
[AC_ARG_WITH([ompi-source],
   [AS_HELP_STRING([--with-ompi-source=DIR],
     [source tree of the same Open MPI, for component headers that are not installed; if opal_config.h is not either, the tree must have been configured as the installation was])],
   [], [with_ompi_source=no])
 AS_CASE([$with_ompi_source],
   [no | ''], [velo_source_dirs=],
   [/*],
   [AS_IF([test ! -f "$with_ompi_source/opal/mca/btl/btl.h"],
      [VELO_OPENMPI_REFUSE([--with-ompi-source=$with_ompi_source is not a source tree of Open MPI: it has no opal/mca/btl/btl.h.])])
    # orte: of 4.1 only.
    velo_source_dirs="$with_ompi_source $with_ompi_source/opal/include $with_ompi_source/ompi/include $with_ompi_source/orte/include"
    # libevent and hwloc, where that Open MPI was configured to use its own: the files that configure leaves then. (4.1 runs
    # libevent's configure in any case, but makes its event-config.h only if it is used.)
    for velo_made in opal/mca/event/libevent2022/libevent/include/event2/event-config.h \
                     opal/mca/hwloc/hwloc201/hwloc/config.status 3rd-party/libevent-*/config.status; do
      for velo_made in "$with_ompi_source"/$velo_made; do
        AS_IF([test -f "$velo_made"],
          [velo_dir=${velo_made%/config.status} velo_dir=${velo_dir%/include/event2/event-config.h}
           AS_VAR_APPEND([velo_source_dirs], [" $velo_dir $velo_dir/include"])])
      done
    done],
   [AC_MSG_ERROR([--with-ompi-source=$with_ompi_source: give the absolute directory of a source tree of Open MPI.])])
])

# VELO_OPENMPI_SEE(HEADER, IF-FOUND, IF-NOT-FOUND)
AC_DEFUN([VELO_OPENMPI_SEE],
[AC_MSG_CHECKING([for $1])
 AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include "opal_config.h"
   #include "$1"]])],
   [AC_MSG_RESULT([yes]); $2], [AC_MSG_RESULT([no]); $3])])

# VELO_OPENMPI_PMIX
# From 5.0 on Open MPI's headers include PMIx's, and components call it.
AC_DEFUN([VELO_OPENMPI_PMIX],
[VELO_PMIX_LIBS=
 AS_IF([test "$velo_major" != 4],
   [VELO_OPENMPI_SEE([pmix.h], [],
     [PKG_CHECK_MODULES([PMIX], [pmix],
       [AS_VAR_APPEND([VELO_OPENMPI_CPPFLAGS], [" $PMIX_CFLAGS"])],
       [VELO_OPENMPI_REFUSE([pmix.h is missing, which Open MPI $VELO_OPENMPI_VERSION is built on. On Debian: apt-get install libpmix-dev])])])
    VELO_PMIX_LIBS=${PMIX_LIBS:--lpmix}])
])

# VELO_OPENMPI_THREADS
# Debian 13 and others install the headers of the threads framework without those of its component pthreads that they
# include. Velo has a copy of these, which is used only where they are missing.
AC_DEFUN([VELO_OPENMPI_THREADS],
[velo_threads=
 AS_IF([test "$velo_major" != 4],
   [VELO_OPENMPI_SEE([opal/mca/threads/threads.h], [],
     [AS_VAR_APPEND([VELO_OPENMPI_CPPFLAGS], [" -isystem $velo_absolute/opal/mca/btl/velo/threads"])
      CPPFLAGS="$velo_save_CPPFLAGS $VELO_OPENMPI_CPPFLAGS"
      VELO_OPENMPI_SEE([opal/mca/threads/pthreads/threads_pthreads_threads.h],
        [velo_threads=", Velo's copy of headers that it does not install"])])])
])

# VELO_OPENMPI_FINT
# No Open MPI installs the header that its ompi/op/op.h includes.
AC_DEFUN([VELO_OPENMPI_FINT],
[VELO_OPENMPI_SEE([ompi/mpi/fortran/base/fint_2_int.h], [],
   [AS_VAR_APPEND([VELO_OPENMPI_CPPFLAGS], [" -isystem $velo_absolute/ompi/mca/coll/velo/headers"])])
])

# VELO_OPENMPI_HEADERS
# The component headers are installed only by an Open MPI that was configured --with-devel-headers, as Debian's was.
AC_DEFUN([VELO_OPENMPI_HEADERS],
[VELO_OPENMPI_SOURCE
 VELO_OPENMPI_CPPFLAGS=
 VELO_MPI_CPPFLAGS=`$MPICC --showme:compile`
 velo_absolute=`cd "$srcdir" && pwd`
 velo_dirs=`$MPICC --showme:incdirs`
 for velo_dir in $velo_dirs $velo_source_dirs; do
   # -isystem: warnings in Open MPI's headers are not ours. Never for /usr/include, which it would put out of order.
   AS_CASE([$velo_dir], [/usr/include], [], [AS_VAR_APPEND([VELO_OPENMPI_CPPFLAGS], [" -isystem $velo_dir"])])
 done

 velo_save_CPPFLAGS=$CPPFLAGS
 CPPFLAGS="$CPPFLAGS $VELO_OPENMPI_CPPFLAGS"
 AC_COMPUTE_INT([velo_major], [OPAL_MAJOR_VERSION], [[#include "opal_config.h"]], [velo_major=unknown])
 AC_COMPUTE_INT([velo_minor], [OPAL_MINOR_VERSION], [[#include "opal_config.h"]], [velo_minor=unknown])
 AC_COMPUTE_INT([velo_release], [OPAL_RELEASE_VERSION], [[#include "opal_config.h"]], [velo_release=unknown])
 VELO_OPENMPI_VERSION=$velo_major.$velo_minor.$velo_release
 AS_IF([test "$velo_major" != unknown],
   [AC_MSG_CHECKING([the version of Open MPI's component headers])
    AC_MSG_RESULT([$VELO_OPENMPI_VERSION])
    AS_CASE([$velo_major.$velo_minor],
      [4.1 | 5.0 | 6.0], [],
      [VELO_OPENMPI_REFUSE([This Open MPI is $VELO_OPENMPI_VERSION; this Velo serves the series 4.1, 5.0 and 6.0.])])
    AS_IF([test -n "$velo_source_dirs"], [VELO_OPENMPI_SOURCE_VERSION])
    VELO_OPENMPI_PMIX
    CPPFLAGS="$velo_save_CPPFLAGS $VELO_OPENMPI_CPPFLAGS"
    VELO_OPENMPI_THREADS
    VELO_OPENMPI_FINT])

 velo_missing=
 # Without the room in ompi_proc_t that another MTL has asked for, there is none for the peers of this one.
 AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include "opal_config.h"
    #ifndef OMPI_PROC_ENDPOINT_TAG_MTL
    #error
    #endif]])],
   [velo_mtl=yes velo_mtl_header=ompi/mca/mtl/mtl.h],
   [velo_mtl="no, these headers are of an Open MPI without any MTL" velo_mtl_header=])
 for velo_header in opal_config.h opal/mca/btl/btl.h ompi/mca/coll/coll.h $velo_mtl_header; do
   VELO_OPENMPI_SEE([$velo_header], [], [AS_VAR_APPEND([velo_missing], [" $velo_header"])])
 done
 AS_IF([test -n "$velo_missing"], [VELO_OPENMPI_MISSING])

 AC_COMPUTE_INT([velo_btl], [BTL_VERSION],
   [[#include "opal_config.h"
     #include "opal/mca/btl/btl.h"]], [velo_btl=unknown])
 AS_CASE([$velo_major.$velo_minor/$velo_btl],
   [4.1/310], [VELO_BTL_VERSION=3.1.0],
   [5.0/330 | 6.0/330], [VELO_BTL_VERSION=3.3.0],
   [VELO_OPENMPI_REFUSE([The BTL API of Open MPI $VELO_OPENMPI_VERSION is $velo_btl; this Velo is written for 310 (3.1.0) of 4.1 and 330 (3.3.0) of 5.0 and 6.0.])])
 CPPFLAGS=$velo_save_CPPFLAGS
])

# VELO_OPENMPI_SOURCE_VERSION
AC_DEFUN([VELO_OPENMPI_SOURCE_VERSION],
[velo_tree=`sed -n 's/^\(major\|minor\|release\)=//p' "$with_ompi_source/VERSION" 2>/dev/null | tr '\n' . | sed 's/.$//'`
 AS_IF([test "$velo_tree" != "$VELO_OPENMPI_VERSION"],
   [VELO_OPENMPI_REFUSE([--with-ompi-source=$with_ompi_source holds Open MPI ${velo_tree:-of an unknown version}, but opal_config.h is of $VELO_OPENMPI_VERSION; give the source of the Open MPI that is installed.])])
])

# VELO_OPENMPI_MISSING
# Says which component headers are missing and what can be done about it.
AC_DEFUN([VELO_OPENMPI_MISSING],
[velo_cli=`$OMPI_INFO --parsable --config 2>/dev/null | sed -n 's/^config:cli://p'`
 AS_CASE([$with_ompi_source/$velo_missing],
   [no/*],
   [VELO_OPENMPI_REFUSE([Open MPI's component headers are missing:$velo_missing (looked in: $velo_dirs).
    They are installed by an Open MPI that was configured with --with-devel-headers. Otherwise get the source of the same
    version, configure it as the installed one was, and give it to Velo: --with-ompi-source=DIR])],
   [*opal_config.h*],
   [VELO_OPENMPI_REFUSE([opal_config.h is neither installed nor in $with_ompi_source/opal/include: that tree is not configured.
    Run there, without what has nothing to do with the headers (Java, Fortran, networks):
        ./configure$velo_cli])],
   [VELO_OPENMPI_REFUSE([Component headers cannot be included:$velo_missing (looked in: $velo_dirs $velo_source_dirs); config.log says why.])])
])

# VELO_OPENMPI_RUNTIME
# What the headers belong to: the installed libraries, and where they look for components.
AC_DEFUN([VELO_OPENMPI_RUNTIME],
[AC_MSG_CHECKING([the version that $OMPI_INFO reports])
 velo_info=`$OMPI_INFO --parsable --all 2>/dev/null`
 # 5.0 has no version of opal any more. What follows the numbers (rc1) the headers do not tell.
 velo_runtime=`AS_ECHO(["$velo_info"]) | sed -n '/^o[[pm]]*[[ai]]l*:version:full:/{s///;s/@<:@a-z~@:>@.*//;p;q;}'`
 AC_MSG_RESULT([${velo_runtime:-none}])
 AS_IF([test "$velo_runtime" != "$VELO_OPENMPI_VERSION"],
   [VELO_OPENMPI_REFUSE([The component headers are of Open MPI $VELO_OPENMPI_VERSION, but $OMPI_INFO is of ${velo_runtime:-an unknown version}.])])

 # The headers of a source tree may have room for an MTL that the installed library does not have.
 AS_CASE([$velo_mtl/$with_ompi_source/$velo_info], [yes/no/* | no* | *mca:mtl:*], [],
   [velo_mtl="no, the installed Open MPI has no MTL"])

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
 VELO_OPENMPI_LIBS="$velo_libdirs -lopen-pal $VELO_PMIX_LIBS"
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
