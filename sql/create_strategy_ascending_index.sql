-- The index that the strategy sql_lateral_asc wants; for comparison only, no migration makes it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payload_iov_strategy_ascending
ON "PayloadIOV" (payload_list_id, comb_iov)
INCLUDE (payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra)
