-- The indexes of the table of IOVs: name, size in bytes, whether it is fit for use, and whether somebody is building it now. The
-- half-built one of an interrupted CREATE INDEX CONCURRENTLY is neither.
SELECT relname, pg_relation_size(pg_class.oid), indisvalid,
    EXISTS (SELECT FROM pg_stat_progress_create_index WHERE index_relid = pg_class.oid)
FROM pg_index
JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = '"PayloadIOV"'::regclass
