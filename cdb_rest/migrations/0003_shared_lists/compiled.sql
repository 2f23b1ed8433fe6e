-- The rows of a lookup's answer for some payload lists: a line for each, with the payload type's name as JSON, a tab and the row.
-- The statement is that of cdb_lookup. Expected plan: for each list an Index Only Scan of payload_iov_lookup, Index Cond alone.
CREATE OR REPLACE FUNCTION cdb_rows_of(
    list_ids bigint[], major bigint, minor bigint, only_valid boolean, inclusive boolean, as_objects boolean
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
SELECT string_agg(
    to_json(payload_type.name)::text || E'\t' ||
    CASE WHEN as_objects THEN
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
    E'\n'
) FILTER (WHERE
    NOT only_valid
    OR (iov.major_iov_end, iov.minor_iov_end) > (major, minor)
    OR (inclusive AND (iov.major_iov_end, iov.minor_iov_end) = (major, minor))
    OR (iov.major_iov_end, iov.minor_iov_end) = (9223372036854775807, 9223372036854775807)
)
FROM unnest(list_ids) AS chosen (id)
JOIN "PayloadList" AS list ON list.id = chosen.id
JOIN "PayloadType" AS payload_type ON payload_type.id = list.payload_type_id
CROSS JOIN LATERAL cdb_iov_at(list.rows_list_id, list.rows_version, moment) AS iov
    );
END
$function$;

-- The window of cdb_window, for some payload lists.
CREATE OR REPLACE FUNCTION cdb_window_of(
    list_ids bigint[], major bigint, minor bigint, only_valid boolean, inclusive boolean, OUT since numeric, OUT until numeric
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
DECLARE
    moment CONSTANT numeric := major + minor * 0.0000000000000000001;
BEGIN
    SELECT max(part.since), nullif(min(part.until), 'Infinity') INTO since, until
    FROM unnest(list_ids) AS chosen (id)
    JOIN "PayloadList" AS list ON list.id = chosen.id
    LEFT JOIN "PayloadList" AS base ON base.id = list.base_list_id
    CROSS JOIN LATERAL cdb_window_part(
        list.rows_list_id,
        CASE WHEN base.version = list.base_version THEN 2147483646 ELSE list.rows_version END,
        moment, only_valid, inclusive
    ) AS part;
END
$function$;
