#!/bin/sh
# Run a streaming standby of $CDB_PRIMARY, with the password in PGPASSWORD. The first start copies all data.
# Arguments are passed to PostgreSQL.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # It is renamed when it is complete, so that an interrupted start leaves no partial copy.
    copy=$PGDATA.unfinished
    rm -rf "$copy"
    mkdir -p "$(dirname "$PGDATA")"
    pg_basebackup --dbname "host=$CDB_PRIMARY port=${CDB_PRIMARY_PORT:-5432} user=cdb_replication" \
        --pgdata "$copy" --slot standby --write-recovery-conf --checkpoint fast
    # An empty directory may exist already.
    [ ! -d "$PGDATA" ] || rmdir "$PGDATA"
    mv "$copy" "$PGDATA"
fi
exec postgres "$@"
