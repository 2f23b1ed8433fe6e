-- Keep global tags and their statuses as they are until the transaction ends, and return the id of each.
-- Parameters: tag_ids bigint[].
-- The weakest row lock: it makes a change of status or a deletion wait, while other writers to the same tags go on, and
-- the counts in the same rows can still be raised.
SELECT id FROM "GlobalTag" WHERE id = ANY(%(tag_ids)s) ORDER BY id FOR KEY SHARE
