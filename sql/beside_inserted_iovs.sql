-- Of each of many attached IOVs the one before it and the one after it in its payload list, by start.
-- Parameters: iov_ids bigint[].
-- Expected plan: for each IOV two scans of payload_iov_lookup that stop at their first row.
SELECT iov.id, beside.id, beside.payload_url, beside.major_iov, beside.minor_iov, beside.major_iov_end, beside.minor_iov_end
FROM "PayloadIOV" AS iov
CROSS JOIN LATERAL (
    (
        SELECT * FROM "PayloadIOV" AS earlier
        WHERE earlier.payload_list_id = iov.payload_list_id AND earlier.comb_iov < iov.comb_iov
        ORDER BY earlier.comb_iov DESC NULLS LAST
        LIMIT 1
    )
    UNION ALL
    (
        SELECT * FROM "PayloadIOV" AS later
        WHERE later.payload_list_id = iov.payload_list_id AND later.comb_iov > iov.comb_iov
        ORDER BY later.comb_iov ASC NULLS FIRST
        LIMIT 1
    )
) AS beside
WHERE iov.id = ANY(%(iov_ids)s)
