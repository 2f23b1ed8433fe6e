-- Raise the time of the last modification of all global tags, so that HTTP caches which compare times revalidate. The new time
-- is computed as in record_changes.sql. No parameters.
UPDATE "GlobalTag"
SET last_modified = greatest(last_modified, date_trunc('second', clock_timestamp())) + interval '1 second'
