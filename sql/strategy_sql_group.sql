-- A strategy for comparison with the lookup: GROUP BY finds the latest start of each list, a join with the same table its row.
-- Parameters: tag text: the global tag's name; major, minor bigint: the moment. Returns the nine columns of a result.
-- Expected plan: the start of every entry at or before the moment is read, then one entry for each list.
SELECT payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.extra
FROM (
    SELECT list.id AS payload_list_id, list.payload_type_id, max(candidate.comb_iov) AS comb_iov
    FROM "GlobalTag" AS tag
    JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
    JOIN "PayloadIOV" AS candidate ON candidate.payload_list_id = list.id
    WHERE tag.name = %(tag)s AND candidate.comb_iov <= %(major)s + %(minor)s * 0.0000000000000000001
    GROUP BY list.id
) AS latest
JOIN "PayloadIOV" AS iov ON iov.payload_list_id = latest.payload_list_id AND iov.comb_iov = latest.comb_iov
JOIN "PayloadType" AS payload_type ON payload_type.id = latest.payload_type_id
ORDER BY payload_type.name COLLATE "C"
