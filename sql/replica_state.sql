-- Whether a server is a replica, its replay position in bytes of WAL, and the system identifier of its cluster: one row. No
-- parameters.
SELECT
    pg_is_in_recovery(),
    coalesce(pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0'), 0)::bigint,
    (pg_control_system()).system_identifier::text
