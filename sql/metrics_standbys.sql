-- The standbys that stream from this server, by application name: number with this name, and the maximum lag in seconds and in
-- bytes of WAL. An idle standby that has replayed everything has no lag. No parameters.
-- Without pg_monitor, standbys that the role may not see are left out.
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
