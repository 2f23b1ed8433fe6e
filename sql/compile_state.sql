-- The state of a global tag that is compiled: database, id, revision, time of the revision (null if it is not in the log), version,
-- version as a past revision (null too), status, time for Last-Modified, and the id below which all transactions have ended. No row
-- if the tag does not exist.
-- Parameters: tag text.
SELECT cdb_database_identity(), tag.id, tag.revision, change.created,
    cdb_version(tag.revision, tag.updated, tag.xmin),
    change.revision || '-' || to_hex((extract(epoch FROM change.created) * 1000000)::bigint),
    tag_status.name, tag.last_modified, pg_snapshot_xmin(pg_current_snapshot())::text::bigint
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
LEFT JOIN "GlobalTagChange" AS change ON change.global_tag = tag.name AND change.revision = tag.revision AND change.has_history
WHERE tag.name = %(tag)s
