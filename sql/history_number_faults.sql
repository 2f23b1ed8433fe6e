-- Payload lists whose rows belong to versions that the list does not have yet, or whose recorded versions are not in order: kind, tag,
-- list, description.
-- Parameters: list_ids bigint[].
-- Versions that no revision needs are pruned, so not every version of a row is recorded.
SELECT 'version', NULL::bigint, row.payload_list_id,
    format('%%s rows of later versions than that of the list, %%s, such as version %%s', count(*), list.version, max(row.version))
FROM (
    SELECT payload_list_id, added_in AS version FROM "PayloadIOV" WHERE payload_list_id = ANY(%(list_ids)s)
    UNION ALL
    SELECT payload_list_id, removed_in FROM "PayloadIOVHistory" WHERE payload_list_id = ANY(%(list_ids)s)
) AS row
JOIN "PayloadList" AS list ON list.id = row.payload_list_id
WHERE row.version > list.version
GROUP BY row.payload_list_id, list.version
UNION ALL
SELECT 'version', NULL, list.id,
    format('version %%s, but the last recorded one is %%s', list.version, coalesce(newest.version::text, 'none'))
FROM "PayloadList" AS list
LEFT JOIN LATERAL (
    SELECT list_version.version FROM "PayloadListVersion" AS list_version
    WHERE list_version.payload_list_id = list.id ORDER BY list_version.number DESC LIMIT 1
) AS newest ON true
WHERE list.id = ANY(%(list_ids)s) AND list.version <> coalesce(newest.version, 0)
UNION ALL
SELECT 'version', NULL, payload_list_id, format('version %%s is recorded after version %%s', min(version), max(earlier))
FROM (
    SELECT payload_list_id, version, lag(version) OVER (PARTITION BY payload_list_id ORDER BY number) AS earlier
    FROM "PayloadListVersion"
    WHERE payload_list_id = ANY(%(list_ids)s)
) AS list_version
WHERE version <= earlier
GROUP BY payload_list_id
ORDER BY 3, 4
