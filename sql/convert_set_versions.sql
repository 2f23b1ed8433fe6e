-- Give the payload IOVs that were in a list after the newest logged change the versions in which they came; and move the rows of
-- cdb_later_history, which are areas of these IOVs and of later ones, back to the history.
-- Parameters: list_id bigint; above, by integer: as in convert_shift_versions.sql; starts numeric[], added_ins integer[]: the versions
--   that differ from `above`. Placeholder: {payload}.
UPDATE "PayloadIOV" AS iov SET added_in = since.added_in
FROM unnest(%(starts)s::numeric[], %(added_ins)s::integer[]) AS since (start, added_in)
WHERE iov.payload_list_id = %(list_id)s AND iov.comb_iov = since.start AND iov.added_in = %(above)s;
WITH later AS (DELETE FROM cdb_later_history RETURNING *)
INSERT INTO "PayloadIOVHistory" (
    payload_list_id, node, comb_iov, until, added_in, removed_in, row_start, iov_id, major_iov, minor_iov, major_iov_end,
    minor_iov_end, created, {payload}
)
SELECT later.payload_list_id, cdb_fork_node(version.added_in, version.removed_in), later.comb_iov, later.until,
    version.added_in, version.removed_in, later.row_start, later.iov_id, later.major_iov, later.minor_iov,
    later.major_iov_end, later.minor_iov_end, later.created, {payload}
FROM later
LEFT JOIN unnest(%(starts)s::numeric[], %(added_ins)s::integer[]) AS since (start, added_in)
    ON since.start = coalesce(later.row_start, later.comb_iov) AND later.added_in = %(above)s
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN later.added_in > %(above)s THEN later.added_in + %(by)s
        ELSE coalesce(since.added_in, later.added_in)
    END AS added_in, later.removed_in + %(by)s AS removed_in
) AS version
