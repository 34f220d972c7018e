#!/bin/sh
# Make the virtual environment: sh tools/make_venv.sh PYTHON FOLDER. Debian keeps venv in a package of its own.
set -eu
PYTHON=$1
FOLDER=$2
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "error: $("$PYTHON" --version) is too old; give make PYTHON= a Python 3.11 or newer" >&2
    exit 1
}
"$PYTHON" -m venv "$FOLDER" 2>/dev/null && exit 0
rm -rf "$FOLDER"
command -v apt-get >/dev/null 2>&1 || exec "$PYTHON" -m venv "$FOLDER"
SUDO=""
[ "$(id -u)" = 0 ] || SUDO="sudo"
$SUDO apt-get update -qq
DEBIAN_FRONTEND=noninteractive $SUDO apt-get install -y -qq python3-venv >/dev/null
exec "$PYTHON" -m venv "$FOLDER"
