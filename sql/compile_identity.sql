-- The identity of the database. Null on a standby. No parameters.
SELECT cdb_database_identity()
