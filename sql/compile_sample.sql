-- A random sample of the rows of payload lists, by which they are read in parts: the start, and the number of bytes of the texts.
-- Parameters: list_ids bigint[]; share double precision: the part of the rows, from 0 to 1; with_history boolean: whether rows that
--   were superseded belong to it.
-- Expected plan: Index Only Scans, or a Seq Scan if the tag has most rows of the table.
SELECT iov.comb_iov, octet_length(iov.payload_url) + octet_length(iov.checksum) + coalesce(octet_length(iov.extra), 0)
FROM unnest(%(list_ids)s::bigint[]) AS list (id)
CROSS JOIN LATERAL (
    SELECT comb_iov, payload_url, checksum, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND random() < %(share)s
    UNION ALL
    SELECT comb_iov, payload_url, checksum, extra
    FROM "PayloadIOVHistory"
    WHERE %(with_history)s AND payload_list_id = list.id AND row_start IS NULL AND random() < %(share)s
) AS iov
