-- Of each of many new rows the last IOV of its payload list that starts before it, and whether one starts after it: index of
-- the row from 0, that IOV's columns, boolean. Rows that nothing precedes are left out.
-- Parameters: list_ids bigint[], moments numeric[] (combined starts), one element for each row.
-- Expected plan: for each row two scans of payload_iov_lookup that stop at their first row.
SELECT wanted.position - 1, before.id, before.payload_url, before.major_iov, before.minor_iov,
    before.major_iov_end, before.minor_iov_end,
    EXISTS (
        SELECT FROM "PayloadIOV" AS later
        WHERE later.payload_list_id = wanted.list_id AND later.comb_iov > wanted.moment
    )
FROM unnest(%(list_ids)s::bigint[], %(moments)s::numeric[]) WITH ORDINALITY AS wanted (list_id, moment, position)
CROSS JOIN LATERAL (
    SELECT * FROM "PayloadIOV" AS earlier
    WHERE earlier.payload_list_id = wanted.list_id AND earlier.comb_iov < wanted.moment
    ORDER BY earlier.comb_iov DESC NULLS LAST
    LIMIT 1
) AS before
ORDER BY wanted.position
