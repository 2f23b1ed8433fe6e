-- The indexes of the table of IOVs: name, size in bytes, and whether it is fit for use. The half-built one of an interrupted
-- CREATE INDEX CONCURRENTLY is not.
SELECT relname, pg_relation_size(pg_class.oid), indisvalid
FROM pg_index
JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = '"PayloadIOV"'::regclass
