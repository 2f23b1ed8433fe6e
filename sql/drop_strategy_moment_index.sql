-- Drop the index of create_strategy_moment_index.sql, complete or incomplete. No parameters.
DROP INDEX CONCURRENTLY IF EXISTS payload_iov_strategy_moment
