-- The version of all global tags and their statuses together, for HTTP caches of the list: one row. No parameters.
-- It is a sum of hashes of row versions, because a counter would make the writers of different tags wait for each other.
SELECT count(*) || '-' || coalesce(sum(hash_record_extended(ROW(tag.id, tag.xmin, tag.updated, tag_status.xmin), 0)), 0)
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
