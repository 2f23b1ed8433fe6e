-- Set the statement timeout of this transaction, and make its statements use indexes in order instead of sorting.
-- Parameters: milliseconds text: the timeout (null: unchanged).
SELECT set_config('statement_timeout', coalesce(%(milliseconds)s, current_setting('statement_timeout')), true), set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)
