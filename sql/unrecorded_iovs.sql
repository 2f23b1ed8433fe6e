-- Payload IOVs of existing payload lists that the service did not add: their version is later than that of the list, or they were
-- created after their version was recorded. Returns list and IOV.
-- Parameters: list_ids bigint[].
-- A version without an entry in the change log, which the list has from a time in which it was in no tag, was recorded before the
-- next one that has an entry. So was a version that was pruned.
WITH list_version AS (
    SELECT list_version.payload_list_id, list_version.version,
        coalesce(lag(list_version.version) OVER (PARTITION BY list_version.payload_list_id ORDER BY list_version.number), -1)
            AS earlier,
        min(change.created) OVER (PARTITION BY list_version.payload_list_id ORDER BY list_version.number DESC) AS recorded
    FROM "PayloadListVersion" AS list_version
    LEFT JOIN (
        SELECT number, max(created) AS created FROM "GlobalTagChange" GROUP BY number
    ) AS change ON change.number = list_version.number
    WHERE list_version.payload_list_id = ANY(%(list_ids)s)
)
SELECT iov.payload_list_id, iov.id
FROM "PayloadIOV" AS iov
JOIN "PayloadList" AS list ON list.id = iov.payload_list_id
LEFT JOIN list_version ON list_version.payload_list_id = iov.payload_list_id AND list_version.earlier < iov.added_in
    AND list_version.version >= iov.added_in
WHERE iov.payload_list_id = ANY(%(list_ids)s) AND (iov.added_in > list.version OR iov.created > list_version.recorded)
ORDER BY iov.payload_list_id, iov.comb_iov
