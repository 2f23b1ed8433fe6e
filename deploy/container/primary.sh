#!/bin/sh
# Create the database of the service and the access of the standby, when the image of PostgreSQL creates its data directory.
set -eu

echo "host replication cdb_replication samenet scram-sha-256" >>"$PGDATA/pg_hba.conf"

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
    --set password="$CDB_DATABASE_PASSWORD" --set replication_password="$CDB_REPLICATION_PASSWORD" \
    --file "${CDB_PRIMARY_SQL:-/etc/cdb-primary.sql}"
