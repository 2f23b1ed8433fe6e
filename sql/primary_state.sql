-- How far the primary's log is written, in bytes, and which cluster it is the primary of: no parameters, one row.
SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint, (pg_control_system()).system_identifier::text
