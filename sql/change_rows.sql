-- The payload IOVs that a change removed ('before') and added ('after'), in this order, then by list and start.
-- Parameters: sides text[]: the sides that are wanted; list_ids bigint[]; befores, afters integer[]: the version of each list before
--   and after the change, null if the list was not in the tag. Placeholders for the payload columns: {payload} and {iov.payload}.
-- An IOV that only superseded itself, because its area grew, is left out.
SELECT iov.side, list.id AS payload_list_id, iov.id, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    {iov.payload}
FROM unnest(%(sides)s::text[]) AS wanted (side)
CROSS JOIN unnest(%(list_ids)s::bigint[], %(befores)s::integer[], %(afters)s::integer[]) AS list (id, was, now)
CROSS JOIN LATERAL (
    SELECT wanted.side, history.iov_id AS id, history.comb_iov, history.major_iov, history.minor_iov, history.major_iov_end,
        history.minor_iov_end, {payload}
    FROM "PayloadIOVHistory" AS history
    WHERE wanted.side = 'before' AND history.payload_list_id = list.id AND history.row_start IS NULL
        AND history.added_in <= list.was AND history.removed_in > list.was
        AND (list.now IS NULL OR history.removed_in <= list.now)
        AND NOT EXISTS (
            SELECT FROM "PayloadIOV" AS same
            WHERE same.id = history.iov_id AND same.payload_list_id = list.id AND same.comb_iov = history.comb_iov
                AND (same.major_iov_end, same.minor_iov_end) = (history.major_iov_end, history.minor_iov_end)
                AND same.added_in <= list.now
        )
        AND NOT EXISTS (
            SELECT FROM "PayloadIOVHistory" AS same
            WHERE same.payload_list_id = list.id AND same.iov_id = history.iov_id AND same.comb_iov = history.comb_iov
                AND (same.major_iov_end, same.minor_iov_end) = (history.major_iov_end, history.minor_iov_end)
                AND same.added_in > list.was AND same.added_in <= list.now AND same.removed_in > list.now
        )
    UNION ALL
    SELECT wanted.side, id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, {payload}
    FROM "PayloadIOV"
    WHERE wanted.side = 'before' AND list.now IS NULL AND payload_list_id = list.id AND added_in <= list.was
    UNION ALL
    SELECT wanted.side, added.id, added.comb_iov, added.major_iov, added.minor_iov, added.major_iov_end, added.minor_iov_end,
        {payload}
    FROM (
        SELECT id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, {payload}
        FROM "PayloadIOV"
        WHERE payload_list_id = list.id AND added_in <= list.now AND (list.was IS NULL OR added_in > list.was)
        UNION ALL
        SELECT iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, {payload}
        FROM "PayloadIOVHistory"
        WHERE payload_list_id = list.id AND row_start IS NULL AND added_in <= list.now AND removed_in > list.now
            AND (list.was IS NULL OR added_in > list.was)
    ) AS added
    WHERE wanted.side = 'after' AND NOT EXISTS (
        SELECT FROM "PayloadIOVHistory" AS same
        WHERE same.payload_list_id = list.id AND same.iov_id = added.id AND same.comb_iov = added.comb_iov
            AND (same.major_iov_end, same.minor_iov_end) = (added.major_iov_end, added.minor_iov_end)
            AND same.added_in <= list.was AND same.removed_in > list.was AND same.removed_in <= list.now
    )
) AS iov
ORDER BY wanted.side DESC, list.id, iov.comb_iov
