-- Take one of the numbered slots for exports until the transaction ends. No row if all slots are taken.
-- Parameters: slots integer: the number of slots. The first part of the lock's key is an arbitrary constant of this project.
SELECT slot FROM generate_series(1, %(slots)s) AS slot WHERE pg_try_advisory_xact_lock(1163416659, slot) LIMIT 1
