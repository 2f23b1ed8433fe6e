-- How many global tags there are. No parameters.
SELECT count(*) FROM "GlobalTag"
