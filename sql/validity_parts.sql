-- The parts of a window in which a payload list has a valid row, in the order of their starts, with the payload. since and until are
-- combined moments, until exclusive.
-- Parameters: since, until numeric: the window; inclusive boolean: whether ends are inclusive. Placeholders: {list}, {version}: the
--   id of the list, and its version, null for the present.
-- A row is valid from its start up to its end, but not beyond the next start in the list, also if the row there is empty.
-- Expected plan: a Merge Append of an Index Only Scan Backward of payload_iov_lookup and, for a version, of a Sort of its history.
SELECT since, until, payload_url, checksum, size, extra
FROM (
    SELECT greatest(iov.comb_iov, %(since)s) AS since,
        least(
            cdb_end(iov.major_iov_end, iov.minor_iov_end, %(inclusive)s),
            lead(iov.comb_iov) OVER (ORDER BY iov.comb_iov ASC NULLS FIRST),
            %(until)s
        ) AS until,
        payload_url, checksum, size, extra
    FROM (
        (
            SELECT comb_iov, major_iov_end, minor_iov_end, payload_url, checksum, size, extra
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
            SELECT comb_iov, major_iov_end, minor_iov_end, payload_url, checksum, size, extra
            FROM "PayloadIOVHistory"
            WHERE {version} IS NOT NULL AND payload_list_id = {list} AND row_start IS NULL
                AND added_in <= {version} AND removed_in > {version} AND comb_iov < %(until)s
            ORDER BY comb_iov ASC NULLS FIRST
        )
        ORDER BY comb_iov ASC NULLS FIRST
    ) AS iov
) AS part
WHERE since < until
