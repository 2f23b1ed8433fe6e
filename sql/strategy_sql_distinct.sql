-- A strategy for comparison with the lookup: DISTINCT ON keeps the first of each list's candidates, latest start first.
-- Parameters: tag text: the global tag's name; major, minor bigint: the moment. Returns the nine columns of a result.
-- Expected plan: every entry at or before the moment is read and sorted, for one row of each list.
SELECT name, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
FROM (
    SELECT DISTINCT ON (iov.payload_list_id) payload_type.name, iov.*
    FROM "GlobalTag" AS tag
    JOIN "PayloadList" AS list ON list.global_tag_id = tag.id
    JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
    JOIN "PayloadIOV" AS iov ON iov.payload_list_id = list.id
    WHERE tag.name = %(tag)s AND iov.comb_iov <= %(major)s + %(minor)s * 0.0000000000000000001
    ORDER BY iov.payload_list_id, iov.comb_iov DESC
) AS latest
ORDER BY name COLLATE "C"
