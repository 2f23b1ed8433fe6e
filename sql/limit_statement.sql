-- Set the statement timeout of this transaction.
-- Parameters: statement text, in milliseconds (null: unchanged).
SELECT set_config('statement_timeout', coalesce(%(statement)s, current_setting('statement_timeout')), true)
