-- Drop the index of create_strategy_ascending_index.sql, complete or incomplete. No parameters.
DROP INDEX CONCURRENTLY IF EXISTS payload_iov_strategy_ascending
