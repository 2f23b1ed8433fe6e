-- Payload lists with versions whose rows differ from what was recorded, or whose areas do not cover the moments exactly once: kind,
-- tag, list, description.
-- Parameters: list_ids bigint[]; versions text[]: for each list, the versions that revisions with history need, as a multirange of
--   integers. The newest version of an existing list is checked, too. Rows of other versions may have been pruned.
-- It reads all rows of the lists once, and adds up what each version adds and removes. In a version without fault, the areas are
-- adjacent from the first start f to the end of time T, so their lengths add up to s = T - f, and until^2 - start^2 adds up to
-- T^2 - f^2 = s (2 T - s). An overlap makes the second sum greater, a gap changes it, too.
WITH list AS (
    SELECT wanted.id, wanted.versions::int4multirange AS versions, existing.id IS NOT NULL AS is_existing
    FROM unnest(%(list_ids)s::bigint[], %(versions)s::text[]) AS wanted (id, versions)
    LEFT JOIN "PayloadList" AS existing ON existing.id = wanted.id
),
area AS (
    SELECT payload_list_id, comb_iov, added_in, NULL::integer AS removed_in, true AS is_row, coalesce(
        lag(comb_iov) OVER (PARTITION BY payload_list_id ORDER BY comb_iov DESC NULLS LAST), 10000000000000000000
    ) AS until
    FROM "PayloadIOV"
    WHERE payload_list_id = ANY(%(list_ids)s)
    UNION ALL
    SELECT payload_list_id, comb_iov, added_in, removed_in, row_start IS NULL, coalesce(until, 10000000000000000000)
    FROM "PayloadIOVHistory"
    WHERE payload_list_id = ANY(%(list_ids)s)
),
step AS (
    SELECT area.payload_list_id, edge.version, NULL::bigint AS number, NULL::bigint AS iov_count,
        sum(edge.sign * area.is_row::integer) AS rows, sum(edge.sign * (area.until - area.comb_iov)) AS length,
        sum(edge.sign * (area.until * area.until - area.comb_iov * area.comb_iov)) AS squares
    FROM area
    CROSS JOIN LATERAL (VALUES (area.added_in, 1), (area.removed_in, -1)) AS edge (version, sign)
    WHERE edge.version IS NOT NULL
    GROUP BY area.payload_list_id, edge.version
    UNION ALL
    SELECT payload_list_id, version, number, iov_count, 0, 0, 0
    FROM "PayloadListVersion"
    WHERE payload_list_id = ANY(%(list_ids)s)
),
state AS (
    SELECT payload_list_id, version, number, iov_count, sum(rows) OVER earlier AS rows, sum(length) OVER earlier AS length,
        sum(squares) OVER earlier AS squares, max(number) OVER (PARTITION BY payload_list_id) AS last_number
    FROM step
    WINDOW earlier AS (PARTITION BY payload_list_id ORDER BY version)
),
checked AS (
    SELECT state.*, state.iov_count <> state.rows AS differs,
        state.squares <> state.length * (20000000000000000000 - state.length) AS is_not_covered
    FROM state
    JOIN list ON list.id = state.payload_list_id
    WHERE state.number IS NOT NULL
        AND (list.versions @> state.version OR list.is_existing AND state.number = state.last_number)
)
SELECT 'number of IOVs', NULL::bigint, payload_list_id, format(
    '%%s versions, such as version %%s: %%s recorded, %%s stored', count(*), max(version),
    (array_agg(iov_count ORDER BY version DESC))[1], (array_agg(rows ORDER BY version DESC))[1]
)
FROM checked
WHERE differs
GROUP BY payload_list_id
UNION ALL
SELECT 'areas', NULL, payload_list_id,
    format('%%s versions in which areas overlap or leave a gap, such as version %%s', count(*), max(version))
FROM checked
WHERE is_not_covered
GROUP BY payload_list_id
ORDER BY 3, 1
