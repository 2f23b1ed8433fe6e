-- The versions of payload lists that revisions with history need: list, the versions as a multirange of integers, the numbers of the
-- rows of PayloadListVersion that have them as a multirange, and what other sessions cannot need later: versions below
-- last_version, and numbers below last_number.
-- Parameters: list_ids bigint[].
-- It is a single statement, so it sees one snapshot. A revision that is recorded later has at least the version that a list
-- has in this snapshot, because the changes of a tag and of its lists are committed in the order of their numbers.
WITH resolved AS (
    SELECT DISTINCT member.payload_list_id, list_version.number, coalesce(list_version.version, 0) AS version
    FROM "PayloadListMembership" AS member
    JOIN "GlobalTagChange" AS change ON change.tag_id = member.tag_id AND change.number >= member.added_in
        AND (member.removed_in IS NULL OR change.number < member.removed_in)
    LEFT JOIN LATERAL (
        SELECT earlier.number, earlier.version
        FROM "PayloadListVersion" AS earlier
        WHERE earlier.payload_list_id = member.payload_list_id AND earlier.number <= change.number
        ORDER BY earlier.number DESC
        LIMIT 1
    ) AS list_version ON true
    WHERE member.payload_list_id = ANY(%(list_ids)s) AND change.has_history AND change.action <> 'delete'
),
needed AS (
    SELECT payload_list_id, range_agg(int4range(version, version + 1)) AS versions,
        range_agg(int8range(number, number + 1)) FILTER (WHERE number IS NOT NULL) AS numbers
    FROM resolved
    GROUP BY payload_list_id
)
SELECT wanted.id, coalesce(needed.versions, '{}')::text, coalesce(needed.numbers, '{}')::text,
    CASE WHEN list.id IS NULL THEN 2147483647 ELSE list.version END AS last_version,
    CASE WHEN list.id IS NULL THEN 9223372036854775807 ELSE coalesce((
        SELECT max(number) FROM "PayloadListVersion" AS list_version WHERE list_version.payload_list_id = list.id
    ), 0) END AS last_number
FROM unnest(%(list_ids)s::bigint[]) AS wanted (id)
LEFT JOIN needed ON needed.payload_list_id = wanted.id
LEFT JOIN "PayloadList" AS list ON list.id = wanted.id
ORDER BY wanted.id
