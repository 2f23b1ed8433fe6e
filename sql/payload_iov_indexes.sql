-- The indexes of the table PayloadIOV: name, size in bytes, whether it is complete, and whether it is being built. No parameters.
-- An incomplete index that is not being built was left by an interrupted CREATE INDEX CONCURRENTLY.
SELECT relname, pg_relation_size(pg_class.oid), indisvalid,
    EXISTS (SELECT FROM pg_stat_progress_create_index WHERE index_relid = pg_class.oid)
FROM pg_index
JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = '"PayloadIOV"'::regclass
