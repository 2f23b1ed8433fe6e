-- Run a statement and return its plan. Placeholders: {statement}; {format}, which is JSON or TEXT. Parameters: those of the
-- statement.
EXPLAIN (ANALYZE, BUFFERS, FORMAT {format})
{statement}
