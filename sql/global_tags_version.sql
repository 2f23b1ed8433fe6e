-- One value for the state of all global tags and their statuses, for caches of the list: no parameters, one row.
-- A sum of digests of row versions, because a counter would make all writers of all tags wait for each other.
SELECT count(*) || '-' || coalesce(sum(hash_record_extended(ROW(tag.id, tag.xmin, tag.updated, tag_status.xmin), 0)), 0)
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
