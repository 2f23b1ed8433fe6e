-- Take one of the numbered places for exports until the transaction ends, however it does; no row if all are taken.
-- Parameters: slots integer. The first half of the key is this project's own choice.
SELECT slot FROM generate_series(1, %(slots)s) AS slot WHERE pg_try_advisory_xact_lock(1163416659, slot) LIMIT 1
