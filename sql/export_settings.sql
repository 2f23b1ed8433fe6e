-- Let the transaction's statements take that long, and stream in the order of the index instead of sorting.
-- Parameters: milliseconds text.
SELECT set_config('statement_timeout', %(milliseconds)s, true), set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)
