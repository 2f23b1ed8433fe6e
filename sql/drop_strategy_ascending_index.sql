-- Drop what create_strategy_ascending_index.sql made, whole or half built.
DROP INDEX CONCURRENTLY IF EXISTS payload_iov_strategy_ascending
