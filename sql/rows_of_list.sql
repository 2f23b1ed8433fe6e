-- The payload IOVs of a payload list as the change log has them: their number, and a JSON array as text.
-- Parameters: list_id bigint.
SELECT count(*), coalesce(json_agg(json_build_object(
    'id', iov.id, 'payload_list', list.name, 'payload_url', iov.payload_url, 'checksum', iov.checksum, 'size', iov.size,
    'major_iov', iov.major_iov, 'minor_iov', iov.minor_iov, 'major_iov_end', iov.major_iov_end,
    'minor_iov_end', iov.minor_iov_end, 'revision', iov.extra
) ORDER BY iov.comb_iov), '[]')::text
FROM "PayloadIOV" AS iov
JOIN "PayloadList" AS list ON list.id = iov.payload_list_id
WHERE list.id = %(list_id)s
