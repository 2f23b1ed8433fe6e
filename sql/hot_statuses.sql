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
