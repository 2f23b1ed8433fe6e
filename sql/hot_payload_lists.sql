-- The names of a tag's payload lists by payload type as a JSON object, with the validators of the tag as in hot_global_tag.sql.
-- Parameters: name text; known text[].
SELECT cdb_version(tag.revision, tag.updated, tag.xmin), tag_status.name,
    CASE WHEN tag.last_modified <= now() THEN tag.last_modified END,
    CASE WHEN cdb_version(tag.revision, tag.updated, tag.xmin) <> ALL (%(known)s) THEN (
        SELECT '{' || coalesce(string_agg(
            to_json(payload_type.name)::text || ':' || to_json(list.name)::text, ',' ORDER BY payload_type.name COLLATE "C"
        ), '') || '}'
        FROM "PayloadList" AS list
        JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
        WHERE list.global_tag_id = tag.id
    ) END
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
WHERE tag.name = %(name)s
