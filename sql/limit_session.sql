-- Let no statement of this session take longer, wait longer for a lock, or leave a transaction idle longer than that; and let
-- a statement end whose client is gone, so that it holds nobody up by its locks.
-- Parameters: statement, lock, idle and look text, in milliseconds; look is how often it is seen after the client.
SELECT
    set_config('statement_timeout', %(statement)s, false),
    set_config('lock_timeout', %(lock)s, false),
    set_config('idle_in_transaction_session_timeout', %(idle)s, false),
    set_config('client_connection_check_interval', %(look)s, false)
