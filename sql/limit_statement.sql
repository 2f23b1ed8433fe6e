-- Let statements of the transaction that has just begun take so long.
-- Parameters: statement text, in milliseconds, or null to leave it as it is.
SELECT set_config('statement_timeout', coalesce(%(statement)s, current_setting('statement_timeout')), true)
