-- Metrics of the server: size of the database in bytes, maximum number of connections, age of the oldest transaction in seconds,
-- whether the server is a standby, and whether its last attempt to archive a WAL file failed. It reads no table. No parameters.
SELECT
    pg_database_size(current_database()),
    current_setting('max_connections')::integer,
    coalesce((
        SELECT extract(epoch FROM max(clock_timestamp() - activity.xact_start))::double precision
        FROM pg_stat_activity AS activity
        WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid()
    ), 0),
    pg_is_in_recovery(),
    (
        SELECT coalesce(archiver.last_failed_time > coalesce(archiver.last_archived_time, '-infinity'), false)
        FROM pg_stat_archiver AS archiver
    )
