-- Of the next areas of the past of a payload list, delete those that no revision with history needs. Returns the key of the last area
-- that was considered, with the numbers of considered and of deleted areas; no row at the end of the list.
-- Parameters: list_id bigint; versions int4multirange: the needed versions; last_version integer: areas that reach beyond this
--   version stay; node integer, comb_iov numeric: the key after which to begin; batch integer: how many areas to consider.
WITH considered AS MATERIALIZED (
    SELECT node, comb_iov, removed_in <= %(last_version)s
        AND NOT %(versions)s::int4multirange && int4range(added_in, removed_in) AS is_unneeded
    FROM "PayloadIOVHistory"
    WHERE payload_list_id = %(list_id)s AND (node, comb_iov) > (%(node)s, %(comb_iov)s)
    ORDER BY node, comb_iov
    LIMIT %(batch)s
),
deleted AS (
    DELETE FROM "PayloadIOVHistory" AS area
    USING considered
    WHERE considered.is_unneeded AND area.payload_list_id = %(list_id)s AND area.node = considered.node
        AND area.comb_iov = considered.comb_iov
    RETURNING 1
)
SELECT node, comb_iov, (SELECT count(*) FROM considered), (SELECT count(*) FROM deleted)
FROM considered
ORDER BY node DESC, comb_iov DESC
LIMIT 1
