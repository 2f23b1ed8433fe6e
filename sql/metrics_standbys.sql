-- The standbys that stream from this server, by the names they give themselves: how many have the name, and how far the slowest is
-- behind, in seconds and in bytes of the log. One that is idle and has everything has no lag. Those that the role may not look at, for
-- want of pg_monitor, are left out. No parameters.
SELECT
    standby.application_name,
    count(*),
    coalesce(extract(epoch FROM max(standby.replay_lag)), 0)::double precision,
    max(pg_wal_lsn_diff(
        CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, standby.replay_lsn
    ))::double precision
FROM pg_stat_replication AS standby
WHERE standby.replay_lsn IS NOT NULL
GROUP BY standby.application_name
