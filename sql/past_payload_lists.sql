-- The payload lists of a global tag after a change, by id: id, name, payload type, time of creation, version of then.
-- Parameters: tag_id, number bigint.
SELECT member.payload_list_id, member.name, member.payload_type, member.created, list_version.version
FROM "PayloadListMembership" AS member
CROSS JOIN LATERAL cdb_version_at(member.payload_list_id, %(number)s) AS list_version (version)
WHERE member.tag_id = %(tag_id)s AND member.added_in <= %(number)s
    AND (member.removed_in IS NULL OR member.removed_in > %(number)s)
ORDER BY member.payload_list_id
