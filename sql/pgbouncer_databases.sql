-- For PgBouncer's console: its databases. No parameters.
SHOW DATABASES
