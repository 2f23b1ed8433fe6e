-- Whether a replica has replayed the primary's WAL up to a position: one row; false on a server that is not a replica.
-- Parameters: position text.
SELECT pg_is_in_recovery() AND coalesce(pg_last_wal_replay_lsn() >= %(position)s::pg_lsn, false)
