\set major random(0, 2147483647)
\set minor random(0, 2147483647)
SELECT payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end, iov.extra
FROM "PayloadList" AS list
JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id AND tag.name = '{tag}'
JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM study."PayloadIOV"
    WHERE payload_list_id = list.id
        AND comb_iov <= CAST(:major + CAST(:minor AS numeric(19, 0)) / 10e18 AS numeric(38, 19))
    ORDER BY comb_iov DESC NULLS LAST
    LIMIT 1
) AS iov ON true
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id;
