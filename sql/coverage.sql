-- For each payload type: the start of the first part of the window that a payload list covers, the end of the last one, the sums of
-- the lengths of all parts and of their whole numbers (until minus since), and the starts and the ends of the gaps between them; all as
-- combined moments, the ends exclusive. Nulls, and no gaps, if no part is covered.
-- Parameters: those of validity_parts.sql. Placeholders: {lists}: the payload types with their lists; {parts}: validity_parts.sql or
--   overlaid_parts.sql of these lists.
-- Expected plan: for each payload type the scans of validity_parts.sql, and a Sort of the parts.
SELECT list.payload_type, found.*
FROM {lists}
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
