-- The numbers of payload lists and of their payload IOVs of a global tag after a change.
-- Parameters: tag_id, number bigint.
-- The number of IOVs is stored with each version of a list. It is counted for version 0 if nothing is stored for that.
SELECT count(*), coalesce(sum(coalesce(
    (
        SELECT list_version.iov_count FROM "PayloadListVersion" AS list_version
        WHERE list_version.payload_list_id = member.payload_list_id AND list_version.number <= %(number)s
        ORDER BY list_version.number DESC
        LIMIT 1
    ),
    (
        SELECT count(*) FROM "PayloadIOV" AS iov
        WHERE iov.payload_list_id = member.payload_list_id AND iov.added_in = 0
    ) + (
        SELECT count(*) FROM "PayloadIOVHistory" AS history
        WHERE history.payload_list_id = member.payload_list_id AND history.row_start IS NULL AND history.added_in = 0
    )
)), 0)::bigint
FROM "PayloadListMembership" AS member
WHERE member.tag_id = %(tag_id)s AND member.added_in <= %(number)s
    AND (member.removed_in IS NULL OR member.removed_in > %(number)s)
