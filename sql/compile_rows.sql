-- The rows of payload lists for a compiled tag that start after one moment and up to another: number of the list (from 0), start and
-- end of the IOV, and the row as a JSON array, as the function cdb_lookup writes it.
-- Parameters: list_ids bigint[], payload_types text[]: one element for each list; after, until numeric: the moments, combined.
-- Expected plan: for each list an Index Only Scan Backward of payload_iov_lookup with an Index Cond on list and start, without Sort.
--   The order is not needed, but it keeps PostgreSQL from reading the whole table for all lists together.
SELECT (list.number - 1)::integer, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    json_build_array(
        list.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov,
        iov.major_iov_end, iov.minor_iov_end, iov.extra
    )::text
FROM unnest(%(list_ids)s::bigint[], %(payload_types)s::text[]) WITH ORDINALITY AS list (id, payload_type, number)
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND comb_iov > %(after)s AND comb_iov <= %(until)s
    ORDER BY comb_iov ASC NULLS FIRST
) AS iov
