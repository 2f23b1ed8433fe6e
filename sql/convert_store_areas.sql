-- Store areas of payload IOVs of cdb_logged_life in the history.
-- Parameters: list_id bigint; created timestamptz: for IOVs of which it is not known; ids bigint[]: in cdb_logged_life; sinces,
--   untils numeric[]; added_ins, removed_ins integer[]. Since null: the whole row. Placeholders: {payload} and
--   {iov.payload_if_whole}.
INSERT INTO "PayloadIOVHistory" (
    payload_list_id, node, comb_iov, until, added_in, removed_in, row_start, iov_id, major_iov, minor_iov, major_iov_end,
    minor_iov_end, created, {payload}
)
SELECT %(list_id)s, cdb_fork_node(area.added_in, area.removed_in), coalesce(area.since, iov.comb_iov), area.until,
    area.added_in, area.removed_in, CASE WHEN area.since IS NOT NULL THEN iov.comb_iov END,
    CASE WHEN area.since IS NULL THEN iov.iov_id END, CASE WHEN area.since IS NULL THEN iov.major_iov END,
    CASE WHEN area.since IS NULL THEN iov.minor_iov END, CASE WHEN area.since IS NULL THEN iov.major_iov_end END,
    CASE WHEN area.since IS NULL THEN iov.minor_iov_end END,
    CASE WHEN area.since IS NULL THEN coalesce(iov.created, %(created)s) END, {iov.payload_if_whole}
FROM unnest(
    %(ids)s::bigint[], %(sinces)s::numeric[], %(untils)s::numeric[], %(added_ins)s::integer[], %(removed_ins)s::integer[]
) AS area (id, since, until, added_in, removed_in)
JOIN cdb_logged_life AS iov ON iov.id = area.id
