#!/bin/sh
# Make sure that a Chromium is there for the browser tests; installs Debian's when it may.
set -eu
command -v chromium >/dev/null 2>&1 && exit 0
command -v apt-get >/dev/null 2>&1 || {
    echo "error: no chromium on PATH, and no apt-get to install it; install Chromium and try again" >&2
    exit 1
}
SUDO=""
[ "$(id -u)" = 0 ] || SUDO="sudo"
$SUDO apt-get update -qq
DEBIAN_FRONTEND=noninteractive $SUDO apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
command -v chromium
