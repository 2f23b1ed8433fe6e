-- Let all global tags count as modified now, for caches that compare times; no parameters. See record_changes.sql.
UPDATE "GlobalTag"
SET last_modified = greatest(last_modified, date_trunc('second', clock_timestamp())) + interval '1 second'
