-- Store areas of present payload IOVs in the history, before they change. An area that began with this change is left out.
-- Parameters: ids bigint[]: the IOVs; sinces, untils numeric[]: the areas as combined moments; since null: the whole row, which is
--   stored with its columns; until null: to the end of time; versions integer[]: those of the lists after the change.
-- Placeholders for the payload columns: {payload} and {iov.payload_if_whole}.
INSERT INTO "PayloadIOVHistory" (
    payload_list_id, node, comb_iov, until, added_in, removed_in, row_start, iov_id, major_iov, minor_iov, major_iov_end,
    minor_iov_end, created, {payload}
)
SELECT iov.payload_list_id, cdb_fork_node(iov.added_in, area.version), coalesce(area.since, iov.comb_iov), area.until,
    iov.added_in, area.version, CASE WHEN area.since IS NOT NULL THEN iov.comb_iov END,
    CASE WHEN area.since IS NULL THEN iov.id END, CASE WHEN area.since IS NULL THEN iov.major_iov END,
    CASE WHEN area.since IS NULL THEN iov.minor_iov END, CASE WHEN area.since IS NULL THEN iov.major_iov_end END,
    CASE WHEN area.since IS NULL THEN iov.minor_iov_end END, CASE WHEN area.since IS NULL THEN iov.created END,
    {iov.payload_if_whole}
FROM unnest(%(ids)s::bigint[], %(sinces)s::numeric[], %(untils)s::numeric[], %(versions)s::integer[])
    AS area (id, since, until, version)
JOIN "PayloadIOV" AS iov ON iov.id = area.id
WHERE iov.added_in < area.version
