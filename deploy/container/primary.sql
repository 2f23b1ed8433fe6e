-- The service's role and database, and what a streaming standby needs.
-- Variables of psql: password, replication_password.

CREATE ROLE cdb LOGIN PASSWORD :'password';
CREATE DATABASE cdb OWNER cdb;

CREATE ROLE cdb_replication LOGIN REPLICATION PASSWORD :'replication_password';
-- The primary keeps its log for the standby, also before that has come for the first time.
SELECT FROM pg_create_physical_replication_slot('standby', true);
