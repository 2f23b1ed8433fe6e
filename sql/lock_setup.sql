-- Wait for the turn to bring the database up to date; the key is this project's own choice.
SELECT pg_advisory_lock(3237998080)
