-- Let no statement of this session wait for a lock longer than that.
-- Parameters: milliseconds text.
SELECT set_config('lock_timeout', %(milliseconds)s, false)
