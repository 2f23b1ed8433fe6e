-- The web pages: timelines and previews.


-- name: lane_rows
-- Starts and ends of the rows of a payload list that may be valid in a window, by start, as four 64-bit integers each.
-- Parameters: list bigint, version integer: the list, and its version, null for the present; and those of `window_rows`, whose text
--   replaces {rows}.
-- Expected plan: that of `window_rows`.
COPY (
SELECT major_iov, minor_iov, major_iov_end, minor_iov_end
FROM (
    {rows}
) AS iov
) TO STDOUT WITH (FORMAT binary)


-- name: lane_extent
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


-- name: next_starts
-- For each of some moments the next start in a payload list after it, as a combined moment, or null.
-- Parameters: lists bigint[], moments numeric[]: the payload list and the combined moment of each.
-- Expected plan: for each moment an Index Only Scan of payload_iov_lookup that stops at the first row.
SELECT next.comb_iov
FROM unnest(%(lists)s::bigint[], %(moments)s::numeric[]) WITH ORDINALITY AS given (list_id, moment, place)
LEFT JOIN LATERAL (
    SELECT comb_iov
    FROM "PayloadIOV"
    WHERE payload_list_id = given.list_id AND comb_iov > given.moment
    ORDER BY comb_iov ASC NULLS FIRST
    LIMIT 1
) AS next ON true
ORDER BY given.place
