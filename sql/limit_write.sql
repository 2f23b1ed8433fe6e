-- Let no statement of the transaction that has just begun wait for a lock, or take, longer than that.
-- Parameters: lock text, in milliseconds; statement text, the same, or null to leave it as it is.
SELECT
    set_config('lock_timeout', %(lock)s, true),
    set_config('statement_timeout', coalesce(%(statement)s, current_setting('statement_timeout')), true)
