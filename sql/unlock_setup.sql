-- Give the turn on after lock_setup.sql.
SELECT pg_advisory_unlock(3237998080)
