-- Take the lock for migrations until the transaction ends. The key is an arbitrary constant of this project. No parameters.
-- A session-level lock would not work behind a pooler. The transaction is idle meanwhile, so its idle timeout is disabled.
SELECT set_config('idle_in_transaction_session_timeout', '0', true), pg_advisory_xact_lock(3237998080)
