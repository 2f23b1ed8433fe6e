-- The intervals in which two global tags have different payloads, by payload type in the order of the parameters, then by start:
-- payload_type, since and until (combined moments, until exclusive), a and b: {key, payload_url, checksum, size, revision} in each tag;
-- the key is null if the tag has no valid payload. The intervals are maximal: neighbours with the same keys are merged.
-- Parameters: by_checksum boolean: the key is the checksum, if there is one, instead of the URL; each_pair boolean: false merges
--   neighbours also if their payloads differ; and those of validity_parts.sql. Placeholders: {lists}: the payload types with their
--   lists; {a_parts}, {b_parts}: validity_parts.sql or overlaid_parts.sql of the lists of each tag.
-- Parts that both tags have are left out first (HAVING), so that only the others are merged.
-- Expected plan: for each payload type two of the scans of validity_parts.sql, one after the other; nothing is sorted across types.
SELECT list.payload_type, span.since, span.until, span.a, span.b
FROM {lists}
CROSS JOIN LATERAL (
    SELECT since, lead(since) OVER (ORDER BY since) AS until, a, b, differs
    FROM (
        SELECT step.*, differs IS DISTINCT FROM lag(differs) OVER (ORDER BY since)
            OR %(each_pair)s AND (a[1], b[1]) IS DISTINCT FROM lag((a[1], b[1])) OVER (ORDER BY since) AS is_edge
        FROM (
            SELECT since, a, b, a[1] IS DISTINCT FROM b[1] AS differs
            FROM (
                SELECT since, cdb_latest(payload) FILTER (WHERE side = 'a') OVER until_now AS a,
                    cdb_latest(payload) FILTER (WHERE side = 'b') OVER until_now AS b
                FROM (
                    SELECT side, edge.since, edge.payload
                    FROM (
                        SELECT min(side) AS side, since, until, lead(since) OVER (PARTITION BY min(side) ORDER BY since) AS following,
                            array_prepend(key, min(payload)) AS payload
                        FROM (
                            SELECT 'a' AS side, since, until,
                                CASE WHEN %(by_checksum)s AND checksum <> '' THEN checksum ELSE payload_url END AS key,
                                ARRAY[payload_url, checksum, size::text, extra] AS payload
                            FROM (
                                {a_parts}
                            ) AS a_part
                            UNION ALL
                            SELECT 'b', since, until,
                                CASE WHEN %(by_checksum)s AND checksum <> '' THEN checksum ELSE payload_url END,
                                ARRAY[payload_url, checksum, size::text, extra]
                            FROM (
                                {b_parts}
                            ) AS b_part
                        ) AS part
                        GROUP BY since, until, key
                        HAVING count(*) = 1
                    ) AS single
                    CROSS JOIN LATERAL (
                        SELECT single.since, single.payload
                        UNION ALL
                        SELECT single.until, ARRAY[NULL::text] WHERE single.following IS DISTINCT FROM single.until
                    ) AS edge
                ) AS event
                WINDOW until_now AS (ORDER BY since)
            ) AS state
        ) AS step
    ) AS marked
    WHERE is_edge
) AS span
WHERE span.differs
