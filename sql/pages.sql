-- The web pages: timelines and previews.


-- name: lane_rows
-- Starts and ends of the rows of a payload list that may be valid in a window, by start, as four 64-bit integers each.
-- Parameters: list bigint, version integer: where the rows of the list are; and those of `window_rows`, whose text replaces {rows}.
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
-- Parameters: lists bigint[], versions integer[]: where the rows of the lists are; since, until numeric: the window; inclusive boolean:
--   whether ends are inclusive.
-- Expected plan: for each list Index Only Scans of payload_iov_lookup that stop at the first row.
-- The smallest difference of two moments is 10^-19, so that the window's bounds become the moments before them.
SELECT min(first.start) FILTER (WHERE first.start < %(until)s), max(last.comb_iov), max(last.finish) FILTER (WHERE last.finish < %(until)s)
FROM unnest(%(lists)s::bigint[], %(versions)s::integer[]) AS list (id, version)
CROSS JOIN LATERAL cdb_next_start(list.id, list.version, %(since)s - 0.0000000000000000001) AS first
LEFT JOIN LATERAL (
    SELECT found.comb_iov, cdb_end(found.major_iov_end, found.minor_iov_end, %(inclusive)s) AS finish
    FROM cdb_iov_at(list.id, list.version, %(until)s - 0.0000000000000000001) AS found
) AS last ON true


-- name: next_starts
-- For each of some moments the next start in a payload list after it, as a combined moment, or null.
-- Parameters: lists bigint[], versions integer[], moments numeric[]: for each moment, where the rows of the payload list are, and the
--   combined moment.
-- Expected plan: for each moment an Index Only Scan of payload_iov_lookup that stops at the first row.
SELECT next.start
FROM unnest(%(lists)s::bigint[], %(versions)s::integer[], %(moments)s::numeric[])
    WITH ORDINALITY AS given (list_id, version, moment, place)
CROSS JOIN LATERAL cdb_next_start(given.list_id, given.version, given.moment) AS next
ORDER BY given.place
