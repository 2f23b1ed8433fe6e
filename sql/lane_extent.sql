-- The earliest start of a row of payload lists in a window, the latest one, and the latest end before the window's end of the lists'
-- last rows, as combined moments; null if there is none. The last row of a list may start before the window, and end in it.
-- Parameters: lists bigint[], versions integer[]: the lists, and their versions, null for the present; since, until numeric: the window;
--   inclusive boolean: whether ends are inclusive.
-- Expected plan: for each list two Index Only Scans of payload_iov_lookup that stop at the first row.
SELECT min(first.comb_iov), max(last.comb_iov), max(last.finish) FILTER (WHERE last.finish < %(until)s)
FROM unnest(%(lists)s::bigint[], %(versions)s::integer[]) AS list (id, version)
LEFT JOIN LATERAL (
    (
        SELECT comb_iov
        FROM "PayloadIOV"
        WHERE payload_list_id = list.id AND (list.version IS NULL OR added_in <= list.version)
            AND comb_iov >= %(since)s AND comb_iov < %(until)s
        ORDER BY comb_iov ASC NULLS FIRST
        LIMIT 1
    )
    UNION ALL
    (
        SELECT comb_iov
        FROM "PayloadIOVHistory"
        WHERE list.version IS NOT NULL AND payload_list_id = list.id AND row_start IS NULL
            AND added_in <= list.version AND removed_in > list.version AND comb_iov >= %(since)s AND comb_iov < %(until)s
        ORDER BY comb_iov ASC NULLS FIRST
        LIMIT 1
    )
) AS first ON true
LEFT JOIN LATERAL (
    (
        SELECT comb_iov, cdb_end(major_iov_end, minor_iov_end, %(inclusive)s) AS finish
        FROM "PayloadIOV"
        WHERE payload_list_id = list.id AND (list.version IS NULL OR added_in <= list.version)
            AND comb_iov < %(until)s
        ORDER BY comb_iov DESC NULLS LAST
        LIMIT 1
    )
    UNION ALL
    (
        SELECT comb_iov, cdb_end(major_iov_end, minor_iov_end, %(inclusive)s)
        FROM "PayloadIOVHistory"
        WHERE list.version IS NOT NULL AND payload_list_id = list.id AND row_start IS NULL
            AND added_in <= list.version AND removed_in > list.version AND comb_iov < %(until)s
        ORDER BY comb_iov DESC NULLS LAST
        LIMIT 1
    )
) AS last ON true
