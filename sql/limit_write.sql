-- Set the lock timeout and the statement timeout of this transaction.
-- Parameters: lock text, in milliseconds; statement text, in milliseconds (null: unchanged).
SELECT
    set_config('lock_timeout', %(lock)s, true),
    set_config('statement_timeout', coalesce(%(statement)s, current_setting('statement_timeout')), true)
