-- The payload lists of a global tag that is compiled, in the order of a lookup's answer: id, payload type, number of IOVs, and the
-- transaction that wrote the list's row, null if it is older than the horizon.
-- Parameters: tag_id, horizon bigint.
SELECT list.id, payload_type.name, list.iov_count,
    CASE WHEN NOT cdb_is_older(list.xmin, %(horizon)s) THEN list.xmin::text::bigint END
FROM "PayloadList" AS list
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
WHERE list.global_tag_id = %(tag_id)s
ORDER BY payload_type.name COLLATE "C"
