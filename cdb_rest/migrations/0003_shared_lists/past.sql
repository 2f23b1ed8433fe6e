-- The lookup after the change with that number: the statement of cdb_lookup, with the row of each list in its version of then.
CREATE OR REPLACE FUNCTION cdb_lookup_at(
    change_number bigint, of_tag bigint, major bigint, minor bigint, only_valid boolean, inclusive boolean,
    as_objects boolean
) RETURNS text
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $function$
DECLARE
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    RETURN (
SELECT '[' || coalesce(string_agg(
    CASE WHEN as_objects THEN
        json_build_object(
            'payload_type_name', member.payload_type, 'payload_url', iov.payload_url, 'checksum', iov.checksum,
            'size', iov.size, 'major_iov', iov.major_iov, 'minor_iov', iov.minor_iov,
            'major_iov_end', iov.major_iov_end, 'minor_iov_end', iov.minor_iov_end, 'revision', iov.extra
        )
    ELSE
        json_build_array(
            member.payload_type, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov,
            iov.major_iov_end, iov.minor_iov_end, iov.extra
        )
    END::text,
    ',' ORDER BY member.payload_type COLLATE "C"
) FILTER (WHERE
    NOT only_valid
    OR (iov.major_iov_end, iov.minor_iov_end) > (major, minor)
    OR (inclusive AND (iov.major_iov_end, iov.minor_iov_end) = (major, minor))
    OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807)
), '') || ']'
FROM "PayloadListMembership" AS member
CROSS JOIN LATERAL cdb_rows_after(member.payload_list_id, change_number) AS source
CROSS JOIN LATERAL cdb_iov_at(source.rows_list_id, source.rows_version, moment) AS iov
WHERE member.tag_id = of_tag AND member.added_in <= change_number
    AND (member.removed_in IS NULL OR member.removed_in > change_number)
    );
END
$function$;

-- The window of cdb_window after the change with that number.
CREATE OR REPLACE FUNCTION cdb_window_at(
    change_number bigint, of_tag bigint, major bigint, minor bigint, only_valid boolean, inclusive boolean,
    OUT since numeric, OUT until numeric
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $function$
DECLARE
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    SELECT max(part.since), nullif(min(part.until), 'Infinity') INTO since, until
    FROM "PayloadListMembership" AS member
    CROSS JOIN LATERAL cdb_rows_after(member.payload_list_id, change_number) AS source
    LEFT JOIN "PayloadList" AS list ON list.id = source.rows_list_id
    CROSS JOIN LATERAL cdb_window_part(
        source.rows_list_id,
        -- A list that has not changed since is read as it is now.
        CASE WHEN list.version = source.rows_version AND list.base_list_id IS NULL THEN 2147483646 ELSE source.rows_version END,
        moment, only_valid, inclusive
    ) AS part
    WHERE member.tag_id = of_tag AND member.added_in <= change_number
        AND (member.removed_in IS NULL OR member.removed_in > change_number);
END
$function$;

DROP FUNCTION cdb_area_at, cdb_version_at;
