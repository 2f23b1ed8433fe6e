-- A strategy for comparison with the lookup: LATERAL, like the service's own, but with a backward scan of an ascending index.
-- Parameters: tag text: the global tag's name; major, minor bigint: the moment. Returns the nine columns of a result.
-- Expected plan: an Index Only Scan Backward of payload_iov_strategy_ascending for each list, with an Index Cond only.
-- Without NULLS LAST, DESC means NULLS FIRST, which matches a backward scan of this index, but not the lookup's index.
SELECT payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra
FROM "GlobalTag" AS tag
JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND comb_iov <= %(major)s + %(minor)s * 0.0000000000000000001
    ORDER BY comb_iov DESC
    LIMIT 1
) AS iov
WHERE tag.name = %(tag)s
ORDER BY payload_type.name COLLATE "C"
