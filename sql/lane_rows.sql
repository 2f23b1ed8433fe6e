-- Starts and ends of the rows of a payload list that may be valid in a window, by start, as four 64-bit integers each.
-- Parameters: list bigint, version integer: the list, and its version, null for the present; since, until numeric: the window.
-- Expected plan: as for validity_parts.sql, without window functions.
COPY (
SELECT major_iov, minor_iov, major_iov_end, minor_iov_end
FROM (
    (
        SELECT comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end
        FROM "PayloadIOV"
        WHERE payload_list_id = %(list)s AND (%(version)s IS NULL OR added_in <= %(version)s)
            AND comb_iov < %(until)s AND comb_iov >= coalesce((
                SELECT comb_iov
                FROM "PayloadIOV"
                WHERE payload_list_id = %(list)s AND (%(version)s IS NULL OR added_in <= %(version)s) AND comb_iov <= %(since)s
                ORDER BY comb_iov DESC NULLS LAST
                LIMIT 1
            ), %(since)s)
        ORDER BY comb_iov ASC NULLS FIRST
    )
    UNION ALL
    (
        SELECT comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end
        FROM "PayloadIOVHistory"
        WHERE %(version)s IS NOT NULL AND payload_list_id = %(list)s AND row_start IS NULL
            AND added_in <= %(version)s AND removed_in > %(version)s AND comb_iov < %(until)s
        ORDER BY comb_iov ASC NULLS FIRST
    )
    ORDER BY comb_iov ASC NULLS FIRST
) AS iov
) TO STDOUT WITH (FORMAT binary)
