-- Lock global tags against deletion and changes of status until the transaction ends. Returns the ids of those that exist.
-- Parameters: tag_ids bigint[].
-- FOR KEY SHARE is the weakest row lock: other writers to the same tags can take it at the same time, and the counts in the
-- same rows can still be updated.
SELECT id FROM "GlobalTag" WHERE id = ANY(%(tag_ids)s) ORDER BY id FOR KEY SHARE
