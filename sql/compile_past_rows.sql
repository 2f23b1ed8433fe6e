-- The rows of compile_rows.sql for payload lists in given versions.
-- Parameters: list_ids bigint[], payload_types text[], versions integer[]: one element for each list; after, until numeric.
SELECT (list.number - 1)::integer, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    json_build_array(
        list.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov,
        iov.major_iov_end, iov.minor_iov_end, iov.extra
    )::text
FROM unnest(%(list_ids)s::bigint[], %(payload_types)s::text[], %(versions)s::integer[])
    WITH ORDINALITY AS list (id, payload_type, version, number)
CROSS JOIN LATERAL (
    (
        SELECT comb_iov, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
        FROM "PayloadIOV"
        WHERE payload_list_id = list.id AND comb_iov > %(after)s AND comb_iov <= %(until)s AND added_in <= list.version
        ORDER BY comb_iov ASC NULLS FIRST
    )
    UNION ALL
    (
        SELECT comb_iov, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
        FROM "PayloadIOVHistory"
        WHERE payload_list_id = list.id AND comb_iov > %(after)s AND comb_iov <= %(until)s AND row_start IS NULL
            AND added_in <= list.version AND removed_in > list.version
        ORDER BY comb_iov ASC NULLS FIRST
    )
) AS iov
