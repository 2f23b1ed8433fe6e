-- Create the index of the strategy sql_lateral_asc. It is for comparisons only, so no migration creates it. No parameters.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payload_iov_strategy_ascending
ON "PayloadIOV" (payload_list_id, comb_iov)
INCLUDE (payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra)
