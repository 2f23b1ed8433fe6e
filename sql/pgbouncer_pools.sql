-- The pools of PgBouncer, for its admin console. No parameters.
SHOW POOLS
