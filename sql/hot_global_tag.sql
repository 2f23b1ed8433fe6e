-- A global tag with its numbers of payload lists and IOVs as a JSON object, with its validators: version, name of the status, time
-- for Last-Modified. The text is null if the version is a known one. No row if the tag does not exist.
-- Parameters: name text; known text[].
SELECT cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
    CASE WHEN tag.last_modified <= now() THEN tag.last_modified END,
    CASE WHEN cdb_version(tag.revision, tag.updated, tag.xmin) <> ALL (%(known)s) THEN (
        SELECT to_json(item)::text
        FROM (
            SELECT tag.id, tag.name, tag.author, tag_status.name AS status, tag.payload_lists_count, tag.payload_iov_count,
                to_char(tag.created AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created,
                to_char(tag.updated AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS updated,
                tag.revision
        ) AS item
    ) END
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
WHERE tag.name = %(name)s
