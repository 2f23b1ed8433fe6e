-- A strategy for comparison with the lookup: LATERAL, with major and minor compared separately, joined with OR.
-- Parameters: tag text: the global tag's name; major, minor bigint: the moment. Returns the nine columns of a result.
-- Expected plan: an Index Scan of payload_iov_strategy_moment for each list. An OR cannot be an Index Cond, so the scan begins at
--   the list's latest row, and a Filter removes rows until the moment is reached.
SELECT payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra
FROM "GlobalTag" AS tag
JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND (major_iov < %(major)s OR (major_iov = %(major)s AND minor_iov <= %(minor)s))
    ORDER BY major_iov DESC, minor_iov DESC
    LIMIT 1
) AS iov
WHERE tag.name = %(tag)s
ORDER BY payload_type.name COLLATE "C"
