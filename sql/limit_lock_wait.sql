-- Set the lock timeout of this session.
-- Parameters: milliseconds text.
SELECT set_config('lock_timeout', %(milliseconds)s, false)
