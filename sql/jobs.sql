-- What jobs ask before a lookup, with the state that it was made from.


-- name: hot_global_tags
-- All global tags as a JSON array, and the version of all tags and statuses together, for HTTP caches: one row. The text is null if
-- the version is a known one.
-- Parameters: known text[].
-- The version is a sum of hashes of row versions, because a counter would make the writers of different tags wait for each other.
WITH state AS MATERIALIZED (
    SELECT count(*) || '-' || coalesce(sum(hash_record_extended(ROW(tag.id, tag.xmin, tag.updated, tag_status.xmin), 0)), 0)
        AS version
    FROM "GlobalTag" AS tag
    JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
)
SELECT state.version, NULL, NULL, CASE WHEN state.version <> ALL (%(known)s) THEN (
    SELECT '[' || coalesce(string_agg(to_json(item)::text, ',' ORDER BY item.id), '') || ']'
    FROM (
        SELECT tag.id, tag.name, tag.author, tag_status.name AS status, tag.payload_lists_count, tag.payload_iov_count,
            to_char(tag.created AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created,
            to_char(tag.updated AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS updated,
            tag.revision
        FROM "GlobalTag" AS tag
        JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
    ) AS item
) END
FROM state


-- name: hot_global_tag
-- A global tag with its numbers of payload lists and IOVs, and its limits, as a JSON object, with its validators: version, name of the status, time
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
                tag.revision,
                CASE WHEN tag.closed_until IS NOT NULL THEN json_build_array(
                    trunc(tag.closed_until)::bigint, (mod(tag.closed_until, 1) * 10000000000000000000)::bigint
                ) END AS closed_until,
                tag.largest_major
        ) AS item
    ) END
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
WHERE tag.name = %(name)s


-- name: hot_payload_lists
-- The names of a tag's payload lists by payload type as a JSON object, with the validators of the tag as in `hot_global_tag`.
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


-- name: hot_payload_types
-- All rows of "PayloadType" as a JSON array, and a version of the table, for HTTP caches: one row. The text is null if the version is a
-- known one.
-- Parameters: known text[].
WITH state AS MATERIALIZED (
    SELECT count(*) || '-' || coalesce(sum(hash_record_extended(ROW(item.id, item.xmin, item.created), 0)), 0) AS version
    FROM "PayloadType" AS item
)
SELECT state.version, NULL, NULL, CASE WHEN state.version <> ALL (%(known)s) THEN (
    SELECT '[' || coalesce(string_agg(to_json(item)::text, ',' ORDER BY item.id), '') || ']'
    FROM (
        SELECT id, name, to_char(created AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created FROM "PayloadType"
    ) AS item
) END
FROM state


-- name: hot_statuses
-- All rows of "GlobalTagStatus" as a JSON array, and a version of the table, for HTTP caches: one row. The text is null if the version is a
-- known one.
-- Parameters: known text[].
WITH state AS MATERIALIZED (
    SELECT count(*) || '-' || coalesce(sum(hash_record_extended(ROW(item.id, item.xmin, item.created), 0)), 0) AS version
    FROM "GlobalTagStatus" AS item
)
SELECT state.version, NULL, NULL, CASE WHEN state.version <> ALL (%(known)s) THEN (
    SELECT '[' || coalesce(string_agg(to_json(item)::text, ',' ORDER BY item.id), '') || ']'
    FROM (
        SELECT id, name, to_char(created AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created FROM "GlobalTagStatus"
    ) AS item
) END
FROM state
