#!/bin/sh
# Generates configure and Makefile.in.
set -eu
cd "$(dirname "$0")"
for tool in autoreconf:autoconf automake:automake pkg-config:pkg-config; do
    command -v "${tool%:*}" >/dev/null || {
        echo "autogen.sh: ${tool%:*} is missing: apt-get install ${tool#*:}" >&2
        exit 1
    }
done
exec autoreconf --install --warnings=all
