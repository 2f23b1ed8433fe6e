-- The global tags that changed last: name, status, revision, and the stored counts of payload lists and payload IOVs.
-- Parameters: most integer: the maximum number of tags.
SELECT tag.name, tag_status.name, tag.revision, tag.payload_lists_count, tag.payload_iov_count
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
ORDER BY tag.updated DESC, tag.id DESC
LIMIT %(most)s
