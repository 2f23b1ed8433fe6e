-- Drop what create_strategy_moment_index.sql made, whole or half built.
DROP INDEX CONCURRENTLY IF EXISTS payload_iov_strategy_moment
