-- The uses of payloads: rows of payload lists, each with the global tag that has the list, and, if with_removed, those of the past with
-- the change of the tag by which the use ended. By payload URL in byte order, the present ones first, then by tag, payload type and start.
-- Parameters: payload_url, url_pattern, checksum text: exactly one is not null; with_removed boolean.
-- A use of the past is that of a row in one version of its list, while the tag had the list. It is left out if only the area of the row
-- changed after it (cdb_rest/models/history.py), because the use went on then.
-- Expected plan: Index Scans of payload_iov_url or payload_iov_checksum, and of payload_iov_history_url or payload_iov_history_checksum;
-- for each use of the past two scans of payload_list_version.
WITH iov AS (
    SELECT payload_list_id, added_in, NULL::integer AS removed_in, payload_url, checksum, size, extra, major_iov, minor_iov,
        major_iov_end, minor_iov_end
    FROM "PayloadIOV"
    WHERE payload_list_id IS NOT NULL
        AND (%(payload_url)s::text IS NULL OR payload_url = %(payload_url)s)
        AND (%(url_pattern)s::text IS NULL OR payload_url LIKE %(url_pattern)s)
        AND (%(checksum)s::text IS NULL OR checksum = %(checksum)s)
    UNION ALL
    SELECT area.payload_list_id, area.added_in, area.removed_in, area.payload_url, area.checksum, area.size, area.extra,
        area.major_iov, area.minor_iov, area.major_iov_end, area.minor_iov_end
    FROM "PayloadIOVHistory" AS area
    WHERE %(with_removed)s AND area.row_start IS NULL
        AND (%(payload_url)s::text IS NULL OR area.payload_url = %(payload_url)s)
        AND (%(url_pattern)s::text IS NULL OR area.payload_url LIKE %(url_pattern)s)
        AND (%(checksum)s::text IS NULL OR area.checksum = %(checksum)s)
        AND NOT EXISTS (
            SELECT FROM "PayloadIOV" AS same
            WHERE same.payload_list_id = area.payload_list_id AND same.comb_iov = area.comb_iov AND same.id = area.iov_id
                AND (same.major_iov_end, same.minor_iov_end) = (area.major_iov_end, area.minor_iov_end)
                AND same.added_in = area.removed_in
        )
        AND NOT EXISTS (
            SELECT FROM "PayloadIOVHistory" AS same
            WHERE same.payload_list_id = area.payload_list_id AND same.comb_iov = area.comb_iov AND same.iov_id = area.iov_id
                AND (same.major_iov_end, same.minor_iov_end) = (area.major_iov_end, area.minor_iov_end)
                AND same.added_in = area.removed_in
        )
)
SELECT coalesce(use.global_tag, change.global_tag) AS global_tag, use.payload_type, use.payload_list, use.payload_url, use.checksum, use.size, use.major_iov, use.minor_iov,
    use.major_iov_end, use.minor_iov_end, use.extra AS revision, change.revision AS removed_revision, change.created AS removed_time,
    change.actor AS removed_actor, change.action AS removed_action, change.comment AS removed_comment
FROM (
    SELECT tag.name AS global_tag, payload_type.name AS payload_type, list.name AS payload_list, iov.*, NULL::bigint AS tag_id,
        NULL::bigint AS ended
    FROM iov
    JOIN "PayloadList" AS list ON list.id = iov.payload_list_id
    JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
    LEFT JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
    WHERE iov.removed_in IS NULL
    UNION ALL
    SELECT NULL, member.payload_type, member.name, iov.*, member.tag_id, least(member.removed_in, removal.number)
    FROM iov
    JOIN "PayloadListMembership" AS member ON member.payload_list_id = iov.payload_list_id
    LEFT JOIN LATERAL (
        SELECT max(number) AS number FROM "PayloadListVersion"
        WHERE payload_list_id = iov.payload_list_id AND version = iov.added_in
    ) AS addition ON true
    LEFT JOIN LATERAL (
        SELECT max(number) AS number FROM "PayloadListVersion"
        WHERE payload_list_id = iov.payload_list_id AND version = iov.removed_in
    ) AS removal ON true
    WHERE %(with_removed)s AND (iov.removed_in IS NOT NULL OR member.removed_in IS NOT NULL)
        AND coalesce(addition.number < member.removed_in, true)
        AND coalesce(removal.number > member.added_in, true)
) AS use
LEFT JOIN "GlobalTagChange" AS change ON change.tag_id = use.tag_id AND change.number = use.ended
WHERE use.tag_id IS NULL OR change.id IS NOT NULL
ORDER BY use.payload_url COLLATE "C", change.number IS NOT NULL, coalesce(use.global_tag, change.global_tag) COLLATE "C",
    use.payload_type COLLATE "C", use.major_iov, use.minor_iov, change.number
