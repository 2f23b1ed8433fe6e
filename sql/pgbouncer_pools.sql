-- For PgBouncer's console: its pools. No parameters.
SHOW POOLS
