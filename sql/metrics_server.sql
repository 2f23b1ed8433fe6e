-- What /metrics tells of the server: bytes of the database, connections that are permitted, age of the oldest transaction in
-- seconds, and whether it is a standby. Looks at files and at memory, and at no table.
SELECT
    pg_database_size(current_database()),
    current_setting('max_connections')::integer,
    coalesce((
        SELECT extract(epoch FROM max(clock_timestamp() - activity.xact_start))::double precision
        FROM pg_stat_activity AS activity
        WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid()
    ), 0),
    pg_is_in_recovery()
