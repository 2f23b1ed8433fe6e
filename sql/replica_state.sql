-- Whether a server is a replica, how far it has replayed the log, in bytes, and of which cluster: no parameters, one row.
SELECT
    pg_is_in_recovery(),
    coalesce(pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0'), 0)::bigint,
    (pg_control_system()).system_identifier::text
