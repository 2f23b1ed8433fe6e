-- How far the primary's log goes that holds all that anybody can have seen committed: no parameters, one row.
-- A commit is seen when it is flushed, and if commits do not wait for that, when it is in the log at all.
SELECT CASE current_setting('synchronous_commit')
    WHEN 'off' THEN pg_current_wal_insert_lsn()
    ELSE pg_current_wal_flush_lsn()
END::text
