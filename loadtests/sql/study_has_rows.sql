-- Whether the study's table has as many rows, and the same range of ids of lists, as a tag. Parameter: tag text.
SELECT
    (SELECT (count(*), min(payload_list_id), max(payload_list_id)) FROM study."PayloadIOV")
    = (
        SELECT (count(*), min(list.id), max(list.id))
        FROM "PayloadIOV" AS iov
        JOIN "PayloadList" AS list ON list.id = iov.payload_list_id
        JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id
        WHERE tag.name = %(tag)s
    );
