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
