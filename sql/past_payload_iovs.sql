-- The payload IOVs of payload lists in given versions, ordered by list and start, with their lists.
-- Parameters: list_ids bigint[], versions integer[]: one element for each list; first, last numeric: the combined moments at
--   which the IOVs may start. Placeholder: {iov.payload}.
-- Lists are read in order, so that no sort holds more than one list.
SELECT list.id AS payload_list_id, iov.id, iov.comb_iov, iov.major_iov, iov.minor_iov, iov.major_iov_end, iov.minor_iov_end,
    iov.created, {iov.payload}
FROM unnest(%(list_ids)s::bigint[], %(versions)s::integer[]) WITH ORDINALITY AS list (id, version, position)
CROSS JOIN LATERAL (
    (
        SELECT id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
        FROM "PayloadIOV"
        WHERE payload_list_id = list.id AND added_in <= list.version AND comb_iov BETWEEN %(first)s AND %(last)s
        ORDER BY comb_iov ASC NULLS FIRST
    )
    UNION ALL
    (
        SELECT iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
        FROM "PayloadIOVHistory"
        WHERE payload_list_id = list.id AND row_start IS NULL AND added_in <= list.version AND removed_in > list.version
            AND comb_iov BETWEEN %(first)s AND %(last)s
        ORDER BY comb_iov ASC NULLS FIRST
    )
    ORDER BY comb_iov ASC NULLS FIRST
) AS iov
