#!/bin/sh
# What the official image of PostgreSQL does at its start, as far as compose.yaml relies on it.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
    # shellcheck disable=SC2086
    initdb --username postgres --pwfile /tmp/password --auth-local trust --auth-host scram-sha-256 --pgdata "$PGDATA" $POSTGRES_INITDB_ARGS
    rm /tmp/password
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
    pg_ctl --pgdata "$PGDATA" --wait --options "-c listen_addresses=''" start
    for script in /docker-entrypoint-initdb.d/*.sh; do
        # shellcheck source=/dev/null
        . "$script"
    done
    pg_ctl --pgdata "$PGDATA" --wait --mode fast stop
fi
exec "$@"
