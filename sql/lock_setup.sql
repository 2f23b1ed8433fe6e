-- Wait for the turn to bring the database up to date, and keep it until the transaction ends: a lock of the session would
-- be lost behind a pooler. The transaction idles meanwhile, which the server must allow. The key is this project's own choice.
SELECT set_config('idle_in_transaction_session_timeout', '0', true), pg_advisory_xact_lock(3237998080)
