-- The lookup: of each payload list of a global tag the IOV with the latest start at or before a moment, as JSON text.
-- Parameters: tag_id bigint; major, minor bigint: the moment; moment numeric: the same combined, major + minor / 10^19;
--   only_valid boolean: leave out IOVs that ended before the moment; inclusive boolean: whether ends are inclusive;
--   as_objects boolean: a JSON object for each row instead of an array.
-- Expected plan: for each list one Index Only Scan of payload_iov_lookup that stops at its first row, with an Index Cond
--   on list and moment and no Filter.
-- The function cdb_lookup, which a migration creates, has the same statement; there the parameters are variables.
SELECT '[' || coalesce(string_agg(
    CASE WHEN %(as_objects)s THEN
        json_build_object(
            'payload_type_name', payload_type.name, 'payload_url', iov.payload_url, 'checksum', iov.checksum,
            'size', iov.size, 'major_iov', iov.major_iov, 'minor_iov', iov.minor_iov,
            'major_iov_end', iov.major_iov_end, 'minor_iov_end', iov.minor_iov_end, 'revision', iov.extra
        )
    ELSE
        json_build_array(
            payload_type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov,
            iov.major_iov_end, iov.minor_iov_end, iov.extra
        )
    END::text,
    ',' ORDER BY payload_type.name COLLATE "C"
) FILTER (WHERE
    NOT %(only_valid)s
    OR (iov.major_iov_end, iov.minor_iov_end) > (%(major)s, %(minor)s)
    OR (%(inclusive)s AND (iov.major_iov_end, iov.minor_iov_end) = (%(major)s, %(minor)s))
    -- The largest pair means "open": nothing is after it, not even itself.
    OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807)
), '') || ']'
FROM "PayloadList" AS list
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL (
    SELECT payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra
    FROM "PayloadIOV"
    WHERE payload_list_id = list.id AND comb_iov <= %(moment)s
    ORDER BY comb_iov DESC NULLS LAST
    LIMIT 1
) AS iov
WHERE list.global_tag_id = %(tag_id)s
