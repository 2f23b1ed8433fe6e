#!/bin/sh
# Start granian, which serves `make run`, and lookups behind nginx. The arguments say where it listens and how much it runs:
#   deploy/granian.sh --uds PATH --uds-permissions 0o666 --workers 3 --blocking-threads 4
#   deploy/granian.sh --host 127.0.0.1 --port 8000 --workers 3 --blocking-threads 4
set -eu
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3
# A granian that was killed has left its socket, and would hinder the next one.
[ "${1-}" != --uds ] || rm -f "$2"
# --backpressure  the number of connections of each process; with fewer, idle connections would keep others waiting
# --backlog       connections that the kernel keeps until a process accepts them
# --respawn-interval  seconds of a reload after which an old process ends: the new one needs most of them to load the code
exec "$python" -m granian --interface wsgi --http 1 --no-ws \
    --backpressure 4096 --backlog 4096 \
    --respawn-failed-workers --respawn-interval 6 --workers-kill-timeout 10 \
    --log-level error \
    "$@" cdb.wsgi:application
