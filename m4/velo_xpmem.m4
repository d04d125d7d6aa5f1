# VELO_XPMEM
# ----------
# XPMEM maps the memory of one process into another; optional. The kernel module is looked for at run time. Sets
# VELO_XPMEM_CPPFLAGS, VELO_XPMEM_LDFLAGS, VELO_XPMEM_LIBS and velo_xpmem for the summary.
AC_DEFUN([VELO_XPMEM],
[AC_ARG_WITH([xpmem],
   [AS_HELP_STRING([--with-xpmem@<:@=DIR@:>@],
     [use XPMEM, from DIR/include and DIR/lib @<:@default: if it is in the compiler's paths or in /opt/xpmem@:>@])],
   [], [with_xpmem=auto])
 AS_CASE([$with_xpmem],
   [no],       [velo_xpmem="no, by --without-xpmem"],
   [auto|yes], [VELO_XPMEM_SEARCH(["" /opt/xpmem])],
   [/*],       [VELO_XPMEM_SEARCH(["$with_xpmem"])],
   [AC_MSG_ERROR([--with-xpmem=$with_xpmem: give an absolute directory that has include/xpmem.h.])])
 AS_CASE([$with_xpmem:$velo_xpmem],
   [auto:*|no:*|*:yes*], [],
   [AC_MSG_ERROR([--with-xpmem=$with_xpmem: XPMEM: $velo_xpmem. Give a directory that has include/xpmem.h and lib/libxpmem.so, or leave the option out.])])
 AC_SUBST([VELO_XPMEM_CPPFLAGS])
 AC_SUBST([VELO_XPMEM_LDFLAGS])
 AC_SUBST([VELO_XPMEM_LIBS])
])

# VELO_XPMEM_SEARCH(PREFIXES)
# ---------------------------
AC_DEFUN([VELO_XPMEM_SEARCH],
[velo_xpmem="no, xpmem.h was not found (--with-xpmem=DIR)"
 velo_save_CPPFLAGS=$CPPFLAGS velo_save_LIBS=$LIBS
 for velo_prefix in $1; do
   AS_IF([test -n "$velo_prefix"], [velo_include=-I$velo_prefix/include], [velo_include=])
   CPPFLAGS="$velo_save_CPPFLAGS $velo_include"
   AC_MSG_CHECKING([for xpmem.h${velo_prefix:+ in $velo_prefix}])
   AC_COMPILE_IFELSE([VELO_XPMEM_PROGRAM], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no]); continue])
   velo_xpmem="no, xpmem.h was found, but libxpmem does not link (--with-xpmem=DIR)"
   for velo_libdir in lib lib64; do
     velo_libs=-lxpmem velo_rpath=
     AS_IF([test -n "$velo_prefix"],
       [velo_libs="-L$velo_prefix/$velo_libdir -lxpmem" velo_rpath=-Wl,-rpath,$velo_prefix/$velo_libdir])
     LIBS="$velo_libs $velo_save_LIBS"
     AC_MSG_CHECKING([for libxpmem${velo_prefix:+ in $velo_prefix/$velo_libdir}])
     AC_LINK_IFELSE([VELO_XPMEM_PROGRAM], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no]); continue])
     velo_xpmem="yes${velo_prefix:+, $velo_prefix}"
     VELO_XPMEM_CPPFLAGS=$velo_include VELO_XPMEM_LIBS=$velo_libs VELO_XPMEM_LDFLAGS=$velo_rpath
     AC_DEFINE([VELO_HAVE_XPMEM], [1], [xpmem.h and libxpmem])
     break 2
   done
 done
 CPPFLAGS=$velo_save_CPPFLAGS LIBS=$velo_save_LIBS
])

AC_DEFUN([VELO_XPMEM_PROGRAM],
[AC_LANG_PROGRAM([[#include <xpmem.h>]],
  [[xpmem_segid_t segment = xpmem_make(0, XPMEM_MAXADDR_SIZE, XPMEM_PERMIT_MODE, (void*)0600);
    struct xpmem_addr from = {xpmem_get(segment, XPMEM_RDWR, XPMEM_PERMIT_MODE, 0), 0};
    return xpmem_detach(xpmem_attach(from, 1, 0)) + xpmem_release(from.apid) + xpmem_remove(segment);]])])
