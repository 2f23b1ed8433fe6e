#!/bin/sh
# Create the account and the database of the service. Patroni runs this script once, on the first primary.
# Argument: a connection string of the superuser. The variable DATABASE_PASSWORD is the password of the new account.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set password="$DATABASE_PASSWORD" "$1" <<'SQL'
CREATE ROLE cdb LOGIN PASSWORD :'password';
CREATE DATABASE cdb OWNER cdb;
SQL
