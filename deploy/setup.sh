#!/bin/sh
# Create .venv with the pinned packages of a requirements file. A second run changes nothing.
# Usage: deploy/setup.sh requirements.txt
set -eu
requirements=$1
python=${PYTHON:-python3}

fail() {
    echo "cdb: $1" >&2
    exit 1
}

if ! command -v "$python" >/dev/null 2>&1; then
    fail "Python 3.11 or newer is needed and $python was not found. On Debian or Ubuntu: apt-get install python3 python3-venv"
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    fail "Python 3.11 or newer is needed; $python is $("$python" -V 2>&1). Name another one: make PYTHON=python3.12 ..."
fi
if [ ! -x .venv/bin/python ]; then
    if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        fail "Python's venv module is missing. On Debian or Ubuntu: apt-get install python$version-venv"
    fi
    echo "Making .venv"
    "$python" -m venv .venv
fi

# The account of the PostgreSQL server must be able to execute the binaries, regardless of the user's umask.
umask 022
stamp=.venv/installed-$(basename "$requirements")
if ! cmp -s "$requirements" "$stamp"; then
    echo "Installing $requirements"
    # uv takes a fifth of pip's time. Where it does not work, for example with a private package index, pip does.
    pip="-m pip install --quiet --disable-pip-version-check --require-hashes --requirement"
    # shellcheck disable=SC2086 # the words of $pip
    if ! { .venv/bin/python $pip deploy/uv.txt && .venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes \
        --requirement "$requirements"; } 2>/dev/null; then
        # shellcheck disable=SC2086
        .venv/bin/python $pip "$requirements"
    fi
    cp "$requirements" "$stamp"
fi
