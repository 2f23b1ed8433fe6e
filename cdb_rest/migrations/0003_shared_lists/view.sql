-- The rows of every payload list, also of those that share the rows of another list, with the columns of nopayloaddb.
CREATE VIEW "ListedPayloadIOV" AS
SELECT iov.id, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    iov.comb_iov, iov.extra, list.id AS payload_list_id, iov.created, iov.updated
FROM "PayloadList" AS list
JOIN "PayloadIOV" AS iov ON iov.payload_list_id = list.rows_list_id AND iov.added_in <= list.rows_version
UNION ALL
SELECT area.iov_id, area.payload_url, area.checksum, area.size, area.major_iov, area.minor_iov, area.major_iov_end,
    area.minor_iov_end, area.comb_iov, area.extra, list.id, area.created, area.created
FROM "PayloadList" AS list
JOIN "PayloadIOVHistory" AS area ON area.payload_list_id = list.base_list_id AND area.row_start IS NULL
    AND area.added_in <= list.base_version AND area.removed_in > list.base_version;
