-- The index that the strategies sql_lateral_pair and sql_lateral_row want; for comparison only, no migration makes it.
-- It does not cover the answer's columns, like that of the load study (docs/load-tests.md).
CREATE INDEX CONCURRENTLY IF NOT EXISTS payload_iov_strategy_moment
ON "PayloadIOV" (payload_list_id, major_iov DESC, minor_iov DESC)
