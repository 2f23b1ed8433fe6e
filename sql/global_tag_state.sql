-- The state of a global tag for caches: version, name of the status, time of last modification (null within its second).
-- Parameters: tag text. No row if there is no such tag.
SELECT cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
    CASE WHEN tag.last_modified <= now() THEN tag.last_modified END
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
WHERE tag.name = %(tag)s
