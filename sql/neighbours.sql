-- The IOVs in and around ranges of payload lists: those that start in a range, and the nearest one on either side of it.
-- Parameters: list_ids bigint[]; firsts, lasts numeric[]: combined moments, both inclusive; one element for each range.
-- Expected plan: for each range three scans of payload_iov_lookup, two of which stop at their first row.
SELECT DISTINCT ON (near.id) near.*
FROM unnest(%(list_ids)s::bigint[], %(firsts)s::numeric[], %(lasts)s::numeric[]) AS stretch (list_id, first, last)
CROSS JOIN LATERAL (
    (
        SELECT * FROM "PayloadIOV" AS earlier
        WHERE earlier.payload_list_id = stretch.list_id AND earlier.comb_iov < stretch.first
        ORDER BY earlier.comb_iov DESC NULLS LAST
        LIMIT 1
    )
    UNION ALL
    (
        SELECT * FROM "PayloadIOV" AS inside
        WHERE inside.payload_list_id = stretch.list_id AND inside.comb_iov BETWEEN stretch.first AND stretch.last
    )
    UNION ALL
    (
        SELECT * FROM "PayloadIOV" AS later
        WHERE later.payload_list_id = stretch.list_id AND later.comb_iov > stretch.last
        ORDER BY later.comb_iov ASC NULLS FIRST
        LIMIT 1
    )
) AS near
