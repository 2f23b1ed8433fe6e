-- Settings of this transaction for statements of cdb_rest/analysis/: they read payload lists one after the other by index, and sort
-- the rows of a list in memory.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true),
    set_config('work_mem', '64MB', true)
