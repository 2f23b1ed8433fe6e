-- Let no statement of this transaction wait for a lock longer than that.
-- Parameters: milliseconds text.
SELECT set_config('lock_timeout', %(milliseconds)s, true)
