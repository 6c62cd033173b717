#!/bin/sh
# Installs what the ns-3 peer benchmark needs (Debian 12: libns3-dev is 3.37).
# Further packages may be named: ns3_gym needs libzmq3-dev, cppzmq-dev,
# libprotobuf-dev and protobuf-compiler. Does nothing when everything is already there.
set -eu

have() {
    dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "install.sh: no dpkg here; needs ns-3.37 with headers, g++ and pkg-config" >&2
    exit 1
fi

missing=""
for p in libns3-dev g++ pkg-config "$@"; do
    have "$p" || missing="$missing $p"
done
missing="${missing# }"

if [ -z "$missing" ]; then
    echo "nothing to install"
    exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
    sudo=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    sudo="sudo"
else
    echo "missing packages: $missing"
    echo "as root: apt-get install -y --no-install-recommends $missing"
    exit 1
fi

# shellcheck disable=SC2086
get() {
    $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends $missing
}
# The package lists may be stale or absent: refresh them only if that fails.
get || { $sudo apt-get update && get; }
