-- The numbers of payload lists and IOVs of global tags, by name, and whether they are frozen. Parameters: names text[].
SELECT tag.name, tag.payload_lists_count, tag.payload_iov_count, status.name = 'frozen'
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS status ON status.id = tag.status_id
WHERE tag.name = ANY(%(names)s)
