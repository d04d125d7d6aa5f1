# VELO_UCX
# --------
# Finds UCX, which carries packets between nodes. Sets HAVE_UCX, UCX_CFLAGS, UCX_LIBS, and velo_ucx for the summary.
# The oldest series with what Velo uses (ucp_am_send_nbx with rendezvous, network-only worker addresses) is 1.11.
AC_DEFUN([VELO_UCX],
[AC_ARG_WITH([ucx],
   [AS_HELP_STRING([--without-ucx], [build for one node only @<:@default: with UCX if pkg-config finds it; --with-ucx insists@:>@])],
   [], [with_ucx=check])
 velo_have_ucx=no
 AS_CASE([$with_ucx],
   [no], [velo_ucx="no, one node only (--without-ucx)"],
   [yes | check], [
     PKG_CHECK_MODULES([UCX], [ucx >= 1.11],
       [velo_ucx="`$PKG_CONFIG --modversion ucx`, between nodes"
        velo_have_ucx=yes],
       [velo_ucx="not found, one node only (apt-get install libucx-dev)"
        AS_IF([test "$with_ucx" = yes], [AC_MSG_ERROR([UCX 1.11 or newer is missing. On Debian 12: apt-get install libucx-dev. For another place: PKG_CONFIG_PATH])])])],
   [AC_MSG_ERROR([--with-ucx=$with_ucx: give no value, and name another place with PKG_CONFIG_PATH])])
 AM_CONDITIONAL([HAVE_UCX], [test "$velo_have_ucx" = yes])
])
