# VELO_UCX
# --------
# Reports UCX; nothing depends on it yet. Sets velo_ucx for the summary.
AC_DEFUN([VELO_UCX],
[PKG_CHECK_MODULES([UCX], [ucx >= 1.9],
   [velo_ucx=`$PKG_CONFIG --modversion ucx`],
   [velo_ucx="not found (apt-get install libucx-dev)"])
])
