-- Create the index of the strategies sql_lateral_pair and sql_lateral_row. It is for comparisons only, so no migration
-- creates it. No parameters.
-- Like the index of the load study (docs/load-tests.md), it does not include the columns of the result.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payload_iov_strategy_moment
ON "PayloadIOV" (payload_list_id, major_iov DESC, minor_iov DESC)
