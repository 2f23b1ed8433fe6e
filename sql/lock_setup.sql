-- Wait for the turn to bring the database up to date, and keep it until the transaction ends: a lock of the session would
-- be lost behind a pooler. The key is this project's own choice.
SELECT pg_advisory_xact_lock(3237998080)
