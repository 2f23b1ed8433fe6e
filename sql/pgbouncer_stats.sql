-- For PgBouncer's console: its stats. No parameters.
SHOW STATS
