#!/bin/sh
# Be a streaming standby of $CDB_PRIMARY, with the password PGPASSWORD. The first time it takes a copy of all data.
# What is given on the command line goes to PostgreSQL.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # It gets its name when it is complete, so a start that is broken off leaves no half.
    copy=$PGDATA.unfinished
    rm -rf "$copy"
    mkdir -p "$(dirname "$PGDATA")"
    pg_basebackup --dbname "host=$CDB_PRIMARY port=${CDB_PRIMARY_PORT:-5432} user=cdb_replication" \
        --pgdata "$copy" --slot standby --write-recovery-conf --checkpoint fast
    # An empty directory may be there already.
    [ ! -d "$PGDATA" ] || rmdir "$PGDATA"
    mv "$copy" "$PGDATA"
fi
exec postgres "$@"
