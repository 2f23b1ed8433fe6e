-- For each payload type: the start of the first part of the window that a payload list covers, the end of the last one, the sums of
-- the lengths of all parts and of their whole numbers (until minus since), and the starts and the ends of the gaps between them; all as
-- combined moments, the ends exclusive. Nulls, and no gaps, if no part is covered.
-- Parameters: payload_types text[], lists bigint[], versions integer[]: one element for each payload type, in this order, null for
--   the present; and those of validity_parts.sql, whose text replaces {parts}.
-- Expected plan: for each payload type the scans of validity_parts.sql, without a sort.
SELECT list.payload_type, found.*
FROM unnest(%(payload_types)s::text[], %(lists)s::bigint[], %(versions)s::integer[]) AS list (payload_type, id, version)
CROSS JOIN LATERAL (
    SELECT min(since) AS first_since, max(until) AS last_until, sum(until - since) AS length,
        sum(trunc(until) - trunc(since)) AS whole, array_agg(until) FILTER (WHERE until < following) AS gaps_since,
        array_agg(following) FILTER (WHERE until < following) AS gaps_until
    FROM (
        SELECT since, until, lead(since) OVER (ORDER BY since) AS following
        FROM (
            {parts}
        ) AS part
    ) AS parts
) AS found
