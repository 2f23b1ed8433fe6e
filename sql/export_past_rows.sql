-- The rows of an export of the past: those of export_rows.sql, for the payload lists and their versions after a change.
-- Parameters: tag_id, number bigint: tag and change; payload_type text (null: all); and the window of export_rows.sql.
-- The row that was valid at the first moment of the window is found as by the function cdb_lookup_at.
-- Lists are read in order. The present rows of a list have the order of the index; only the superseded ones are sorted.
-- Expected plan: for each list a Merge Append of an Index Only Scan Backward of payload_iov_lookup and a Sort.
SELECT list.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra AS revision
FROM (
    SELECT member.payload_list_id AS id, member.payload_type, list_version.number AS version, (
        SELECT CASE
            WHEN (latest.major_iov_end, latest.minor_iov_end) > (%(since_major)s, %(since_minor)s)
                OR (%(inclusive)s AND (latest.major_iov_end, latest.minor_iov_end) = (%(since_major)s, %(since_minor)s))
                OR (latest.major_iov_end, latest.minor_iov_end) = (9223372036854775807, 9223372036854775807)
            THEN latest.comb_iov
        END
        FROM (
            SELECT present.comb_iov, present.major_iov_end, present.minor_iov_end
            FROM (
                SELECT comb_iov, major_iov_end, minor_iov_end, added_in
                FROM "PayloadIOV"
                WHERE payload_list_id = member.payload_list_id AND comb_iov <= %(since)s
                ORDER BY comb_iov DESC NULLS LAST
                LIMIT 1
            ) AS present
            WHERE present.added_in <= list_version.number
            UNION ALL
            SELECT former.comb_iov, former.major_iov_end, former.minor_iov_end
            FROM cdb_history_entry(member.payload_list_id, list_version.number, %(since)s) AS area
            CROSS JOIN LATERAL (
                SELECT area.comb_iov, area.major_iov_end, area.minor_iov_end WHERE area.row_start IS NULL
                UNION ALL
                SELECT comb_iov, major_iov_end, minor_iov_end
                FROM "PayloadIOV"
                WHERE payload_list_id = member.payload_list_id AND comb_iov = area.row_start
                    AND added_in <= list_version.number
                UNION ALL
                SELECT superseded.comb_iov, superseded.major_iov_end, superseded.minor_iov_end
                FROM cdb_history_entry(member.payload_list_id, list_version.number, area.row_start) AS superseded
                LIMIT 1
            ) AS former
            LIMIT 1
        ) AS latest
    ) AS valid_at_since
    FROM "PayloadListMembership" AS member
    CROSS JOIN LATERAL cdb_version_at(member.payload_list_id, %(number)s) AS list_version (number)
    WHERE member.tag_id = %(tag_id)s AND member.added_in <= %(number)s
        AND (member.removed_in IS NULL OR member.removed_in > %(number)s)
        AND (%(payload_type)s::text IS NULL OR member.payload_type = %(payload_type)s)
    ORDER BY member.payload_type COLLATE "C"
) AS list
CROSS JOIN LATERAL (
    (
        SELECT comb_iov, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
        FROM "PayloadIOV"
        WHERE payload_list_id = list.id AND added_in <= list.version
            AND comb_iov >= coalesce(list.valid_at_since, %(since)s) AND comb_iov < %(until)s
        ORDER BY comb_iov ASC NULLS FIRST
    )
    UNION ALL
    (
        SELECT comb_iov, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
        FROM "PayloadIOVHistory"
        WHERE payload_list_id = list.id AND row_start IS NULL AND added_in <= list.version AND removed_in > list.version
            AND comb_iov >= coalesce(list.valid_at_since, %(since)s) AND comb_iov < %(until)s
        ORDER BY comb_iov ASC NULLS FIRST
    )
    ORDER BY comb_iov ASC NULLS FIRST
) AS iov
