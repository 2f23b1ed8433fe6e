-- The intervals in which two global tags have different payloads, by payload type in the order of the parameters, then by start:
-- payload_type, since and until (combined moments, until exclusive), a and b: {key, payload_url, checksum, size, revision} in each tag;
-- the key is null if the tag has no valid payload. The intervals are maximal: neighbours with the same keys are merged.
-- Parameters: by_checksum boolean: the key is the checksum, if there is one, instead of the URL; each_pair boolean: false merges
--   neighbours also if their payloads differ; and those of validity_parts.sql. Placeholders: {lists}: the payload types with their
--   lists; {a_parts}, {b_parts}: validity_parts.sql or overlaid_parts.sql of the lists of each tag.
-- Parts that both tags have are left out first, so that only the others are merged.
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
                        SELECT part.side, part.since, part.until,
                            lead(part.since) OVER (PARTITION BY part.side ORDER BY part.since) AS following,
                            ARRAY[part.key, part.payload_url, part.checksum, part.size::text, part.extra] AS payload
                        FROM (
                            SELECT *, CASE WHEN %(by_checksum)s AND checksum <> '' THEN checksum ELSE payload_url END AS key
                            FROM (
                                {a_parts}
                            ) AS part
                        ) AS a_part
                        FULL JOIN (
                            SELECT *, CASE WHEN %(by_checksum)s AND checksum <> '' THEN checksum ELSE payload_url END AS key
                            FROM (
                                {b_parts}
                            ) AS part
                        ) AS b_part ON b_part.since = a_part.since
                        CROSS JOIN LATERAL (
                            VALUES
                            ('a', a_part.since, a_part.until, a_part.key, a_part.payload_url, a_part.checksum, a_part.size, a_part.extra),
                            ('b', b_part.since, b_part.until, b_part.key, b_part.payload_url, b_part.checksum, b_part.size, b_part.extra)
                        ) AS part (side, since, until, key, payload_url, checksum, size, extra)
                        WHERE part.since IS NOT NULL
                            AND (a_part.until IS DISTINCT FROM b_part.until OR a_part.key IS DISTINCT FROM b_part.key)
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
