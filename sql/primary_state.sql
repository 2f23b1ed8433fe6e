-- The flushed position of the primary's WAL in bytes, and the system identifier of its cluster: one row. No parameters.
SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint, (pg_control_system()).system_identifier::text
