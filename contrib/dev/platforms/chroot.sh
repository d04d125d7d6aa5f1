# Debian chroots, one for each Open MPI series. Sourced by contrib/dev/series.
#
# All mounts are made in a mount namespace of their own, which ends with the last process in it: nothing stays mounted,
# not even after kill -9.

# The Debian release that ships the series.
chroot_suite() {
    case $1 in
    4.1) echo bookworm ;;
    5.0) echo trixie ;;
    6.0) echo sid ;;
    *) return 1 ;;
    esac
}

# The mirror that the host's apt uses, if the host is a Debian.
chroot_default_mirror() {
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
        grep -v -e security -e updates | head -1)
    echo "${mirror:-http://deb.debian.org/debian}"
}

chroot_packages="
    autoconf automake libtool pkg-config make gcc g++ flex
    openmpi-bin libopenmpi-dev libpmix-dev libhwloc-dev libucx-dev
    nlohmann-json3-dev libcli11-dev libgtest-dev
    python3 python3-pytest python3-matplotlib procps util-linux iproute2 nftables
"

# chroot_make SERIES DIRECTORY [MIRROR]: does nothing if it is there already with all packages, and goes on where it failed.
chroot_make() {
    [ ! -e "$2/.complete" ] || [ "$(cat "$2/.complete")" != "$(echo $chroot_packages)" ] || return 0
    chroot_base "$@" || return 1
    chroot_run "$2" DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $chroot_packages || return 1
    rm -f "$2"/var/cache/apt/archives/*.deb
    echo $chroot_packages >"$2/.complete"
}

# chroot_base SERIES DIRECTORY [MIRROR]: the same without packages, but with their index.
chroot_base() {
    if [ ! -e "$2/.base" ]; then
        rm -rf "$2"
        mkdir -p "$2"
        debootstrap --variant=minbase --include=ca-certificates "$(chroot_suite "$1")" "$2" "${3:-$(chroot_default_mirror)}" || return 1
        chroot_settings "$2"
        touch "$2/.base"
    fi
    chroot_run "$2" apt-get update -q
}

# How the host resolves names and downloads packages. Service starts of packages make no sense in a chroot.
chroot_settings() {
    cp -L /etc/resolv.conf /etc/hosts "$1/etc/"
    apt-config dump 2>/dev/null | grep -E '^Acquire::(http|https|Check|Languages)' >"$1/etc/apt/apt.conf.d/90host" || true
    if [ -d /usr/local/share/ca-certificates ]; then
        cp -r /usr/local/share/ca-certificates/. "$1/usr/local/share/ca-certificates/"
        chroot "$1" update-ca-certificates >/dev/null 2>&1 || true
    fi
    printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
    chmod +x "$1/usr/sbin/policy-rc.d"
}

# chroot_run DIRECTORY COMMAND...: the command as root in the chroot, with processes, mounts, a /dev/shm and a /tmp of its
# own: mpirun names its session after its process number, which comes again in each namespace. The root is that of the mount
# namespace, where whoever enters a namespace made in it (contrib/nodes) begins.
chroot_run() {
    unshare --mount --pid --ipc --fork --kill-child sh -c '
        root=$1; shift
        mount --make-rprivate / &&
        mount --bind "$root" "$root" &&
        mount -t proc proc "$root/proc" &&
        mount --rbind /sys "$root/sys" &&
        mount --rbind /dev "$root/dev" &&
        mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" &&
        mount -t tmpfs -o mode=1777 tmpfs "$root/tmp" &&
        cd "$root" && pivot_root . . && umount -l . &&
        exec env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"' sh "$@"
}
