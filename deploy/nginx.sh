#!/bin/sh
# Start nginx, after ending the processes of one that was killed: they outlive it and keep the port.
# The arguments are nginx's command line, with -p DIRECTORY/ as the second and third word.
set -eu
if [ -s "$3nginx.pid" ]; then
    pkill -QUIT -x nginx -g "$(cat "$3nginx.pid")" || true
fi
exec "$@"
