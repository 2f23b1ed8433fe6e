-- Lock the revisions of several global tags in the order of their ids, as all writers do.
-- Parameters: tag_ids bigint[].
SELECT FROM "GlobalTag" WHERE id = ANY(%(tag_ids)s) ORDER BY id FOR NO KEY UPDATE
