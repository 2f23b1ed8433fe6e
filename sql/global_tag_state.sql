-- The state of a global tag for HTTP caches: version, name of the status, time for Last-Modified (null until that time is
-- reached). No row if the tag does not exist.
-- Parameters: tag text.
SELECT cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
    CASE WHEN tag.last_modified <= now() THEN tag.last_modified END
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
WHERE tag.name = %(tag)s
