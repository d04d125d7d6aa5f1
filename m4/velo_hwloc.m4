# VELO_HWLOC
# ----------
# hwloc places the mailbox near its owner and tells where processes run; optional. Sets velo_hwloc for the summary.
AC_DEFUN([VELO_HWLOC],
[PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0],
   [velo_hwloc=`$PKG_CONFIG --modversion hwloc`
    AC_DEFINE([VELO_HAVE_HWLOC], [1])],
   [velo_hwloc="not found (apt-get install libhwloc-dev): mailboxes are placed by first touch"])
])
