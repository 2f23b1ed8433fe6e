-- The parts of a window in which a payload is valid in the first of two or more payload lists that have a valid row, in the order of
-- their starts: the columns of validity_parts.sql. Neighbours may have the same payload.
-- Placeholders: {upper}: validity_parts.sql of the first list; {lower}: the parts of the others.
-- Each start of a part, and each end that no part follows at once, is an edge. Between edges nothing changes.
SELECT since, until, payload[1] AS payload_url, payload[2] AS checksum, payload[3]::bigint AS size, payload[4] AS extra
FROM (
    SELECT since, lead(since) OVER (ORDER BY since) AS until,
        CASE WHEN upper_payload[1] IS NULL THEN lower_payload ELSE upper_payload END AS payload
    FROM (
        SELECT since, cdb_latest(payload) FILTER (WHERE is_upper) OVER until_now AS upper_payload,
            cdb_latest(payload) FILTER (WHERE NOT is_upper) OVER until_now AS lower_payload
        FROM (
            SELECT is_upper, edge.since, edge.payload
            FROM (
                SELECT is_upper, since, until, lead(since) OVER (PARTITION BY is_upper ORDER BY since) AS following, payload
                FROM (
                    SELECT true AS is_upper, since, until, ARRAY[payload_url, checksum, size::text, extra] AS payload
                    FROM (
                        {upper}
                    ) AS upper_part
                    UNION ALL
                    SELECT false, since, until, ARRAY[payload_url, checksum, size::text, extra]
                    FROM (
                        {lower}
                    ) AS lower_part
                ) AS part
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
WHERE since < until AND payload[1] IS NOT NULL
