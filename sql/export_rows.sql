-- The rows of an export: the IOVs of a global tag's payload lists, by payload type name in byte order, then by start.
-- Parameters: tag_id bigint; payload_type_id bigint (null: all); since, until numeric: the window as combined moments, until
--   exclusive; since_major, since_minor bigint: since in two parts; inclusive boolean: whether ends are inclusive.
-- Each list has the rows that start in the window and, before them, the row that is valid at its first moment.
-- There is no sort of the whole result: lists are read in order, and the rows of each list in the order of the index, so that
-- the first row is sent at once. This requires a nested loop in one process; export_settings.sql disables the alternatives.
-- Expected plan: for each list an Index Only Scan Backward of payload_iov_lookup without Filter and without Sort.
SELECT list.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra AS revision
FROM (
    SELECT list.id, payload_type.name AS payload_type, (
        SELECT CASE
            WHEN (major_iov_end, minor_iov_end) > (%(since_major)s, %(since_minor)s)
                OR (%(inclusive)s AND (major_iov_end, minor_iov_end) = (%(since_major)s, %(since_minor)s))
                OR (major_iov_end, minor_iov_end) = (9223372036854775807, 9223372036854775807)
            THEN comb_iov
        END
        FROM "PayloadIOV"
        WHERE payload_list_id = list.id AND comb_iov <= %(since)s
        ORDER BY comb_iov DESC NULLS LAST
        LIMIT 1
    ) AS valid_at_since
    FROM "PayloadList" AS list
    JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
    WHERE list.global_tag_id = %(tag_id)s
        AND (%(payload_type_id)s::bigint IS NULL OR list.payload_type_id = %(payload_type_id)s)
    ORDER BY payload_type.name COLLATE "C"
) AS list
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND comb_iov >= coalesce(list.valid_at_since, %(since)s) AND comb_iov < %(until)s
    ORDER BY comb_iov ASC NULLS FIRST
) AS iov
