#!/bin/sh
# Start the program of a container: start.sh granian|gunicorn|nginx OPTION...
#
# The options are those of deploy/granian.sh, of gunicorn, or of `python -m cdb.serving.nginx`, and say where it listens.
set -eu
program=$1
shift
# /tmp is in memory and empty at each start.
export PROMETHEUS_MULTIPROC_DIR="${TMPDIR:-/tmp}/metrics"
mkdir -p "$PROMETHEUS_MULTIPROC_DIR"
case $program in
granian)
    exec deploy/granian.sh "$@" --workers "${CDB_WORKERS:-3}" --blocking-threads "${CDB_THREADS:-4}"
    ;;
gunicorn)
    exec python3 -m gunicorn --config deploy/gunicorn.conf.py "$@"
    ;;
nginx)
    # The database may have been replaced, so cached responses for frozen tags may be wrong.
    rm -rf /var/cache/cdb/*
    mkdir -p /tmp/temporary /tmp/body
    python3 -m cdb.serving.nginx --cache /var/cache/cdb --temporary /tmp/temporary "$@" >/tmp/nginx.conf
    exec nginx -p /tmp/ -c nginx.conf -e stderr
    ;;
*)
    echo "start.sh: the program must be granian, gunicorn or nginx (got $program)" >&2
    exit 2
    ;;
esac
