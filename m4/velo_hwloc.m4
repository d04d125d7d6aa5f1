# VELO_HWLOC
# ----------
# Reports hwloc; nothing depends on it yet. Sets velo_hwloc for the summary.
AC_DEFUN([VELO_HWLOC],
[PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0],
   [velo_hwloc=`$PKG_CONFIG --modversion hwloc`],
   [velo_hwloc="not found (apt-get install libhwloc-dev)"])
])
