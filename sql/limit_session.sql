-- Set the timeouts of this session for statements, for locks and for idle transactions. Also end the statements of clients that
-- have disconnected, so that they do not block others by their locks.
-- Parameters: statement, lock, idle and look text, in milliseconds; look is the interval between checks of the connection.
SELECT
    set_config('statement_timeout', %(statement)s, false),
    set_config('lock_timeout', %(lock)s, false),
    set_config('idle_in_transaction_session_timeout', %(idle)s, false),
    set_config('client_connection_check_interval', %(look)s, false)
