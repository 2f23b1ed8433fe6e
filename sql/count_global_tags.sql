-- The number of global tags. No parameters.
SELECT count(*) FROM "GlobalTag"
