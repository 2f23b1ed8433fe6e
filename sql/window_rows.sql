-- The rows of a payload list that may be valid in a window: those that start in it, and the last one that starts before it; by start.
-- For a version, also the superseded rows that start before the window.
-- Parameters: since, until numeric: the window. Placeholders: {list}, {version}: the id of the list, and its version, null for the
--   present; {columns}: the columns besides comb_iov.
-- Expected plan: a Merge Append of an Index Only Scan Backward of payload_iov_lookup and, for a version, of a Sort of its history.
(
    SELECT comb_iov, {columns}
    FROM "PayloadIOV"
    WHERE payload_list_id = {list} AND ({version} IS NULL OR added_in <= {version})
        AND comb_iov < %(until)s AND comb_iov >= coalesce((
            SELECT comb_iov
            FROM "PayloadIOV"
            WHERE payload_list_id = {list} AND ({version} IS NULL OR added_in <= {version}) AND comb_iov <= %(since)s
            ORDER BY comb_iov DESC NULLS LAST
            LIMIT 1
        ), %(since)s)
    ORDER BY comb_iov ASC NULLS FIRST
)
UNION ALL
(
    SELECT comb_iov, {columns}
    FROM "PayloadIOVHistory"
    WHERE {version} IS NOT NULL AND payload_list_id = {list} AND row_start IS NULL
        AND added_in <= {version} AND removed_in > {version} AND comb_iov < %(until)s
    ORDER BY comb_iov ASC NULLS FIRST
)
ORDER BY comb_iov ASC NULLS FIRST
