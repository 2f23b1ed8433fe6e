-- The statistics of PgBouncer, for its admin console. No parameters.
SHOW STATS
