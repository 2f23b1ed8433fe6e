-- Whether a replica has replayed the primary's log that far: parameter position text; one row. False on a server that is no replica.
SELECT pg_is_in_recovery() AND coalesce(pg_last_wal_replay_lsn() >= %(position)s::pg_lsn, false)
