-- The databases of PgBouncer, for its admin console. No parameters.
SHOW DATABASES
