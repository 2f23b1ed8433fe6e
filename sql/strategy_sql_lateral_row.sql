-- A strategy for comparison with the lookup: LATERAL, with the moment compared as a row of two columns.
-- Parameters: tag text: the global tag's name; major, minor bigint: the moment. Returns the nine columns of a result.
-- Expected plan: an Index Scan of payload_iov_strategy_moment for each list, with an Index Cond only, that stops at its first
--   row; the columns of the result are read from the table.
SELECT payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra
FROM "GlobalTag" AS tag
JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND (major_iov, minor_iov) <= (%(major)s, %(minor)s)
    ORDER BY major_iov DESC, minor_iov DESC
    LIMIT 1
) AS iov
WHERE tag.name = %(tag)s
ORDER BY payload_type.name COLLATE "C"
