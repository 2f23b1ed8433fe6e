-- The position up to which the primary's WAL has all commits that a client can have seen: one row. No parameters.
-- A commit becomes visible when it is flushed or, with synchronous_commit off, when it is inserted into the WAL.
SELECT CASE current_setting('synchronous_commit')
    WHEN 'off' THEN pg_current_wal_insert_lsn()
    ELSE pg_current_wal_flush_lsn()
END::text
