-- Make this transaction read-only with one snapshot for all of its statements, and set their timeout.
-- Parameters: statement text: the timeout in milliseconds (null: unchanged).
-- Both statements are sent in one round trip, because the first one must come before any SELECT.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SELECT set_config('statement_timeout', coalesce(%(statement)s, current_setting('statement_timeout')), true)
