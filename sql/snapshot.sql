-- Make the transaction that has just begun see one state of the database throughout, and let it change nothing; and let its
-- statements take longer than others. Two statements in one round trip, because the first one has to come before any SELECT.
-- Parameters: statement text, the longest time of a statement in milliseconds, or null to leave it as it is.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SELECT set_config('statement_timeout', coalesce(%(statement)s, current_setting('statement_timeout')), true)
