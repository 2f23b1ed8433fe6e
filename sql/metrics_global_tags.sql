-- The global tags that changed last: name, status, revision, payload lists, payload IOVs, all of them kept in the tag's row.
-- Parameters: most integer.
SELECT tag.name, tag_status.name, tag.revision, tag.payload_lists_count, tag.payload_iov_count
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
ORDER BY tag.updated DESC, tag.id DESC
LIMIT %(most)s
