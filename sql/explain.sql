-- Run a statement, which is put in at {statement}, and tell how; {format} is JSON or TEXT.
EXPLAIN (ANALYZE, BUFFERS, FORMAT {format})
{statement}
